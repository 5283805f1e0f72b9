"""Turns a Pulsar broker.conf into trimtab's settings.

for each key with a value and a setting in trimtab:
  parse the text as Pulsar does; trimtab.settings converts units and names
loadBalancerEnabled=false: neither rounds nor splits
the extensible manager: its own strategies, as it runs no others
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from control.config_import.java_properties import Entry
from control.config_import.pulsar_keys import DOUBLES, ENABLED, MANAGER, NOT_IMPORTED
from trimtab.settings import SHEDDING, Settings, catalogue, unread_spellings
from trimtab.settings.setting import Alias, InvalidSettings


@dataclass(frozen=True, slots=True)
class Imported:
    """Settings, and notes on how the file led to them."""

    settings: Settings
    sources: Mapping[str, str]
    """Dotted name of each setting that the file decides, to Pulsar's key."""
    notes: tuple[str, ...]
    not_imported: int
    ignored: int
    """Number of keys of other parts of Pulsar."""

    @property
    def changed(self) -> int:
        """How many settings differ from Pulsar's default, which is also trimtab's."""
        values, defaults = self.settings.dumped(), Settings().dumped()
        return sum(values[path] != defaults[path] for path in self.sources)


class _Known(NamedTuple):
    """The setting for a Pulsar key."""

    path: str
    kind: type
    alias: Alias


_ALIASES: Final[Mapping[str, _Known]] = {
    key: _Known(path, type(default), known.alias)
    for path, default, known in catalogue()
    if known.alias is not None
    for key in (known.alias.key, known.alias.misspelt)
    if key is not None
}
_KINDS: Final[Mapping[str, type]] = {
    ENABLED: bool,
    **{key: known.kind for key, known in _ALIASES.items()},
}
_SHEDDING: Final = "loadBalancerLoadSheddingStrategy"
_EXTENSIBLE: Final[Mapping[str, object]] = {
    "round.shedding": "transfer",
    "round.placement": "least-average-usage",
    "split.trigger": "instantaneous",
}
# One broker's file does not say what class the others run.
_ANY_CLASS: Final = "placement.load_manager is not set, brokers of other classes would get nothing"
_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "avg.low_threshold": (
        "loadBalancerAvgShedderLowThreshold",
        "loadBalancerAvgShedderHighThreshold",
    ),
    "split.algorithm": (
        "defaultNamespaceBundleSplitAlgorithm",
        "supportedNamespaceBundleSplitAlgorithms",
    ),
    "split.supported": ("supportedNamespaceBundleSplitAlgorithms",),
    "round.placement": (_SHEDDING, "loadBalancerLoadPlacementStrategy"),
}
"""The keys that can contradict one another, by the setting that the error names."""


def import_conf(entries: Mapping[str, Entry]) -> Imported:
    """Import a file; raises InvalidSettings, each problem with its key and line."""
    stripped = {key: Entry(entry.value.strip(), entry.line) for key, entry in entries.items()}
    given = {key: entry for key, entry in stripped.items() if entry.value}
    problems: list[tuple[int, str]] = []
    values = dict(_values(given, problems))
    unread = unread_spellings(values)
    values = {key: value for key, value in values.items() if key not in unread}
    implied = _implied(values)
    own = {
        key: value
        for key, value in values.items()
        if key in _ALIASES and key != MANAGER and _ALIASES[key].path not in implied
    }
    settings = Settings()
    try:
        settings = Settings.parse(own | {path: value for path, (value, _) in implied.items()})
    except InvalidSettings as error:
        problems += [_located(problem, given) for problem in error.problems]
    if problems:
        raise InvalidSettings([problem for _, problem in sorted(problems)])
    return Imported(
        settings=settings,
        sources={_ALIASES[key].path: _ALIASES[key].alias.key for key in own}
        | {path: key for path, (_, key) in implied.items()},
        notes=(*_notes(given), *(_passed_over(key, given) for key in unread)),
        not_imported=len(given.keys() & NOT_IMPORTED.keys()),
        ignored=len(entries.keys() - _ALIASES.keys() - NOT_IMPORTED.keys()),
    )


def _values(
    given: Mapping[str, Entry], problems: list[tuple[int, str]]
) -> Iterator[tuple[str, object]]:
    """Yield each value in its type; appends the others to ``problems`` with the cause."""
    for key, (text, line) in given.items():
        try:
            if key in _KINDS:
                yield key, _typed(text, _KINDS[key], whole=key not in DOUBLES)
        except ValueError as error:
            problems.append((line, f"{_quoted(key, given)}: {error}"))


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _typed(text: str, kind: type, *, whole: bool) -> object:
    if kind is str:
        return text
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError("must be true or false; Pulsar reads it as false")
        return text.lower() == "true"
    if whole:
        if not _WHOLE.fullmatch(text):
            raise ValueError("must be a whole number")
        return int(text)
    if not _NUMBER.fullmatch(text):
        raise ValueError("must be a number")
    return float(text)


def _passed_over(key: str, given: Mapping[str, Entry]) -> str:
    other = next(each for each in given if each != key and _same(each, key))
    return f"{_quoted(key, given)} is not imported: Pulsar reads {_quoted(other, given)}"


def _same(key: str, other: str) -> bool:
    return key in _ALIASES and _ALIASES[key].path == _ALIASES[other].path


def _implied(values: Mapping[str, object]) -> dict[str, tuple[object, str]]:
    """Settings decided by a key other than their own, each with that key."""
    implied: dict[str, tuple[object, str]] = {}
    if values.get(ENABLED) is False:
        implied |= dict.fromkeys(("round.enabled", "split.enabled"), (False, ENABLED))
    if _manager(values.get(MANAGER, "")) == "ExtensibleLoadManagerImpl":
        implied |= {path: (value, MANAGER) for path, value in _EXTENSIBLE.items()}
        # An unknown class could be an extensible strategy, which Pulsar would run.
        named = values.get(_SHEDDING)
        if named is not None and _ALIASES[_SHEDDING].alias.convert(named) not in SHEDDING:
            del implied["round.shedding"]
    return implied


def _notes(given: Mapping[str, Entry]) -> Iterator[str]:
    if MANAGER in given:
        yield f"{_quoted(MANAGER, given)}: {_about(_manager(given[MANAGER].value))}"
    for key in given:
        if key in NOT_IMPORTED:
            yield f"{_quoted(key, given)} is not imported: {NOT_IMPORTED[key]}"


def _about(manager: str) -> str:
    if manager == "ExtensibleLoadManagerImpl":
        chosen = ", ".join(f"{path} is {value}" for path, value in _EXTENSIBLE.items())
        return f"{chosen}, whatever strategies are named; {_ANY_CLASS}"
    if manager == "ModularLoadManagerImpl":
        return _ANY_CLASS
    return f"trimtab does not know it and reads on as for ModularLoadManagerImpl; {_ANY_CLASS}"


def _manager(name: object) -> str:
    return str(name).rsplit(".", 1)[-1]


def _located(problem: str, given: Mapping[str, Entry]) -> tuple[int, str]:
    """The line of a problem of trimtab.settings, and its text with the keys concerned."""
    name, _, what = problem.partition(": ")
    about = _TOGETHER.get(name, (name,))
    line = min((given[key].line for key in about if key in given), default=0)
    return line, f"{', '.join(_quoted(key, given) for key in about)}: {what}"


def _quoted(key: str, given: Mapping[str, Entry]) -> str:
    if key not in given:
        return f"{key} (not set)"
    value, line = given[key]
    return f"line {line}: {key} = {value!r}"
