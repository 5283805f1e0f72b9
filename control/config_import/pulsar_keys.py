"""Facts about Pulsar 4.0.8's load-balancing keys besides their settings in trimtab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MANAGER: Final = "loadManagerClassName"
ENABLED: Final = "loadBalancerEnabled"

DOUBLES: Final = frozenset(
    {
        "loadBalancerBandwidthInResourceWeight",
        "loadBalancerBandwidthOutResourceWeight",
        "loadBalancerBandwithInResourceWeight",
        "loadBalancerBandwithOutResourceWeight",
        "loadBalancerBrokerLoadTargetStd",
        "loadBalancerBundleUnloadMinThroughputThreshold",
        "loadBalancerCPUResourceWeight",
        "loadBalancerDirectMemoryResourceWeight",
        "loadBalancerHistoryResourcePercentage",
        "loadBalancerMemoryResourceWeight",
        "loadBalancerMsgRateDifferenceShedderThreshold",
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold",
        "maxUnloadPercentage",
    }
)
"""Keys that allow a fraction in Pulsar; with a fraction elsewhere the broker does not start."""

_REPORTS: Final = "when a broker reports is its agent's setting"
_REDIS: Final = "ownership is in Redis"
_MIGRATION: Final = "no round migrates a cluster; blue and green are switched by Pulsar's admin"
_SIMPLE: Final = "only SimpleLoadManagerImpl reads it"

NOT_IMPORTED: Final[Mapping[str, str]] = {
    ENABLED: "it has no setting of its own; false turns round.enabled and split.enabled off",
    "loadBalancerReportUpdateThresholdPercentage": _REPORTS,
    "loadBalancerReportUpdateMinIntervalMillis": _REPORTS,
    "loadBalancerReportUpdateMaxIntervalMinutes": _REPORTS,
    "loadBalancerHostUsageCheckIntervalMinutes": "how often a host is measured is not the job's",
    "loadBalancerOverrideBrokerNicSpeedGbps": (
        "start each broker's agent with --nic-speed-gbits and this number"
    ),
    "loadBalancerResourceQuotaUpdateIntervalMinutes": "averages are kept with every batch",
    "defaultNumberOfNamespaceBundles": (
        "say how many when a namespace is created: "
        "trimtab namespaces create NAME --bundles N --execute"
    ),
    "topicBundleAssignmentStrategy": "topics go to bundles by consistent hashing only",
    "namespaceBundleUnloadingTimeoutMs": "round.move_deadline bounds every move",
    "metadataStoreOperationTimeoutSeconds": _REDIS,
    "loadBalancerDebugModeEnabled": "trimtab always credits swaps: transfer.credit_swaps",
    "loadBalancerSplitIntervalMinutes": "splits are judged in rounds: round.interval",
    "loadBalancerServiceUnitStateMonitorIntervalInSeconds": _REDIS,
    "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds": _REDIS,
    "loadBalancerServiceUnitStateMaxConcurrentOverrides": _REDIS,
    "loadManagerServiceUnitStateTableViewClassName": _REDIS,
    "loadBalancerServiceUnitTableViewSyncer": _REDIS,
    "loadBalancerMultiPhaseBundleUnload": "a transfer always releases before it assigns",
    "clientMinVersionAllowed": (
        "clients connect to brokers and not to trimtab; the brokers refuse old ones themselves"
    ),
    "clusterMigrationAutoResourceCreation": (
        "a migrating topic's resources are always created on green first"
    ),
    "loadBalancerPlacementStrategy": _SIMPLE,
    "loadBalancerBrokerUnderloadedThresholdPercentage": _SIMPLE,
    "loadBalancerBrokerComfortLoadLevelPercentage": _SIMPLE,
}
"""Load-balancing keys that are not settings of the job, and why."""
