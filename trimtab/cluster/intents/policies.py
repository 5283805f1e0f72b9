"""Intents that set policies: isolation, anti-affinity groups and failure domains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from trimtab.cluster.intents.controls import changed
from trimtab.cluster.intents.patterns import pattern_problem
from trimtab.intent_rules import Flaw, IntentRule
from trimtab.nearby import nearby
from trimtab.policies import Isolation, Policies
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind

MOST_BROKERS: Final = 1_000_000
"""The bound of ``min_available``: above any fleet, and within the 64 bits of the state."""
MOST_PATTERNS: Final = 500
"""Regular expressions of an isolation policy, all of which a round may try on each namespace."""


def policy_flaws(memory: Memory, intent: Intent, _: object) -> Iterator[Flaw]:
    """What is wrong with a policy, or with the end of one."""
    policies = memory.policies
    if intent.isolation is not None:
        for problem in isolation_problems(intent.isolation):
            yield IntentRule.INVALID_POLICY, problem
        return
    if intent.kind is IntentKind.FAILURE_DOMAIN:
        yield from _taken(policies, intent)
    existing, deletes = {
        IntentKind.ISOLATION: (policies.isolation.keys(), True),
        IntentKind.ANTI_AFFINITY: (policies.groups.keys(), not intent.group),
        IntentKind.FAILURE_DOMAIN: ({*policies.domains.values()}, not intent.brokers),
    }[intent.kind]
    if deletes and intent.name not in existing:
        near = nearby(intent.name, existing)
        yield (
            IntentRule.UNKNOWN_POLICY,
            f"name: {intent.name} has no {intent.kind.value} to delete; {near}",
        )


def _taken(policies: Policies, intent: Intent) -> Iterator[Flaw]:
    """Brokers that are in another domain: they must leave that one first (as in Pulsar)."""
    for broker in intent.brokers:
        domain = policies.domains.get(broker, intent.name)
        if domain != intent.name:
            problem = f"brokers: {broker} is in {domain}; set {domain} without it first"
            yield IntentRule.INVALID_POLICY, problem


def isolation_problems(policy: Isolation) -> Iterator[str]:
    """What is wrong with an isolation policy."""
    if not 0 <= policy.min_available <= MOST_BROKERS:
        yield f"isolation.min_available: must be from 0 to {MOST_BROKERS}"
    if len(policy.namespaces) + len(policy.primary) + len(policy.secondary) > MOST_PATTERNS:
        yield f"isolation: has more than {MOST_PATTERNS} patterns"
        return
    for member in ("namespaces", "primary", "secondary"):
        for pattern in getattr(policy, member):
            if problem := pattern_problem(pattern):
                yield f"isolation.{member}: {pattern[:200]!r} {problem}"


def _isolation(policies: Policies, intent: Intent) -> Policies:
    return replace(policies, isolation=changed(policies.isolation, intent.name, intent.isolation))


def _group(policies: Policies, intent: Intent) -> Policies:
    return replace(policies, groups=changed(policies.groups, intent.name, intent.group or None))


def _domain(policies: Policies, intent: Intent) -> Policies:
    others = {b: d for b, d in policies.domains.items() if d != intent.name}
    return replace(policies, domains=others | dict.fromkeys(intent.brokers, intent.name))


POLICIES: Final[Mapping[IntentKind, Callable[[Policies, Intent], Policies]]] = MappingProxyType(
    {
        IntentKind.ISOLATION: _isolation,
        IntentKind.ANTI_AFFINITY: _group,
        IntentKind.FAILURE_DOMAIN: _domain,
    }
)
"""The policies after an intent without flaws."""
