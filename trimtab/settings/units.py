"""Pulsar's units and class names as ours, and bounds that several settings share."""

from __future__ import annotations

from typing import Final

DAY: Final = 86_400.0
HUGE: Final = 1e15

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


def minutes(value: float) -> float:
    """Seconds."""
    return value * 60.0


def milliseconds(value: float) -> float:
    """Seconds."""
    return value / 1000


def percent(value: float) -> float:
    """A fraction."""
    return value / 100.0


def mebibytes(value: float) -> float:
    """Bytes."""
    return value * 1048576.0


def strategy(name: str) -> str:
    """A class of Pulsar's by our name; any other word as it is, to be refused."""
    # Both of Pulsar's managers have a class of this name; the extensible one averages.
    if name.endswith(".extensions.strategy.LeastResourceUsageWithWeight"):
        return "least-average-usage"
    return _CLASSES.get(name.rsplit(".", 1)[-1], name)
