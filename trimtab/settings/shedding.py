"""Settings of Pulsar's strategies."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.settings.setting import Alias, setting
from trimtab.settings.units import DAY, HUGE, mebibytes, percent


@dataclass(frozen=True, slots=True)
class ThresholdSettings:
    """ThresholdShedder: sheds from brokers above the average."""

    threshold: float = setting(
        0.1,
        "fraction",
        (0.0, 1.0),
        "Distance from the average usage that counts as too much. Low: sheds on noise; high: a "
        "skew stays for ever.",
        Alias("loadBalancerBrokerThresholdShedderPercentage", percent),
    )
    min_throughput: float = setting(
        10 * 1048576.0,
        "B/s",
        (0.0, HUGE),
        "Less than this is not worth a move. Low: bundles move for nothing; high: brokers busy "
        "with small messages never shed.",
        Alias("loadBalancerBundleUnloadMinThroughputThreshold", mebibytes),
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
    """UniformLoadShedder: compares the broker with the most traffic with the one with the least."""

    rate_difference: float = setting(
        50.0,
        "percent",
        (0.0, HUGE),
        "How much more messages than the least a broker may carry; 0: messages are not compared. "
        "Low: sheds on noise; high: only bytes count.",
        Alias("loadBalancerMsgRateDifferenceShedderThreshold"),
    )
    throughput_ratio: float = setting(
        4.0,
        "times",
        (0.0, HUGE),
        "How many times the least bytes a broker may carry; 0: bytes are not compared. Low: sheds "
        "on noise; high: brokers with large messages never shed.",
        Alias("loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold"),
    )


@dataclass(frozen=True, slots=True)
class AvgSettings:
    """AvgShedder: pairs the busiest broker with the idlest, and so on inwards."""

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
    """TransferShedder: brings the deviation of average usage below a target, pair by pair."""

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
        (0.0, DAY),
        "After a broker shed, rounds wait until its report is so much younger. Short: judged on "
        "load that has left; long: one shedding broker holds up the fleet.",
        Alias("loadBalanceSheddingDelayInSeconds"),
    )
    report_life: float = setting(
        1800.0,
        "s",
        (0.0, 30 * DAY),
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
class UnloadSettings:
    """How much load moves between two brokers that are compared."""

    min_rate: float = setting(
        1000.0,
        "messages/s",
        (0.0, HUGE),
        "Less than this is not worth a move. Low: bundles move for nothing; high: small fleets "
        "never balance.",
        Alias("minUnloadMessage"),
    )
    min_throughput: float = setting(
        1048576.0,
        "B/s",
        (0.0, HUGE),
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
