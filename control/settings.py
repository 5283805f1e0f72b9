"""A cluster's settings in force, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from trimtab.cluster.flaws import FIXED
from trimtab.cluster.intents import resolve_settings
from trimtab.cluster.job_settings import from_record, to_record
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import IN_WORDS, Settings, Value, catalogue
from trimtab.settings.setting import Alias
from trimtab.settings.units import strategy
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.wire.rounds import JobSettings


class Effective(NamedTuple):
    """A setting in force: ``source`` is default, file (or environment), or intent."""

    name: str
    value: Value
    source: str
    started: Value
    """What the job was started with."""


def parse_value(text: str) -> Value:
    """Parse as JSON; text that is no number, no switch and not quoted stays text."""
    try:
        return msgspec.json.decode(text, type=bool | int | float | str)
    except msgspec.DecodeError:
        return text


def explain_settings(
    overrides: Mapping[str, Value], started: JobSettings
) -> tuple[list[Effective], list[str]]:
    """The settings in force, and the problems if the cluster's own changes are left out.

    ``overrides`` are those changes, by dotted name; ``started`` is what the job was started with.

    Raises InvalidSettings if another version of trimtab recorded them.
    """
    intake, settings = from_record(started)
    memory = Memory(overrides=dict(overrides))
    now, problems = resolve_settings(memory, settings)
    overrides = {} if problems else settings.read(overrides)[0]
    defaults = to_record(IntakeSettings(), DEFAULTS)
    begun = to_record(intake, settings)
    found = [
        Effective(
            name,
            value,
            "intent"
            if name in overrides
            else _source(begun.defaults[name], defaults.defaults[name]),
            begun.defaults[name],
        )
        for name, value in to_record(intake, now).defaults.items()
    ]
    found += [
        Effective(FIXED + name, value, _source(value, defaults.intake[name]), value)
        for name, value in begun.intake.items()
    ]
    return sorted([*found, *_in_words(found)]), problems


def _in_words(found: list[Effective]) -> Iterator[Effective]:
    """The numbers that can be given in words, by that name."""
    of = {each.name: each for each in found}
    for name, words in IN_WORDS.items():
        number = of[words.path]
        now, started = words.word_of(number.value), words.word_of(number.started)
        yield Effective(name, now, number.source, started)


def _source(value: Value, default: Value) -> str:
    return "default" if value == default else "file"


def pulsars_keys(settings: Settings) -> dict[str, Alias]:
    """Pulsar's key of each setting that has one, by dotted name."""
    return {path: known.alias for path, _, known in catalogue(settings) if known.alias is not None}


def in_pulsars_words(settings: Settings, values: Mapping[str, object]) -> dict[str, str]:
    """Settings by Pulsar's keys and in its units, as text; those that Pulsar does not have by
    trimtab's names."""
    keys = pulsars_keys(settings)
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
