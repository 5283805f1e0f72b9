"""The names by which settings are given: dotted, Pulsar's, misspelt, and numbers given in words."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple, cast

from trimtab.settings.setting import Setting, problem_of, wrong_type
from trimtab.settings.words import (
    IN_WORDS,
)

Value = str | int | float | bool
"""What a setting may be."""

_MISSPELT: Final = 0.75
"""Similarity from which a name counts as a misspelt one. Lower: another setting is named that was
not meant; higher: the whole group is listed for one wrong letter."""

_ABOUT_PULSARS: Final = "`trimtab config import` tells what Pulsar's keys mean"


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
        meant = self._meant(name)
        return f"{name}: no such setting" + (f" ({meant})" if meant else "")

    def _meant(self, name: str) -> str:
        """What ``name`` was probably meant to be, by its group if that exists."""
        group, _, last = name.rpartition(".")
        # Pulsar's keys stand in no group.
        if group and self.path_of(last):
            return f"did you mean {last}, without {group}.?"
        names = [*self.settings, *self.aliases]
        parts = [path.rpartition(".") for path in names]
        own = [each for its_group, _, each in parts if its_group == group] if group else []
        if near := get_close_matches(last, own, n=1, cutoff=_MISSPELT):
            return f"did you mean {group}.{near[0]}?"
        others = [its_group for its_group, _, each in parts if its_group and each == last]
        if own:
            of_others = (f"; {other} has {last}" for other in others)
            return f"{group} has {', '.join(own)}{''.join(of_others)}"
        if others:
            return f"did you mean {' or '.join(f'{other}.{last}' for other in others)}?"
        if near := get_close_matches(name, names, n=1, cutoff=_MISSPELT):
            return f"did you mean {near[0]}?"
        return _ABOUT_PULSARS if name.startswith(("loadBalancer", "loadManager")) else ""


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
