"""A cluster's settings in force, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from trimtab.cluster.intents.settings import FIXED, resolve_settings
from trimtab.cluster.job_settings import from_record, to_record
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import IN_WORDS, Value
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
