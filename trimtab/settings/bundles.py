"""Settings of splits and merges."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.settings.setting import Alias, setting
from trimtab.settings.units import HUGE, mebibytes, percent
from trimtab.settings.words import MERGING, SPLIT_ALGORITHMS, SPLIT_TRIGGERS


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """When a bundle is split, and where."""

    enabled: bool = setting(
        True,
        "",
        None,
        "Off: only operators split bundles; one hot bundle stays hot. Independent "
        "of round.enabled.",
        Alias("loadBalancerAutoBundleSplitEnabled"),
    )
    trigger: str = setting(
        "planned",
        "",
        SPLIT_TRIGGERS,
        "Which rates are judged: long-term averages at once (Pulsar's modular manager), or the "
        "instantaneous ones after some hits (the extensible one); planned: long-term averages, and "
        "what trimtab's shedding finds too large for any broker; while round.enabled is off, or "
        "under another shedding, the long-term averages alone.",
    )
    algorithm: str = setting(
        "range_equally_divide",
        "",
        SPLIT_ALGORITHMS,
        "Where the owner splits; only range_equally_divide needs no look at the topics.",
        Alias("defaultNamespaceBundleSplitAlgorithm"),
    )
    supported: str = setting(
        ",".join(SPLIT_ALGORITHMS),
        "",
        None,
        "The algorithms that a split may use, with commas between; ``algorithm`` must be one of "
        "them. Few: a bundle that needs another stays whole.",
        Alias("supportedNamespaceBundleSplitAlgorithms"),
    )
    unload_children: bool = setting(
        True,
        "",
        None,
        "On: the children leave their broker at once and are placed again, also while "
        "round.enabled is off; not where trimtab sheds, whose plan says where they go. Off: they "
        "stay until a round moves them.",
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
        (0.0, HUGE),
        "More is too much for one bundle. Low: many small bundles; high: a bundle that no broker "
        "can carry stays whole.",
        Alias("loadBalancerNamespaceBundleMaxMsgRate"),
    )
    max_throughput: float = setting(
        100 * 1048576.0,
        "B/s",
        (0.0, HUGE),
        "The same in bytes.",
        Alias("loadBalancerNamespaceBundleMaxBandwidthMbytes", mebibytes),
    )
    topic_throughput: float = setting(
        20e6,
        "B/s",
        (0.0, HUGE),
        "A topic, or partition, that has a bundle to itself and so much, in and out, is reported: "
        "no split lessens it, more partitions do. Nothing is decided by it; 0: only those over the "
        "limits above. Low: topics are named that harm nothing; high: those that no broker can "
        "carry are named late.",
    )
    max_bundles: int = setting(
        128,
        "bundles",
        (0, 1_000_000),
        "Most of one namespace; then nothing is split any more. Low: hot bundles stay whole; "
        "high: lookups and reports grow.",
        Alias("loadBalancerNamespaceMaximumBundles"),
    )
    hits: int = setting(
        3,
        "rounds",
        (0, 10_000),
        "Consecutive rounds over a limit before the instantaneous trigger splits, in the one "
        "after. Low: splits on a peak; high: late.",
        Alias("loadBalancerNamespaceBundleSplitConditionHitCountThreshold"),
    )
    max_per_round: int = setting(
        10,
        "bundles",
        (0, 1_000_000),
        "Most that the instantaneous trigger splits in one round, 0 for no cap. Low: many "
        "rounds; high: clients of many topics reconnect at once.",
        Alias("loadBalancerMaxNumberOfBundlesToSplitPerCycle"),
    )
    difference: float = setting(
        0.1,
        "fraction",
        (0.0, 100.0),
        "By how much a limit must be passed before flow_or_qps_equally_divide splits. 0: a bundle "
        "at the limit is split again and again; high: large bundles stay.",
        Alias("flowOrQpsDifferenceThresholdPercentage", percent),
    )

    def supported_algorithms(self) -> tuple[str, ...]:
        """The names in ``supported``."""
        return tuple(word.strip() for word in self.supported.split(","))


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """When neighbours are merged, so that their namespace has room for splits of other bundles.

    Nothing is merged where only operators split bundles (``split.enabled`` off).
    """

    enabled: bool = setting(
        True,
        "",
        None,
        "Off: a namespace that has reached ``split.max_bundles`` stays there, and its hot bundles "
        "stay whole.",
    )
    strategy: str = setting(
        "cold-neighbours", "", MERGING, "The strategy that says which neighbours are merged."
    )
    share: float = setting(
        0.9,
        "fraction",
        (0.0, 1.0),
        "Of ``split.max_bundles``: bundles of a namespace that has so many are merged until it has "
        "fewer, even if an operator gave it more than the maximum. Low: bundles are merged whose "
        "room is not needed; high: a bundle that must be split waits for room.",
    )
    fraction: float = setting(
        0.25,
        "fraction",
        (0.0, 1.0),
        "Of each split limit, which two may reach together. Low: nothing is cold enough; high: "
        "merged bundles are soon split again.",
    )
    max_per_round: int = setting(
        5,
        "pairs",
        (0, 1_000_000),
        "Most that are merged in one round, 0 for no cap. Low: many rounds until there is room; "
        "high: brokers do little else, and lookups of many topics are answered again.",
    )
