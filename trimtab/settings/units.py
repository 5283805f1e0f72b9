"""Convert Pulsar's units and class names to trimtab's; bounds that several settings share."""

from __future__ import annotations

from typing import Final

DAY: Final = 86_400.0
"""Seconds."""
HUGE: Final = 1e15
"""The upper bound of rates and sizes that have no natural one."""

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
    """Convert minutes to seconds."""
    return value * 60.0


def milliseconds(value: float) -> float:
    """Convert milliseconds to seconds."""
    return value / 1000


def percent(value: float) -> float:
    """Convert percent to a fraction."""
    return value / 100.0


def mebibytes(value: float) -> float:
    """Convert MiB to bytes."""
    return value * 1048576.0


def strategy(name: str) -> str:
    """Convert a Pulsar class name to trimtab's name; any other word stays, and is refused later."""
    # Both of Pulsar's managers have a class of this name; the extensible one averages.
    if name.endswith(".extensions.strategy.LeastResourceUsageWithWeight"):
        return "least-average-usage"
    return _CLASSES.get(name.rsplit(".", 1)[-1], name)
