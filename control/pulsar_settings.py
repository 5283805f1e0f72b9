"""Settings by Pulsar's keys, in its units and with its class names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trimtab.settings import Settings, catalogue
from trimtab.settings.setting import Alias
from trimtab.settings.units import strategy


def keys_of(settings: Settings) -> dict[str, Alias]:
    """Pulsar's key of each setting that has one, by dotted name."""
    return {path: known.alias for path, _, known in catalogue(settings) if known.alias is not None}


def to_pulsar(settings: Settings, values: Mapping[str, object]) -> dict[str, str]:
    """Settings by Pulsar's keys and in its units, as text; those that Pulsar does not have by
    trimtab's names."""
    keys = keys_of(settings)
    named = ((settings.path_of(name) or name, value) for name, value in values.items())
    found = {}
    for path, value in named:
        alias = keys.get(path)
        if alias is None:
            found[path] = _text(value)
        else:
            found[alias.key] = _text(_unconverted(value, alias))
    return found


_IMPL: Final = "org.apache.pulsar.broker.loadbalance.impl."
_EXTENSIONS: Final = "org.apache.pulsar.broker.loadbalance.extensions."
_CLASSES: Final[Mapping[str, str]] = {
    "threshold": f"{_IMPL}ThresholdShedder",
    "overload": f"{_IMPL}OverloadShedder",
    "uniform": f"{_IMPL}UniformLoadShedder",
    "avg": f"{_IMPL}AvgShedder",
    "transfer": f"{_EXTENSIONS}scheduler.TransferShedder",
    "least-long-term-rate": f"{_IMPL}LeastLongTermMessageRate",
    "least-resource-usage": f"{_IMPL}LeastResourceUsageWithWeight",
    "least-average-usage": f"{_EXTENSIONS}strategy.LeastResourceUsageWithWeight",
    "round-robin": f"{_IMPL}RoundRobinBrokerSelector",
}


def _unconverted(value: object, alias: Alias) -> object:
    """A value in Pulsar's unit: conversions of numbers are factors, those of words are names."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _CLASSES.get(str(value), value) if alias.convert is strategy else value
    factor = float(alias.convert(1.0))
    if factor == 1.0:
        return value
    # Rounded: 0.15 / 0.01 is not quite 15.
    return round(value / factor, 9)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
