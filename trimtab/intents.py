"""What an operator's intent makes of a cluster's memory; one that cannot be has no effect but a
problem, which the next round reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeVar

from trimtab.memory import Memory
from trimtab.policies import Policies
from trimtab.settings import Settings
from trimtab.tunable import InvalidSettings
from trimtab.wire.control import Intent, Kind

V = TypeVar("V")


def obeyed(memory: Memory, intent: Intent, defaults: Settings) -> Memory:
    """The memory after an intent; ``defaults`` are the job's settings."""
    match intent.kind:
        case Kind.PAUSE | Kind.RESUME:
            return replace(memory, paused=intent.kind is Kind.PAUSE)
        case Kind.BROKER_LOST:
            appended = {b: ms for b, ms in memory.appended.items() if b != intent.broker}
            return replace(memory, appended=appended)
        case Kind.SETTINGS:
            return _overridden(memory, intent, defaults)
    problems = list(_flaws(intent))
    if problems:
        return _refused(memory, intent, problems)
    return replace(memory, policies=_POLICIES[intent.kind](memory.policies, intent))


def _overridden(memory: Memory, intent: Intent, defaults: Settings) -> Memory:
    overrides = {**memory.overrides, **intent.settings}
    try:
        defaults.changed(overrides)
    except InvalidSettings as error:
        return _refused(memory, intent, error.problems)
    return replace(memory, overrides=overrides, settings_version=memory.settings_version + 1)


def _refused(memory: Memory, intent: Intent, problems: Iterable[str]) -> Memory:
    said = [f"intent {intent.id}: {problem}" for problem in problems]
    return replace(memory, problems=[*memory.problems, *said])


def _flaws(intent: Intent) -> Iterator[str]:
    if not intent.name:
        yield "name: says nothing of what it is about"
    policy = intent.isolation
    if intent.kind is not Kind.ISOLATION or policy is None:
        return
    if policy.min_available < 0:
        yield f"isolation.min_available: must not be negative, not {policy.min_available}"
    for member in ("namespaces", "primary", "secondary"):
        for pattern in getattr(policy, member):
            try:
                re.compile(pattern)
            except re.error as error:
                yield f"isolation.{member}: {pattern!r} is no regular expression: {error}"


def _isolation(policies: Policies, intent: Intent) -> Policies:
    return replace(policies, isolation=_changed(policies.isolation, intent.name, intent.isolation))


def _group(policies: Policies, intent: Intent) -> Policies:
    return replace(policies, groups=_changed(policies.groups, intent.name, intent.group or None))


def _domain(policies: Policies, intent: Intent) -> Policies:
    # A broker is in one domain; a list that names it again takes it over.
    others = {b: d for b, d in policies.domains.items() if d != intent.name}
    return replace(policies, domains=others | dict.fromkeys(intent.brokers, intent.name))


_POLICIES: Final[Mapping[Kind, Callable[[Policies, Intent], Policies]]] = MappingProxyType(
    {
        Kind.ISOLATION: _isolation,
        Kind.ANTI_AFFINITY: _group,
        Kind.FAILURE_DOMAIN: _domain,
    }
)


def _changed(values: Mapping[str, V], name: str, value: V | None) -> dict[str, V]:
    """``values`` with one set, or taken out; in order of name."""
    changed = {**values, name: value}
    return {key: kept for key, kept in sorted(changed.items()) if kept is not None}
