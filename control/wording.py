"""Says in words what an intent asks for, for a dry run and for plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from trimtab.explaining.words import format_count
from trimtab.wire.control import Intent, IntentKind


def describe(intent: Intent) -> str:
    """What the job does for an intent, without a subject: ``empty broker a:1, …``."""
    return _WORDS[intent.kind](intent)


def _move(intent: Intent) -> str:
    what = intent.bundle or f"all bundles of {intent.name}"
    to = intent.broker or "where placement finds best"
    return f"move {what} to {to}"


def _split(intent: Intent) -> str:
    if intent.positions:
        at = ", ".join(f"0x{position:08x}" for position in intent.positions)
        return f"split {intent.bundle} at {at}"
    return f"split {intent.bundle} by {intent.algorithm or 'split.algorithm'}"


def _set(intent: Intent) -> str:
    return "set " + ", ".join(f"{name}={value}" for name, value in intent.settings.items())


def _reset(intent: Intent) -> str:
    what = ", ".join(intent.names) or "all settings"
    return f"return {what} to what the job was started with"


def _create(intent: Intent) -> str:
    count = format_count(len(intent.positions) + 1, "bundle")
    return f"create {intent.name} with {count}, each given to a broker"


def _isolate(intent: Intent) -> str:
    policy = intent.isolation
    if policy is None:
        return f"delete the isolation policy {intent.name}"
    spaces, hosts = ", ".join(policy.namespaces), ", ".join(policy.primary)
    return f"reserve brokers {hosts} for namespaces {spaces} (policy {intent.name})"


def _group(intent: Intent) -> str:
    if not intent.group:
        return f"take {intent.name} out of its anti-affinity group"
    return f"put {intent.name} into the anti-affinity group {intent.group}"


def _domain(intent: Intent) -> str:
    if not intent.brokers:
        return f"delete the failure domain {intent.name}"
    return f"let the failure domain {intent.name} be {', '.join(intent.brokers)}"


_WORDS: Final[Mapping[IntentKind, Callable[[Intent], str]]] = {
    IntentKind.SETTINGS: _set,
    IntentKind.RESET: _reset,
    IntentKind.PAUSE: lambda _: "pause: decide nothing but repairs",
    IntentKind.RESUME: lambda _: "resume: decide again in the next round",
    IntentKind.DRAIN: lambda intent: f"empty {intent.broker}, and give it no bundle",
    IntentKind.UNDRAIN: lambda intent: f"use {intent.broker} again",
    IntentKind.READMIT: lambda intent: f"end the quarantine of {intent.bundle}",
    IntentKind.UNLOAD: _move,
    IntentKind.SPLIT: _split,
    IntentKind.NAMESPACE: _create,
    IntentKind.ISOLATION: _isolate,
    IntentKind.ANTI_AFFINITY: _group,
    IntentKind.FAILURE_DOMAIN: _domain,
}
"""Of what operators ask for; the watcher's intents are not described."""
