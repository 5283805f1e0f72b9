"""The names by which settings are given: dotted, Pulsar's, misspelt, and numbers given in words."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import NamedTuple, cast

from trimtab.settings.setting import Setting, problem_of, wrong_type
from trimtab.settings.words import (
    IN_WORDS,
)

Value = str | int | float | bool
"""What a setting may be."""


class KnownSettings(NamedTuple):
    """What may be set."""

    settings: dict[str, tuple[type, Setting]]
    defaults: dict[str, object]
    aliases: dict[str, str]
    """By Pulsar's key, or the name by which a number is given in words."""
    misspelt: dict[str, str]

    def path_of(self, name: str) -> str | None:
        return name if name in self.settings else self.aliases.get(name) or self.misspelt.get(name)

    def absence_of(self, name: str) -> str:
        # Pulsar's keys stand in no group.
        key = name.rpartition(".")[2]
        near = get_close_matches(name, [*self.settings, *self.aliases], n=1)
        nearest = f" (did you mean {near[0]}?)" if near else ""
        if key != name and self.path_of(key):
            nearest = f" (did you mean {key}, without {name.removesuffix(key)}?)"
        return f"{name}: no such setting{nearest}"


def accept(
    known: KnownSettings, name: str, value: object, accepted: dict[str, Value], problems: list[str]
) -> None:
    """Add ``value`` to ``accepted`` under its path, or add to ``problems`` why not."""
    path = known.path_of(name)
    if path is None:
        problems.append(known.absence_of(name))
        return
    kind, properties = known.settings[path]
    word = f" ({value})" if name in IN_WORDS else ""
    if word:
        value, problem = _number(value, IN_WORDS[name].numbers)
    else:
        problem = wrong_type(value, kind)
    if problem is None:
        if path != name and properties.alias is not None:
            value = properties.alias.convert(value)
        problem = problem_of(value, kind, properties)
    if problem is not None:
        problems.append(f"{name}: {problem}")
    elif path in accepted and accepted[path] != value:
        problems.append(f"{name}: {path} is given twice, as {accepted[path]!r} and {value!r}{word}")
    else:
        accepted[path] = float(cast(float, value)) if kind is float else cast(Value, value)


def _number(word: object, numbers: Mapping[str, float]) -> tuple[object, str | None]:
    """The number that the word stands for, or what is wrong with the word."""
    problem = wrong_type(word, str)
    if problem is None and word not in numbers:
        problem = f"must be one of {', '.join(numbers)}"
    return (word, problem) if problem else (numbers[cast(str, word)], None)
