"""Intents that change or reset settings: what is wrong with one, and the settings after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Final

from trimtab.intake.snapshot import IntakeSettings
from trimtab.intent_rules import Flaw, IntentRule
from trimtab.nearby import nearby
from trimtab.settings import Settings, Value, contradictions
from trimtab.settings.setting import InvalidSettings
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind

_CAUTION: Final = ("round.observe_only", "round.enabled", "plans.mode", "plans.windows")
"""Settings under which the job acts less; they contradict no others."""

FIXED: Final = "intake."
"""The settings of operator ①, which reads no intents."""
_INTAKE: Final = tuple(FIXED + each.name for each in fields(IntakeSettings))


def resolve_settings(memory: Memory, defaults: Settings) -> tuple[Settings, list[str]]:
    """The cluster's settings, and the reasons if its own changes are left out.

    The changes were valid when they arrived; a job started with other settings may contradict them.
    What keeps the job from acting is never left out: an operator said so.
    """
    if not memory.overrides:
        # The case for most clusters, and this runs several times per batch.
        return defaults, []
    try:
        return defaults.changed(memory.overrides), []
    except InvalidSettings as error:
        overrides = memory.overrides.items()
        kept = {name: value for name, value in overrides if defaults.path_of(name) in _CAUTION}
        problems = [f"changed settings are left out: {p}" for p in error.problems]
        return defaults.changed(kept), problems


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


def _set(memory: Memory, intent: Intent, defaults: Settings) -> Memory:
    accepted, _ = defaults.read(intent.settings)
    # By dotted name: a setting changed under both spellings has the later value.
    kept = without_names(memory.overrides, accepted.keys(), defaults)
    return _overridden(memory, {**kept, **accepted})


def _reset(memory: Memory, intent: Intent, defaults: Settings) -> Memory:
    return _overridden(memory, without_names(memory.overrides, intent.names, defaults))


def _overridden(memory: Memory, overrides: dict[str, Value]) -> Memory:
    version = memory.settings_version + 1
    return replace(memory, overrides=overrides, settings_version=version)


SETTINGS: Final[Mapping[IntentKind, Callable[[Memory, Intent, Settings], Memory]]] = (
    MappingProxyType({IntentKind.SETTINGS: _set, IntentKind.RESET: _reset})
)
"""The memory after an intent without flaws."""
