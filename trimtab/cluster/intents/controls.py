"""Intents that set what people allow: pins, modes of namespaces, budgets of tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeVar

from trimtab.controls import Controls, Pin
from trimtab.intent_rules import Flaw, IntentRule
from trimtab.nearby import nearby
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind

V = TypeVar("V")

LONGEST_PIN_MS: Final = 90 * 86_400_000
"""Shorter: a pin ends during a migration; longer: it outlives the reason that it was made for."""
MOST_ENTRIES: Final = 10_000
"""Pins, modes and budgets of a cluster, which each round reads and records."""


def pin_flaws(memory: Memory, intent: Intent, now_ms: int) -> Iterator[Flaw]:
    """What is wrong with a pin, or with its end."""
    rule = IntentRule.INVALID_PIN
    if bool(intent.bundle) == bool(intent.name):
        yield IntentRule.NO_SUBJECT, "bundle, name: say which bundle, or by name which namespace"
        return
    subject = intent.bundle or intent.name
    pins = memory.controls.pins
    if intent.kind is IntentKind.UNPIN:
        if subject not in pins:
            yield IntentRule.UNKNOWN_PIN, f"{subject} is not pinned; {nearby(subject, pins)}"
        return
    if intent.broker and intent.name:
        yield rule, "broker: only a bundle can be pinned to one; an isolation policy keeps others"
    if not 0 < intent.until - now_ms <= LONGEST_PIN_MS:
        yield rule, f"until: must be within the next {LONGEST_PIN_MS // 86_400_000} days"
    if len(pins) >= MOST_ENTRIES and subject not in pins:
        yield IntentRule.TOO_LARGE, f"there are {MOST_ENTRIES} pins; end some first"


def mode_flaws(memory: Memory, intent: Intent, *_: object) -> Iterator[Flaw]:
    """What is wrong with a namespace's mode."""
    if len(memory.controls.modes) >= MOST_ENTRIES and intent.name not in memory.controls.modes:
        yield IntentRule.TOO_LARGE, f"{MOST_ENTRIES} namespaces have modes; set the cluster's"


def budget_flaws(memory: Memory, intent: Intent, *_: object) -> Iterator[Flaw]:
    """What is wrong with a tenant's budget."""
    if "/" in intent.name:
        yield IntentRule.INVALID_BUDGET, f"name: {intent.name} is no tenant"
    if intent.limit > 1_000_000:
        yield IntentRule.INVALID_BUDGET, "limit: is more than 1,000,000"
    if len(memory.controls.budgets) >= MOST_ENTRIES and intent.name not in memory.controls.budgets:
        yield IntentRule.TOO_LARGE, f"{MOST_ENTRIES} tenants have budgets; set plans.tenant_moves"


def _pin(controls: Controls, intent: Intent) -> Controls:
    pin = Pin(intent.until, intent.by, intent.reason, intent.broker)
    return replace(controls, pins=changed(controls.pins, intent.bundle or intent.name, pin))


def _unpin(controls: Controls, intent: Intent) -> Controls:
    return replace(controls, pins=changed(controls.pins, intent.bundle or intent.name, None))


def _mode(controls: Controls, intent: Intent) -> Controls:
    return replace(controls, modes=changed(controls.modes, intent.name, intent.mode))


def _budget(controls: Controls, intent: Intent) -> Controls:
    limit = None if intent.limit < 0 else intent.limit
    return replace(controls, budgets=changed(controls.budgets, intent.name, limit))


CONTROLS: Final[Mapping[IntentKind, Callable[[Controls, Intent], Controls]]] = MappingProxyType(
    {
        IntentKind.PIN: _pin,
        IntentKind.UNPIN: _unpin,
        IntentKind.MODE: _mode,
        IntentKind.BUDGET: _budget,
    }
)
"""The controls after an intent without flaws."""


def changed(values: Mapping[str, V], name: str, value: V | None) -> dict[str, V]:
    """``values`` with one entry set, or removed if None; sorted by name."""
    after = {**values, name: value}
    return {key: kept for key, kept in sorted(after.items()) if kept is not None}
