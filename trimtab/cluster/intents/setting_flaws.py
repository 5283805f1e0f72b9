"""What is wrong with an intent that changes or resets settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Final

from trimtab.cluster.existing import Flaw
from trimtab.intake.snapshot import IntakeSettings
from trimtab.nearby import nearby
from trimtab.reasons import IntentRule
from trimtab.settings import Settings, Value, contradictions

FIXED: Final = "intake."
"""The settings of operator ①, which reads no intents."""
_INTAKE: Final = tuple(FIXED + each.name for each in fields(IntakeSettings))


def setting_flaws(
    overrides: Mapping[str, Value], values: Mapping[str, Value], defaults: Settings
) -> Iterator[Flaw]:
    """What is wrong with new values, which are judged together with those set before."""
    yield from _fixed(values)
    free = {name: values[name] for name in _not_fixed(values)}
    accepted, problems = defaults.read(free)
    for name in free:
        path = defaults.path_of(name)
        if path is not None and path not in accepted and not problems:
            # Only an old spelling of Pulsar's is left out without a problem.
            problems = [f"{name}: not read while {path} is set; change that"]
    after = defaults.with_accepted(defaults.read(overrides)[0] | accepted)
    for problem in (*problems, *contradictions(after)):
        yield IntentRule.INVALID_SETTING, problem


def reset_flaws(
    overrides: Mapping[str, Value], names: Collection[str], defaults: Settings
) -> Iterator[Flaw]:
    """What is wrong with a reset: unknown names, or a contradiction with what stays changed."""
    yield from _fixed(names)
    for name in _not_fixed(names):
        # A setting of an earlier version can be reset, too.
        if defaults.path_of(name) is None and name not in overrides:
            yield IntentRule.INVALID_SETTING, defaults.absence_of(name)
    kept = without_names(overrides, names, defaults)
    for problem in contradictions(defaults.with_valid(kept)):
        yield IntentRule.INVALID_SETTING, problem


def without_names(
    overrides: Mapping[str, Value], names: Collection[str], defaults: Settings
) -> dict[str, Value]:
    """The overrides that remain after a reset of ``names``, or of all without names."""
    if not names:
        return {}
    paths = {defaults.path_of(name) or name for name in names}
    return {
        name: value
        for name, value in overrides.items()
        if (defaults.path_of(name) or name) not in paths
    }


def _fixed(names: Collection[str]) -> Iterator[Flaw]:
    for name in names:
        if name.startswith(FIXED) and name not in _INTAKE:
            problem = f"{name}: no such setting; {nearby(name, _INTAKE)}"
            yield IntentRule.INVALID_SETTING, problem
        elif name.startswith(FIXED):
            yield (
                IntentRule.FIXED_SETTING,
                f"{name}: is fixed while the job runs; change [intake] in the job's file and start "
                "the job again",
            )


def _not_fixed(names: Collection[str]) -> list[str]:
    return [name for name in names if not name.startswith(FIXED)]
