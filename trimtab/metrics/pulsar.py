"""The load balancer's series under Pulsar's names, so that a board made for Pulsar shows trimtab.

Names, labels and meanings are those of Pulsar 4's Prometheus endpoint (ExtensibleLoadManagerImpl,
UnloadCounter, SplitCounter, BrokerLoadData). Where trimtab has no such event the help text says
what is counted instead.
"""

from __future__ import annotations

from typing import Final

from trimtab.metrics.metric import Metric, MetricKind

LEADER: Final = "trimtab-job"
"""Value of ``broker`` where Pulsar names its leader, which decides there."""

LOAD_BALANCING: Final = "loadBalancing"
UNLOADING: Final = "bundleUnloading"
SPLITTING: Final = "bundlesSplit"
"""Values of ``metric``."""

MAX_EMA: Final = "max_ema"
"""Value of ``feature``: smoothed usage."""

_BROKER: Final = ("cluster", "broker", "metric")


def _percent(name: str, of: str) -> Metric:
    return Metric(
        f"pulsar_lb_{name}_usage",
        MetricKind.GAUGE,
        f"{of} used by the broker, in percent, as last reported.",
        _BROKER,
    )


CPU: Final = _percent("cpu", "CPU")
MEMORY: Final = _percent("memory", "Heap memory")
DIRECT_MEMORY: Final = _percent("directMemory", "Direct memory")
BANDWIDTH_IN: Final = _percent("bandwidth_in", "Inbound bandwidth")
BANDWIDTH_OUT: Final = _percent("bandwidth_out", "Outbound bandwidth")

RESOURCE_USAGE: Final = Metric(
    "pulsar_lb_resource_usage",
    MetricKind.GAUGE,
    "Usage of a broker, as a fraction. With feature max_ema it is "
    "trimtab_broker_smoothed_usage_ratio.",
    (*_BROKER, "feature"),
    by_broker=True,
)
RESOURCE_USAGE_STATS: Final = Metric(
    "pulsar_lb_resource_usage_stats",
    MetricKind.GAUGE,
    "Mean (stat avg) and standard deviation (std) of the brokers' usage in the last round.",
    (*_BROKER, "feature", "stat"),
)
UNLOADED_BROKERS: Final = Metric(
    "pulsar_lb_unload_broker",
    MetricKind.COUNTER,
    "Brokers from which rounds took bundles. A broker counts once in each such round.",
    _BROKER,
)
UNLOADED_BUNDLES: Final = Metric(
    "pulsar_lb_unload_bundle",
    MetricKind.COUNTER,
    "Bundles whose move the ownership store accepted. Pulsar counts when the move has ended.",
    _BROKER,
)
UNLOAD_BREAKDOWN: Final = Metric(
    "pulsar_lb_unload_broker_breakdown",
    MetricKind.COUNTER,
    "Bundle moves by result and reason. Result Success: moves that the store accepted; Failure: "
    "moves that it refused; Skip: rounds that asked for no move.",
    (*_BROKER, "result", "reason"),
)
SPLIT_BUNDLES: Final = Metric(
    "pulsar_lb_bundles_split",
    MetricKind.COUNTER,
    "Splits that the ownership store accepted.",
    _BROKER,
)
SPLIT_BREAKDOWN: Final = Metric(
    "pulsar_lb_bundles_split_breakdown",
    MetricKind.COUNTER,
    "Splits by result and reason.",
    (*_BROKER, "result", "reason"),
)

OF_AGENT: Final = (CPU, MEMORY, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT)
"""Each broker exports its own, as in Pulsar."""
OF_JOB: Final = (
    RESOURCE_USAGE,
    RESOURCE_USAGE_STATS,
    UNLOADED_BROKERS,
    UNLOADED_BUNDLES,
    UNLOAD_BREAKDOWN,
    SPLIT_BUNDLES,
    SPLIT_BREAKDOWN,
)
"""What Pulsar's leader exports."""

NAMED: Final = (*OF_JOB, *OF_AGENT)
"""All names that are Pulsar's, and need not follow Prometheus' conventions."""
