"""Every tunable of a decision: unit, default, bounds, what goes wrong at either end, Pulsar's name.

A setting is named by its path (``avg.low_threshold``) or by Pulsar's key, whose unit is converted.
All problems of a change are reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Final, cast

from trimtab.tunable import Alias, InvalidSettings, Setting, problem_of, setting, wrong_type

SHEDDING: Final = ("trimtab", "threshold", "overload", "uniform", "avg", "transfer")
PLACEMENT: Final = (
    "least-long-term-rate",
    "least-resource-usage",
    "least-average-usage",
    "least-predicted-usage",
    "round-robin",
    "avg",
)
NO_SHADOW: Final = "none"
UNDO: Final = ("off", "propose", "issue")
SPLIT_TRIGGERS: Final = ("long-term", "instantaneous", "planned")
MERGING: Final = ("cold-neighbours",)
SPLIT_ALGORITHMS: Final = (
    "range_equally_divide",
    "topic_count_equally_divide",
    "specified_positions_divide",
    "flow_or_qps_equally_divide",
)


def _minutes(value: float) -> float:
    return value * 60.0


def _milliseconds(value: float) -> float:
    return value / 1000


def _percent(value: float) -> float:
    return value / 100.0


def _mebibytes(value: float) -> float:
    return value * 1048576.0


_CLASSES: Final = {
    "ThresholdShedder": "threshold",
    "OverloadShedder": "overload",
    "UniformLoadShedder": "uniform",
    "AvgShedder": "avg",
    "TransferShedder": "transfer",
    "LeastLongTermMessageRate": "least-long-term-rate",
    "LeastResourceUsageWithWeight": "least-resource-usage",
    "RoundRobinBrokerSelector": "round-robin",
}


def _strategy(name: str) -> str:
    # Both of Pulsar's managers have a class of this name; the extensible one averages.
    if name.endswith(".extensions.strategy.LeastResourceUsageWithWeight"):
        return "least-average-usage"
    return _CLASSES.get(name.rsplit(".", 1)[-1], name)


_DAY: Final = 86_400.0
_HUGE: Final = 1e15


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """When a round runs, what it asks, and how much it may do."""

    enabled: bool = setting(
        True,
        "",
        None,
        "Off: nothing is proposed, the fleet drifts; lookups still find a broker.",
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
        Alias("loadBalancerLoadSheddingStrategy", _strategy),
    )
    placement: str = setting(
        "least-predicted-usage",
        "",
        PLACEMENT,
        "The strategy that says where a bundle goes; avg only together with avg shedding.",
        Alias("loadBalancerLoadPlacementStrategy", _strategy),
    )
    interval: float = setting(
        60.0,
        "s",
        (0.0, _DAY),
        "Between rounds; 0: a round in every batch that changed a snapshot. Short: rounds judge "
        "load that has not followed the last moves yet; long: a hot broker suffers.",
        Alias("loadBalancerSheddingIntervalMinutes", _minutes),
    )
    grace_period: float = setting(
        1800.0,
        "s",
        (0.0, _DAY),
        "A bundle that moved stays so long. Short: bundles bounce; long: a bad move stands.",
        Alias("loadBalancerSheddingGracePeriodMinutes", _minutes),
    )
    silence: float = setting(
        60.0,
        "s",
        (1.0, _DAY),
        "Without a report for so long, measured against the cluster's newest, a broker gets "
        "nothing. Short: one lost report takes a broker out; long: bundles go to a dead one.",
    )
    forget: float = setting(
        3600.0,
        "s",
        (1.0, 30 * _DAY),
        "Silence after which all that is known of a broker is dropped. Short: a broker that "
        "returns starts with unknown averages; long: state grows with every broker name ever used.",
    )
    move_deadline: float = setting(
        30.0,
        "s",
        (1.0, 3600.0),
        "Until a move is repaired or given up. Short: brokers that drain slowly are interrupted; "
        "long: a bundle of a dead broker waits.",
        Alias("loadBalancerInFlightServiceUnitStateWaitingTimeInMillis", _milliseconds),
    )
    max_moves: int = setting(
        0,
        "moves",
        (0, 1_000_000),
        "Most moves of one round, 0 for no cap. Low: a skew takes many rounds; high: clients of "
        "many topics reconnect at once.",
    )
    overloaded_threshold: float = setting(
        0.85,
        "fraction",
        (0.0, 100.0),
        "Above it a broker is placed on only when there is no other. Low: every broker counts as "
        "overloaded and placement is blind; high: full brokers receive.",
        Alias("loadBalancerBrokerOverloadedThresholdPercentage", _percent),
    )


@dataclass(frozen=True, slots=True)
class ThresholdSettings:
    """ThresholdShedder: brokers that stand above the average."""

    threshold: float = setting(
        0.1,
        "fraction",
        (0.0, 1.0),
        "Distance from the average usage that counts as too much. Low: sheds on noise; high: a "
        "skew stays for ever.",
        Alias("loadBalancerBrokerThresholdShedderPercentage", _percent),
    )
    min_throughput: float = setting(
        10 * 1048576.0,
        "B/s",
        (0.0, _HUGE),
        "Less than this is not worth a move. Low: bundles move for nothing; high: brokers busy "
        "with small messages never shed.",
        Alias("loadBalancerBundleUnloadMinThroughputThreshold", _mebibytes),
    )
    lower_boundary: bool = setting(
        False,
        "",
        None,
        "On: the busiest broker also sheds when another idles far below the average. Off: one idle "
        "broker among many busy ones stays idle.",
        Alias("lowerBoundarySheddingEnabled"),
    )


@dataclass(frozen=True, slots=True)
class UniformSettings:
    """UniformLoadShedder: the broker with the most traffic against the one with the least."""

    rate_difference: float = setting(
        50.0,
        "percent",
        (0.0, _HUGE),
        "How much more messages than the least a broker may carry; 0: messages are not compared. "
        "Low: sheds on noise; high: only bytes count.",
        Alias("loadBalancerMsgRateDifferenceShedderThreshold"),
    )
    throughput_ratio: float = setting(
        4.0,
        "times",
        (0.0, _HUGE),
        "How many times the least bytes a broker may carry; 0: bytes are not compared. Low: sheds "
        "on noise; high: brokers with large messages never shed.",
        Alias("loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold"),
    )


@dataclass(frozen=True, slots=True)
class AvgSettings:
    """AvgShedder: the busiest broker paired with the idlest, and so inwards."""

    low_threshold: float = setting(
        15.0,
        "points",
        (0.0, 10_000.0),
        "Gap of a pair, in percentage points, that counts as a low hit. Low: pairs never rest; "
        "high: a lasting moderate skew is accepted.",
        Alias("loadBalancerAvgShedderLowThreshold"),
    )
    high_threshold: float = setting(
        40.0,
        "points",
        (0.0, 10_000.0),
        "Gap that counts as a high hit. Low: short peaks move bundles; high: a real overload waits "
        "for the low hits.",
        Alias("loadBalancerAvgShedderHighThreshold"),
    )
    low_hits: int = setting(
        8,
        "rounds",
        (0, 10_000),
        "Consecutive low hits before a pair sheds. Low: acts on noise; high: acts late.",
        Alias("loadBalancerAvgShedderHitCountLowThreshold"),
    )
    high_hits: int = setting(
        2,
        "rounds",
        (0, 10_000),
        "Consecutive high hits before a pair sheds. Low: acts on one odd report; high: acts late.",
        Alias("loadBalancerAvgShedderHitCountHighThreshold"),
    )


@dataclass(frozen=True, slots=True)
class TransferSettings:
    """TransferShedder: the deviation of average usage brought below a target, in pairs."""

    target_deviation: float = setting(
        0.25,
        "fraction",
        (0.0, 100.0),
        "Standard deviation of usage that is accepted. Low: sheds on noise; high: a skew stays.",
        Alias("loadBalancerBrokerLoadTargetStd"),
    )
    hits: int = setting(
        3,
        "rounds",
        (0, 10_000),
        "Consecutive rounds out of balance before it acts, in the one after. Low: acts on noise; "
        "high: acts late.",
        Alias("loadBalancerSheddingConditionHitCountThreshold"),
    )
    directed: bool = setting(
        True,
        "",
        None,
        "On: it names the destination and may swap bundles. Off: placement chooses.",
        Alias("loadBalancerTransferEnabled"),
    )
    max_brokers: int = setting(
        3,
        "brokers",
        (0, 1_000_000),
        "Most that shed in one round. Low: many rounds; high: much moves at once.",
        Alias("loadBalancerMaxNumberOfBrokerSheddingPerCycle"),
    )
    top_bundles: int = setting(
        10,
        "bundles",
        (1, 1_000_000),
        "How many of a broker's largest bundles are looked at. Low: nothing fits; high: many small "
        "bundles move, for the smallest come first.",
        Alias("loadBalancerMaxNumberOfBundlesInBundleLoadReport"),
    )
    delay: float = setting(
        180.0,
        "s",
        (0.0, _DAY),
        "After a broker shed, rounds wait until its report is so much younger. Short: judged on "
        "load that has left; long: one shedding broker holds up the fleet.",
        Alias("loadBalanceSheddingDelayInSeconds"),
    )
    report_life: float = setting(
        1800.0,
        "s",
        (0.0, 30 * _DAY),
        "A broker whose report is older has no say in mean and deviation. Short: slow reporters "
        "are not seen; long: load that is gone counts.",
        Alias("loadBalancerBrokerLoadDataTTLInSeconds"),
    )
    with_policies: bool = setting(
        False,
        "",
        None,
        "On: bundles under an isolation policy or in an anti-affinity group may move. Off: they "
        "stay, however hot.",
        Alias("loadBalancerSheddingBundlesWithPoliciesEnabled"),
    )
    checked_swaps: bool = setting(
        True,
        "",
        None,
        "On: a bundle that moved lately, or is not owned, is not swapped back. Off: as in Pulsar, "
        "such bundles are asked for; the round refuses them and the swap is half done.",
    )
    credit_swaps: bool = setting(
        True,
        "",
        None,
        "On: what a swap brings back counts when the next move is judged. Off: as in Pulsar unless "
        "it runs in debug mode, pairs that swap are shed too far.",
    )


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """trimtab's own strategy: the fewest moves that bring all brokers within a range."""

    target: float = setting(
        0.05,
        "fraction",
        (0.001, 1.0),
        "Between the busiest broker's usage and the idlest's, what is accepted. Low: many moves "
        "for little; high: brokers stay unequal.",
    )
    quiet: float = setting(
        0.6,
        "fraction",
        (0.0, 1.0),
        "Of ``target``: a true range below it must not cause a move, whatever chance makes of it. "
        "Low: quicker to act; high: noise has to be larger to be acted on.",
    )
    half_life: float = setting(
        1800.0,
        "s",
        (1.0, _DAY),
        "Of what is known of a bundle's share of the load; steps are found apart from it. Short: "
        "follows noise, and larger ranges are needed to act; long: slow drifts are seen late.",
    )
    cost_half_life: float = setting(
        3600.0,
        "s",
        (1.0, 30 * _DAY),
        "Of what is known of the cost of traffic on each kind of broker. Short: predictions "
        "follow noise; long: an upgraded broker is judged by what it was.",
    )
    false_moves: float = setting(
        1.0,
        "plans a month",
        (1e-6, 1e6),
        "How often chance may cause a plan. Low: real ranges have to be larger to be acted on; "
        "high: moves for nothing.",
    )
    effort: int = setting(
        400_000,
        "steps",
        (1_000, 1_000_000_000),
        "How much is tried for a plan; a count and not a time, so that a replay decides the same. "
        "Low: more moves than needed; high: a plan takes longer.",
    )


@dataclass(frozen=True, slots=True)
class UnloadSettings:
    """How much moves between two brokers that are compared with one another."""

    min_rate: float = setting(
        1000.0,
        "messages/s",
        (0.0, _HUGE),
        "Less than this is not worth a move. Low: bundles move for nothing; high: small fleets "
        "never balance.",
        Alias("minUnloadMessage"),
    )
    min_throughput: float = setting(
        1048576.0,
        "B/s",
        (0.0, _HUGE),
        "The same in bytes, asked when the message rates are close.",
        Alias("minUnloadMessageThroughput"),
    )
    max_share: float = setting(
        0.2,
        "fraction",
        (0.0, 1.0),
        "Share of the pair's difference that moves at once; 0.5 makes both equal. Low: many "
        "rounds; above 0.5: the pair swaps roles.",
        Alias("maxUnloadPercentage"),
    )
    max_bundles: int = setting(
        -1,
        "bundles",
        (-1, 1_000_000),
        "Most that uniform takes off a broker in one round, -1 for no cap. 0: it takes none; low: "
        "many rounds; high: many small bundles move at once.",
        Alias("maxUnloadBundleNumPerShedding"),
    )


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """When a bundle is divided, and where."""

    enabled: bool = setting(
        True,
        "",
        None,
        "Off: bundles are divided by operators only; one hot bundle stays hot.",
        Alias("loadBalancerAutoBundleSplitEnabled"),
    )
    trigger: str = setting(
        "planned",
        "",
        SPLIT_TRIGGERS,
        "Which rates are judged: long-term averages at once (Pulsar's modular manager), or the "
        "instantaneous ones after some hits (the extensible one); planned: long-term averages, and "
        "what trimtab's shedding finds too large for any broker.",
    )
    algorithm: str = setting(
        "range_equally_divide",
        "",
        SPLIT_ALGORITHMS,
        "Where the owner divides; only range_equally_divide needs no look at the topics.",
        Alias("defaultNamespaceBundleSplitAlgorithm"),
    )
    unload_children: bool = setting(
        True,
        "",
        None,
        "On: the halves leave their broker at once and are placed anew; not under trimtab, whose "
        "plan says where they go. Off: they stay until a round moves them.",
        Alias("loadBalancerAutoUnloadSplitBundlesEnabled"),
    )
    max_topics: int = setting(
        1000,
        "topics",
        (0, 2**31 - 1),
        "More is too many for one bundle. Low: many small bundles; high: moving one takes long.",
        Alias("loadBalancerNamespaceBundleMaxTopics"),
    )
    max_sessions: int = setting(
        1000,
        "sessions",
        (-(2**31), 2**31 - 1),
        "The same of producers and consumers together; 0 or less: they are not counted.",
        Alias("loadBalancerNamespaceBundleMaxSessions"),
    )
    max_rate: float = setting(
        30_000.0,
        "messages/s",
        (0.0, _HUGE),
        "More is too much for one bundle. Low: many small bundles; high: a bundle that no broker "
        "can carry stays whole.",
        Alias("loadBalancerNamespaceBundleMaxMsgRate"),
    )
    max_throughput: float = setting(
        100 * 1048576.0,
        "B/s",
        (0.0, _HUGE),
        "The same in bytes.",
        Alias("loadBalancerNamespaceBundleMaxBandwidthMbytes", _mebibytes),
    )
    max_bundles: int = setting(
        128,
        "bundles",
        (0, 1_000_000),
        "Most of one namespace; then nothing is divided any more. Low: hot bundles stay whole; "
        "high: lookups and reports grow.",
        Alias("loadBalancerNamespaceMaximumBundles"),
    )
    hits: int = setting(
        3,
        "rounds",
        (0, 10_000),
        "Consecutive rounds over a limit before the instantaneous trigger divides, in the one "
        "after. Low: divides on a peak; high: late.",
        Alias("loadBalancerNamespaceBundleSplitConditionHitCountThreshold"),
    )
    max_per_round: int = setting(
        10,
        "bundles",
        (0, 1_000_000),
        "Most that the instantaneous trigger divides in one round, 0 for no cap. Low: many "
        "rounds; high: clients of many topics reconnect at once.",
        Alias("loadBalancerMaxNumberOfBundlesToSplitPerCycle"),
    )
    difference: float = setting(
        0.1,
        "fraction",
        (0.0, 100.0),
        "By how much flow_or_qps_equally_divide wants a limit passed. 0: a bundle at the limit is "
        "divided again and again; high: large bundles stay.",
        Alias("flowOrQpsDifferenceThresholdPercentage", _percent),
    )


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """When neighbours become one bundle, so that their namespace has room for others to be divided.

    None do where bundles are divided by operators only (``split.enabled``).
    """

    enabled: bool = setting(
        True,
        "",
        None,
        "Off: a namespace that has come to ``split.max_bundles`` stays there, and its hot bundles "
        "stay whole.",
    )
    strategy: str = setting(
        "cold-neighbours", "", MERGING, "The strategy that says which neighbours are merged."
    )
    share: float = setting(
        0.9,
        "fraction",
        (0.0, 1.0),
        "Of ``split.max_bundles``: a namespace that has so many is merged until it has fewer, also "
        "one that an operator gave more than the most. Low: bundles are merged whose room nobody "
        "needs; high: a bundle that must be divided waits for room.",
    )
    fraction: float = setting(
        0.25,
        "fraction",
        (0.0, 1.0),
        "Of each split limit, which two may come to together. Low: nothing is cold enough; high: "
        "what was merged is soon divided again.",
    )
    max_per_round: int = setting(
        5,
        "pairs",
        (0, 1_000_000),
        "Most that are merged in one round, 0 for no cap. Low: many rounds until there is room; "
        "high: brokers do little else, and lookups of many topics are answered anew.",
    )


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """Which brokers a bundle may go to, and which are equally good."""

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
        Alias("loadBalancerAverageResourceUsageDifferenceThresholdPercentage", _percent),
    )
    load_manager: str = setting(
        "",
        "",
        None,
        "Brokers that report another load manager class get nothing while others can; empty: any "
        "class will do. Wrong: no broker fits and the setting is not heeded.",
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
    """How resources become one usage number, and how slowly it forgets."""

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


@dataclass(frozen=True, slots=True)
class DoubtSettings:
    """When what is known of brokers is not believed enough to act on it."""

    silent_brokers: float = setting(
        0.5,
        "fraction",
        (0.0, 1.0),
        "Of the known brokers, drained ones apart: with so many silent or lost at once, two at "
        "least, nothing is decided until some are back or said to be drained. Low: a rack that "
        "fails is not repaired; high: when the network fails, all goes to the few that are seen.",
    )
    lost_brokers: float = setting(
        0.2,
        "fraction",
        (0.0, 1.0),
        "With more lost within a minute, two at least, repairs wait for ``delay`` and nothing else "
        "is done. Low: two deaths in a large fleet stop balancing; high: brokers whose leases fail "
        "together are taken apart one by one.",
    )
    delay: float = setting(
        10.0,
        "s",
        (0.0, 3600.0),
        "How long a bundle must have been without an owner, while that is so, to be given another. "
        "Short: a short outage moves bundles twice; long: clients wait.",
    )


@dataclass(frozen=True, slots=True)
class FlappingSettings:
    """How long a broker that was lost and returned gets no bundles; doubles with each loss."""

    first_delay: float = setting(
        10.0,
        "s",
        (0.0, _DAY),
        "After the first loss. 0: never held back, so one that fails again and again takes bundles "
        "down each time; long: a restart leaves a broker idle.",
    )
    longest_delay: float = setting(
        600.0,
        "s",
        (0.0, _DAY),
        "After many. Short: a broker that flaps for hours is used between its deaths; long: one "
        "that was mended stays idle.",
    )
    forget: float = setting(
        3600.0,
        "s",
        (0.0, 30 * _DAY),
        "Without a loss for so long, the next counts as the first. Short: slow flapping is not "
        "seen; long: restarts days apart add up.",
    )


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What later replays can start from."""

    export_interval: float = setting(
        900.0,
        "s",
        (0.0, _DAY),
        "Between two exports of all that is held of a cluster; 0: none, and a replay needs the "
        "topics' beginning. Short: many bytes on trimtab.state; long: a replay runs as much longer "
        "before the span it was asked for.",
    )


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """What moves were predicted to do, held against what came of it."""

    enabled: bool = setting(
        True,
        "",
        None,
        "Off: nobody says how good the predictions are, they do not learn from it, and the breaker "
        "sees nothing.",
    )
    settle: float = setting(
        120.0,
        "s",
        (1.0, _DAY),
        "From a plan's last landing until it is judged, by the reports of the second half; two "
        "reports of a broker at least. Short: clients that reconnect are taken for load; long: "
        "what happens otherwise is taken for the plan's doing.",
    )


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """When plans have done harm, and what is done about it."""

    enabled: bool = setting(
        True,
        "",
        None,
        "Off: a strategy goes on however its plans turn out. Turning it off ends a freeze.",
    )
    freeze: float = setting(
        600.0,
        "s",
        (0.0, 30 * _DAY),
        "How long no strategy is asked after a plan that did harm; repairs, drains and divisions "
        "go on. Short: the same plan is tried again; long: a skew stays while nobody looks.",
    )
    worse: float = setting(
        0.02,
        "fraction",
        (0.0, 1.0),
        "By how much a plan may widen the range of usage, or what chance explains if that is more. "
        "Low: trips on trifles; high: harm is found late.",
    )
    slow_factor: float = setting(
        3.0,
        "times",
        (1.0, 1e6),
        "How many times the usual a plan's hand-overs may take, medians of both, and half a second "
        "more at least. Low: trips on a busy minute; high: clients wait.",
    )
    failed: float = setting(
        0.3,
        "fraction",
        (0.0, 1.0),
        "Of a plan's moves, three at least, may end elsewhere than planned while both brokers are "
        "there. Low: trips on one bad broker; high: moves are tried in vain.",
    )
    undo: str = setting(
        "propose",
        "",
        UNDO,
        "The inverse of a plan that did harm. off: not told; propose: told with the round; issue: "
        "done at once where the range got wider, which costs clients another hand-over each.",
    )


@dataclass(frozen=True, slots=True)
class ExplainSettings:
    """What `trimtab why` can answer from Redis."""

    rounds: int = setting(
        100,
        "rounds",
        (0, 1000),
        "So many of the last rounds are kept; 0: none, and every answer takes a replay. Low: last "
        "night's move is no longer there; high: memory of Redis, 1.5 kB for each of its subjects.",
    )
    subjects: int = setting(
        200,
        "subjects",
        (0, 10_000),
        "Bundles and brokers that a round explains at most; 0: none are. Low: some moves have "
        "their sentence alone; high: rounds with many moves take longer, and memory of Redis, "
        "which serves nobody for 12 ms a thousand while it takes them.",
    )


@dataclass(frozen=True, slots=True)
class ShadowSettings:
    """A challenger of the strategy in charge, whose moves are only counted."""

    shedding: str = setting(
        NO_SHADOW,
        "",
        (NO_SHADOW, *SHEDDING),
        "The strategy that is tried beside round.shedding, with all its settings; none: rounds "
        "cost half as much and nothing is compared.",
    )
    placement: str = setting(
        "least-predicted-usage",
        "",
        PLACEMENT,
        "Its placement; avg only together with avg shedding.",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a cluster's rounds."""

    round: RoundSettings = field(default_factory=RoundSettings)
    threshold: ThresholdSettings = field(default_factory=ThresholdSettings)
    uniform: UniformSettings = field(default_factory=UniformSettings)
    avg: AvgSettings = field(default_factory=AvgSettings)
    transfer: TransferSettings = field(default_factory=TransferSettings)
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    unload: UnloadSettings = field(default_factory=UnloadSettings)
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    split: SplitSettings = field(default_factory=SplitSettings)
    merge: MergeSettings = field(default_factory=MergeSettings)
    weights: WeightSettings = field(default_factory=WeightSettings)
    doubt: DoubtSettings = field(default_factory=DoubtSettings)
    flapping: FlappingSettings = field(default_factory=FlappingSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    shadow: ShadowSettings = field(default_factory=ShadowSettings)
    explain: ExplainSettings = field(default_factory=ExplainSettings)

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Settings:
        """The defaults, changed; see `changed`."""
        return cls().changed(values)

    def changed(self, values: Mapping[str, object]) -> Settings:
        """These settings with ``values`` over them, by dotted or Pulsar's name.

        Raises InvalidSettings with every problem found.
        """
        problems: list[str] = []
        accepted: dict[str, object] = {}
        for name, value in values.items():
            if name not in _MISSPELT:
                _accept(name, value, accepted, problems)
        current = self.dumped()
        for name in values.keys() & _MISSPELT.keys():
            path = _MISSPELT[name]
            # Pulsar reads the old spelling while the right one has its default.
            if accepted.get(path, current[path]) == _DEFAULTS.dumped()[path]:
                accepted.pop(path, None)
                _accept(name, values[name], accepted, problems)
        changed = self._with(accepted)
        problems += contradictions(changed)
        if problems:
            raise InvalidSettings(problems)
        return changed

    def dumped(self) -> dict[str, object]:
        """Every setting by dotted name, in order of name; `parse` of it gives an equal value."""
        groups = cast(dict[str, dict[str, object]], asdict(self))
        return {
            f"{group}.{name}": value
            for group, members in sorted(groups.items())
            for name, value in sorted(members.items())
        }

    def _with(self, accepted: Mapping[str, object]) -> Settings:
        groups: dict[str, dict[str, object]] = {}
        for path, value in accepted.items():
            group, name = path.split(".")
            groups.setdefault(group, {})[name] = value
        return replace(
            self,
            **{
                group: replace(getattr(self, group), **members) for group, members in groups.items()
            },
        )


def catalogue() -> Iterator[tuple[str, object, Setting]]:
    """Every setting: dotted name, default, and what is known of it."""
    for group in fields(Settings):
        for member in fields(getattr(_DEFAULTS, group.name)):
            yield f"{group.name}.{member.name}", member.default, member.metadata["setting"]


_DEFAULTS: Final = Settings()
_TYPES: Final = {path: (type(default), known) for path, default, known in catalogue()}
_ALIASES: Final = {
    known.alias.key: path for path, (_, known) in _TYPES.items() if known.alias is not None
}
_MISSPELT: Final = {
    known.alias.misspelt: path
    for path, (_, known) in _TYPES.items()
    if known.alias is not None and known.alias.misspelt is not None
}


def _accept(name: str, value: object, accepted: dict[str, object], problems: list[str]) -> None:
    """Add ``value`` to ``accepted`` under its path, or say in ``problems`` why not."""
    path = name if name in _TYPES else _ALIASES.get(name) or _MISSPELT.get(name)
    if path is None:
        problems.append(f"{name}: no such setting{_nearest(name)}")
        return
    kind, known = _TYPES[path]
    problem = wrong_type(value, kind)
    if problem is None:
        if path != name and known.alias is not None:
            value = known.alias.convert(value)
        problem = problem_of(value, kind, known)
    if problem is not None:
        problems.append(f"{name}: {problem}")
    elif path in accepted and accepted[path] != value:
        problems.append(f"{name}: {path} is given twice, as {accepted[path]!r} and {value!r}")
    else:
        accepted[path] = float(cast(float, value)) if kind is float else value


def _nearest(name: str) -> str:
    near = get_close_matches(name, [*_TYPES, *_ALIASES], n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def contradictions(settings: Settings) -> Iterator[str]:
    """What is wrong with settings that are each within their bounds."""
    if settings.avg.low_threshold > settings.avg.high_threshold:
        yield "avg.low_threshold: must not be above avg.high_threshold"
    if settings.round.forget < settings.round.silence:
        yield "round.forget: must not be below round.silence"
    if settings.flapping.longest_delay < settings.flapping.first_delay:
        yield "flapping.longest_delay: must not be below flapping.first_delay"
    # Pulsar refuses to start otherwise: AvgShedder's placement reads what its shedding decided.
    if (settings.round.shedding == "avg") != (settings.round.placement == "avg"):
        yield "round.placement: avg placement and avg shedding go together or not at all"
    shadow = settings.shadow
    if shadow.shedding != NO_SHADOW and (shadow.shedding == "avg") != (shadow.placement == "avg"):
        yield "shadow.placement: avg placement and avg shedding go together or not at all"
