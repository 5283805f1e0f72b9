"""Every load-balancing key of Pulsar 4.0.8 has its place, and its default is trimtab's."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from admin.cli import build_app
from admin.exit_codes import OK
from control.config_import.broker_conf import import_conf
from control.config_import.java_properties import parse
from control.config_import.pulsar_keys import DOUBLES, NOT_IMPORTED
from streaming.config import load_config
from trimtab.settings import Settings, catalogue

DEFAULTS = Path(__file__).parents[1] / "golden" / "broker.conf"

ALIASES = {
    key: path
    for path, _, known in catalogue()
    if known.alias is not None
    for key in (known.alias.key, known.alias.misspelt)
    if key is not None
}

KEYS = {
    "loadBalancerEnabled",
    "loadManagerClassName",
    "loadBalancerLoadSheddingStrategy",
    "loadBalancerLoadPlacementStrategy",
    "loadBalancerSheddingEnabled",
    "loadBalancerSheddingIntervalMinutes",
    "loadBalancerSheddingGracePeriodMinutes",
    "loadBalancerDistributeBundlesEvenlyEnabled",
    "loadBalancerReportUpdateThresholdPercentage",
    "loadBalancerReportUpdateMinIntervalMillis",
    "loadBalancerReportUpdateMaxIntervalMinutes",
    "loadBalancerHostUsageCheckIntervalMinutes",
    "loadBalancerResourceQuotaUpdateIntervalMinutes",
    "loadBalancerBrokerMaxTopics",
    "loadBalancerBrokerOverloadedThresholdPercentage",
    "loadBalancerBrokerThresholdShedderPercentage",
    "loadBalancerAverageResourceUsageDifferenceThresholdPercentage",
    "lowerBoundarySheddingEnabled",
    "loadBalancerHistoryResourcePercentage",
    "loadBalancerBandwidthInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight",
    "loadBalancerBandwithInResourceWeight",
    "loadBalancerBandwithOutResourceWeight",
    "loadBalancerCPUResourceWeight",
    "loadBalancerMemoryResourceWeight",
    "loadBalancerDirectMemoryResourceWeight",
    "loadBalancerBundleUnloadMinThroughputThreshold",
    "loadBalancerMsgRateDifferenceShedderThreshold",
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold",
    "minUnloadMessage",
    "minUnloadMessageThroughput",
    "maxUnloadPercentage",
    "maxUnloadBundleNumPerShedding",
    "loadBalancerAvgShedderLowThreshold",
    "loadBalancerAvgShedderHighThreshold",
    "loadBalancerAvgShedderHitCountLowThreshold",
    "loadBalancerAvgShedderHitCountHighThreshold",
    "loadBalancerAutoBundleSplitEnabled",
    "loadBalancerAutoUnloadSplitBundlesEnabled",
    "loadBalancerNamespaceBundleMaxTopics",
    "loadBalancerNamespaceBundleMaxSessions",
    "loadBalancerNamespaceBundleMaxMsgRate",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes",
    "loadBalancerNamespaceMaximumBundles",
    "defaultNumberOfNamespaceBundles",
    "supportedNamespaceBundleSplitAlgorithms",
    "defaultNamespaceBundleSplitAlgorithm",
    "flowOrQpsDifferenceThresholdPercentage",
    "topicBundleAssignmentStrategy",
    "loadBalancerOverrideBrokerNicSpeedGbps",
    "namespaceBundleUnloadingTimeoutMs",
    "preferLaterVersions",
    "failureDomainsEnabled",
    "metadataStoreOperationTimeoutSeconds",
    "loadBalancerDebugModeEnabled",
    "loadBalancerBrokerLoadTargetStd",
    "loadBalancerSheddingConditionHitCountThreshold",
    "loadBalancerTransferEnabled",
    "loadBalancerMaxNumberOfBrokerSheddingPerCycle",
    "loadBalanceSheddingDelayInSeconds",
    "loadBalancerBrokerLoadDataTTLInSeconds",
    "loadBalancerMaxNumberOfBundlesInBundleLoadReport",
    "loadBalancerSplitIntervalMinutes",
    "loadBalancerMaxNumberOfBundlesToSplitPerCycle",
    "loadBalancerNamespaceBundleSplitConditionHitCountThreshold",
    "loadBalancerSheddingBundlesWithPoliciesEnabled",
    "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis",
    "loadBalancerServiceUnitStateMonitorIntervalInSeconds",
    "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds",
    "loadBalancerMultiPhaseBundleUnload",
    "loadManagerServiceUnitStateTableViewClassName",
    "loadBalancerServiceUnitTableViewSyncer",
    "loadBalancerServiceUnitStateMaxConcurrentOverrides",
    "clusterMigrationCheckDurationSeconds",
    "clusterMigrationAutoResourceCreation",
    "loadBalancerPlacementStrategy",
    "loadBalancerBrokerUnderloadedThresholdPercentage",
    "loadBalancerBrokerComfortLoadLevelPercentage",
}
"""All that a load manager reads."""

OF_CLIENTS = {"clientMinVersionAllowed"}
"""Named by the proposal for cluster migration; not in the file of defaults."""


def test_every_key_is_a_setting_or_has_a_reason_not_to_be() -> None:
    assert ALIASES.keys() | NOT_IMPORTED.keys() == KEYS | OF_CLIENTS
    assert not ALIASES.keys() & NOT_IMPORTED.keys()


def test_the_defaults_are_those_of_all_keys() -> None:
    assert parse(DEFAULTS.read_text()).keys() == KEYS


def test_the_keys_that_take_fractions_are_pulsar_s_doubles() -> None:
    """Java prints a double with a point."""
    defaults = {key: entry.value for key, entry in parse(DEFAULTS.read_text()).items()}
    numbers = {key for key, value in defaults.items() if value[:1].isdigit()}
    assert {key for key in numbers if "." in defaults[key]} == DOUBLES


PULSARS = Settings().changed(
    {
        "round.shedding": "threshold",
        "round.placement": "least-long-term-rate",
        "migration.check": 0.0,
    }
)


def test_pulsar_s_defaults_are_trimtab_s_but_for_the_strategies() -> None:
    """And but for placement.load_manager, whose default in Pulsar is ModularLoadManagerImpl.

    It keeps bundles from brokers of other classes, and one file does not say what those run.
    """
    found = import_conf(parse(DEFAULTS.read_text()))
    assert found.settings == PULSARS
    assert found.sources.keys() == set(ALIASES.values()) - {"placement.load_manager"}
    assert (found.changed, found.ignored) == (3, 0)


def test_all_settings_can_be_printed(tmp_path: Path) -> None:
    result = CliRunner().invoke(build_app(["config"]), ["config", "import", "--all", str(DEFAULTS)])
    assert result.exit_code == OK
    printed = tmp_path / "trimtab.toml"
    printed.write_text(result.stdout)
    assert load_config(printed).settings == PULSARS.dumped()
