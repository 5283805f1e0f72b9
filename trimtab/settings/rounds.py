"""Settings of every round, whatever its strategy."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.settings.setting import Alias, setting
from trimtab.settings.units import DAY, milliseconds, minutes, percent, strategy
from trimtab.settings.words import AHEAD, ASSIGNMENT, PLACEMENT, SHEDDING


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """When a round runs, which strategies it asks, and how much it may do."""

    enabled: bool = setting(
        True,
        "",
        None,
        "Shedding. Off: nothing moves for balance, and the fleet drifts. Repairs and drains go "
        "on, and so do splits and merges, by split.enabled and merge.enabled.",
        Alias("loadBalancerSheddingEnabled"),
    )
    observe_only: bool = setting(
        False, "", None, "On: plans are made and shown but no command is issued."
    )
    shedding: str = setting(
        "trimtab",
        "",
        SHEDDING,
        "The strategy that says which bundles leave.",
        Alias("loadBalancerLoadSheddingStrategy", strategy),
    )
    placement: str = setting(
        "least-predicted-usage",
        "",
        PLACEMENT,
        "The strategy that says where a bundle goes; avg only together with avg shedding.",
        Alias("loadBalancerLoadPlacementStrategy", strategy),
    )
    assignment: str = setting(
        AHEAD,
        "",
        ASSIGNMENT,
        "When a moved bundle gets its next owner. ahead: at once, and the owner hands it over "
        "(Pulsar's extensible manager). at-lookup: its owner unloads it, and the next lookup "
        "assigns it (Pulsar's modular manager); a bundle without lookups is served by none.",
    )
    interval: float = setting(
        60.0,
        "s",
        (0.0, DAY),
        "Between rounds; 0: a round in every batch that changed a snapshot. Short: rounds judge "
        "load that has not followed the last moves yet; long: a hot broker suffers.",
        Alias("loadBalancerSheddingIntervalMinutes", minutes),
    )
    grace_period: float = setting(
        1800.0,
        "s",
        (0.0, DAY),
        "A bundle that moved stays so long. Short: bundles bounce; long: a bad move stands.",
        Alias("loadBalancerSheddingGracePeriodMinutes", minutes),
    )
    silence: float = setting(
        60.0,
        "s",
        (1.0, DAY),
        "Without a report for so long, measured against the cluster's newest, a broker gets "
        "nothing; one that reports less often may be silent for a few times its usual gap. Short: "
        "one lost report takes a broker out; long: bundles go to one that is stuck.",
    )
    forget: float = setting(
        3600.0,
        "s",
        (1.0, 30 * DAY),
        "Silence after which all that is known of a broker is dropped. Short: a broker that "
        "returns starts with unknown averages; long: state grows with every broker name ever used.",
    )
    move_deadline: float = setting(
        30.0,
        "s",
        (1.0, 3600.0),
        "Until a move is repaired or given up. Short: brokers that drain slowly are interrupted; "
        "long: a bundle of a dead broker waits.",
        Alias("loadBalancerInFlightServiceUnitStateWaitingTimeInMillis", milliseconds),
    )
    max_moves: int = setting(
        0,
        "moves",
        (0, 1_000_000),
        "Most moves of one round; 0: 10,000. Low: a skew takes many rounds; high: clients of many "
        "topics reconnect at once, and other clusters' rounds wait until all are carried out.",
    )
    overloaded_threshold: float = setting(
        0.85,
        "fraction",
        (0.0, 100.0),
        "Above it a broker is placed on only when there is no other. Low: every broker counts as "
        "overloaded and placement is blind; high: full brokers receive.",
        Alias("loadBalancerBrokerOverloadedThresholdPercentage", percent),
    )


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """Which brokers a bundle may go to, and which of them count as equally good."""

    max_topics: int = setting(
        50_000,
        "topics",
        (0, 2**31 - 1),
        "A broker that has more is passed over while another has not. Low: the cap decides instead "
        "of the load; high: a broker runs out of memory for topics.",
        Alias("loadBalancerBrokerMaxTopics"),
    )
    distribute_evenly: bool = setting(
        True,
        "",
        None,
        "On: the bundles of a namespace spread by count before load is asked. Off: a namespace may "
        "gather on one broker.",
        Alias("loadBalancerDistributeBundlesEvenlyEnabled"),
    )
    usage_difference: float = setting(
        0.1,
        "fraction",
        (0.0, 1.0),
        "How far below the average a broker must be for least-resource-usage and "
        "least-average-usage to prefer it. Low: the idlest takes everything; high: placement is "
        "random.",
        Alias("loadBalancerAverageResourceUsageDifferenceThresholdPercentage", percent),
    )
    load_manager: str = setting(
        "",
        "",
        None,
        "Brokers that report another load manager class get nothing while others can; empty: any "
        "class will do. Wrong: no broker fits and the setting is ignored.",
        Alias("loadManagerClassName"),
    )
    prefer_later_versions: bool = setting(
        False,
        "",
        None,
        "On: only brokers of the highest version get bundles, which fills the first upgraded ones. "
        "Off: an upgrade is not seen.",
        Alias("preferLaterVersions"),
    )
    failure_domains: bool = setting(
        False,
        "",
        None,
        "On: an anti-affinity group spreads over failure domains before brokers. Off: one domain "
        "may hold all of a group.",
        Alias("failureDomainsEnabled"),
    )


@dataclass(frozen=True, slots=True)
class WeightSettings:
    """How resources become one usage number, and how slowly its average follows."""

    cpu: float = setting(
        1.0,
        "weight",
        (0.0, 100.0),
        "0: busy processors are not seen; above 1: usage exceeds the machine's.",
        Alias("loadBalancerCPUResourceWeight"),
    )
    memory: float = setting(
        0.0,
        "weight",
        (0.0, 100.0),
        "Heap. Above 0: the garbage collector's rhythm looks like load. Not part of usage in "
        "Pulsar's modular strategies.",
        Alias("loadBalancerMemoryResourceWeight"),
    )
    direct_memory: float = setting(
        0.0,
        "weight",
        (0.0, 100.0),
        "Above 0: pooled buffers that are never given back look like load.",
        Alias("loadBalancerDirectMemoryResourceWeight"),
    )
    bandwidth_in: float = setting(
        1.0,
        "weight",
        (0.0, 100.0),
        "0: a full receiving link is not seen.",
        Alias(
            "loadBalancerBandwidthInResourceWeight",
            misspelt="loadBalancerBandwithInResourceWeight",
        ),
    )
    bandwidth_out: float = setting(
        1.0,
        "weight",
        (0.0, 100.0),
        "0: a full sending link is not seen.",
        Alias(
            "loadBalancerBandwidthOutResourceWeight",
            misspelt="loadBalancerBandwithOutResourceWeight",
        ),
    )
    history: float = setting(
        0.9,
        "fraction",
        (0.0, 1.0),
        "Weight of the past in a strategy's own average of usage, one step a run. 0: follows every "
        "report; 1: the first report decides for ever.",
        Alias("loadBalancerHistoryResourcePercentage"),
    )
