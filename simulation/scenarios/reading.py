"""Reads scenarios from TOML, by library name or from a file; reports all problems at once."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from simulation.scenarios.scenario import Scenario
from simulation.scenarios.world.needs import MOST
from trimtab.settings.setting import Setting, problem_of

_LIBRARY: Final = files("simulation.scenarios") / "library"


class InvalidScenario(ValueError):
    """Raised for a scenario that cannot be run; names every problem."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def library() -> tuple[str, ...]:
    """Names of the built-in scenarios, in order."""
    return tuple(
        sorted(each.name[: -len(".toml")] for each in _LIBRARY.iterdir() if ".toml" in each.name)
    )


def load(name: str, **changes: object) -> Scenario:
    """A scenario of the library or of a TOML file, with ``changes`` applied by dotted name.

    Raises InvalidScenario, OSError.
    """
    source = _LIBRARY / f"{name}.toml" if name in library() else Path(name)
    if name not in library() and not name.endswith(".toml"):
        near = get_close_matches(name, library(), n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise InvalidScenario([f"{name}: no such scenario{hint}; there are {', '.join(library())}"])
    try:
        table = tomllib.loads(source.read_text())
    except tomllib.TOMLDecodeError as error:
        raise InvalidScenario([f"{name}: {error}"]) from error
    return change_scenario(Scenario(), {**dict(_flat(table, "")), **changes})


def change_scenario(scenario: Scenario, values: Mapping[str, object]) -> Scenario:
    """The scenario with ``values`` applied by dotted name; raises InvalidScenario."""
    problems = [
        problem for name, value in values.items() if (problem := _problem(name, value)) is not None
    ]
    if problems:
        raise InvalidScenario(problems)
    groups: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        group, _, name = path.rpartition(".")
        kind = _KNOWN[path][0]
        groups.setdefault(group, {})[name] = float(cast(float, value)) if kind is float else value
    own = groups.pop("", {})
    own |= {name: replace(getattr(scenario, name), **of) for name, of in groups.items()}
    made = replace(scenario, **own)
    problems = [problem for problem, holds in _checks(made) if not holds]
    if problems:
        raise InvalidScenario(problems)
    return made


def _settings(kind: Any, prefix: str) -> Iterator[tuple[str, tuple[type, Setting]]]:
    default = kind()
    for each in fields(kind):
        value = getattr(default, each.name)
        if is_dataclass(value):
            yield from _settings(type(value), f"{each.name}.")
        else:
            yield prefix + each.name, (type(value), each.metadata["setting"])


_KNOWN: Final = dict(_settings(Scenario, ""))


def _flat(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _problem(name: str, value: object) -> str | None:
    if name not in _KNOWN:
        near = get_close_matches(name, _KNOWN, n=1)
        return f"{name}: no such setting" + (f" (did you mean {near[0]}?)" if near else "")
    kind, known = _KNOWN[name]
    problem = problem_of(value, kind, known)
    if problem is None and name == "hardware":
        problem = _hardware(str(value))
    if problem is None and name == "need.most":
        problem = _kinds(str(value))
    return None if problem is None else f"{name}: {problem}"


def _hardware(text: str) -> str | None:
    try:
        parts = [float(part) for part in text.split(":")]
    except ValueError:
        parts = []
    fits = parts and all(math.isfinite(part) and part > 0 for part in parts)
    return None if fits else f"must be capacities above 0 such as 1:4, not {text!r}"


def _kinds(text: str) -> str | None:
    if not text or all(part in MOST for part in text.split(":")):
        return None
    return f"must be of {', '.join(MOST)}, such as processor:network, not {text!r}"


def _checks(made: Scenario) -> Iterator[tuple[str, bool]]:
    start, apart = made.start, made.affinity.groups * made.affinity.members
    staying = start.brokers or made.brokers
    yield "bundles: must be at least brokers", made.bundles >= made.brokers
    yield "start.brokers: must be at least 2 and at most brokers", 2 <= staying <= made.brokers
    yield "start.spread: must be at most twice the mean", start.spread <= 2 * made.mean
    yield (
        "bundles: must be at least the namespaces and the members of all groups",
        made.bundles >= made.namespaces + apart,
    )
    yield (
        "affinity.members: must be at most the brokers at the start",
        made.affinity.groups == 0 or made.affinity.members <= staying,
    )
    yield (
        "affinity.violations: must be at most one a group",
        made.affinity.violations <= (made.affinity.groups),
    )
    yield "delay.low: must be at most delay.high", made.delay.low <= made.delay.high
    yield (
        "delay.flight_low: must be at most delay.flight_high",
        made.delay.flight_low <= made.delay.flight_high,
    )
    yield (
        "reports: go without delay.high, which is about the age of reports too",
        not (made.reports.used and made.delay.high),
    )
    yield "wave.opposed: goes without wave.in_phase", not (made.wave.opposed and made.wave.in_phase)
    yield (
        "split: goes without need.most: parts of several kinds cannot be merged",
        not (made.split and made.need.most),
    )
    yield "crash.brokers: must leave 2 brokers at least", made.crash.brokers <= made.brokers - 2
    yield (
        "crash.domains: must be fewer than domains",
        made.crash.domains == 0 or made.crash.domains < made.domains,
    )
    yield "hot.topic: goes with hot.bundle = 0", not (made.hot.topic and made.hot.bundle)
    yield (
        "restart.down: must be less than restart.every",
        made.restart.every == 0 or made.restart.down < made.restart.every,
    )
