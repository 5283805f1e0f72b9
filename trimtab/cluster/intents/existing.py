"""What a cluster knows to exist, and which of what an intent names does not.

What may be set up beforehand (settings, pauses, policies) may name anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from trimtab.intent_rules import Flaw, IntentRule
from trimtab.model import FULL_RANGE_END, HashRange, namespace_of, parse_bundle
from trimtab.nearby import nearby
from trimtab.ownership import State
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Record


@dataclass(frozen=True, slots=True)
class Existing:
    """What a cluster has, as functions: reading all records is slow, and few intents need it."""

    brokers: Callable[[], Collection[str]] | None
    """The brokers that reported, own a bundle, are lost or draining; None if any may exist."""
    namespaces: Callable[[], Collection[str]]
    records: Callable[[str], Mapping[str, Record]]
    """The records of a namespace, by bundle."""


_BROKERS: Final = frozenset(
    {IntentKind.DRAIN, IntentKind.UNDRAIN, IntentKind.UNLOAD, IntentKind.PIN}
)
"""Intents whose ``broker`` must exist."""
_SEVERAL_BROKERS: Final = frozenset({IntentKind.DRAIN_PLAN, IntentKind.RESTART_PLAN})
"""Intents whose ``brokers`` must exist."""
_BUNDLES: Final = frozenset(
    {IntentKind.READMIT, IntentKind.SPLIT, IntentKind.MERGE, IntentKind.UNLOAD}
)
"""Intents whose ``bundle`` must exist."""


def concerned(intent: Intent, records: Callable[[str], Mapping[str, Record]]) -> dict[str, Record]:
    """The bundles that an intent is about, with their records: one, or those of a namespace that
    are not where they should be."""
    if intent.bundle:
        record = records(namespace_of(intent.bundle)).get(intent.bundle)
        return {} if record is None else {intent.bundle: record}
    if intent.kind is not IntentKind.UNLOAD:
        return {}
    return {
        bundle: record
        for bundle, record in records(intent.name).items()
        if record.state is State.OWNED and record.owner != intent.broker
    }


def find_above(bundle: str, records: Callable[[str], Mapping[str, Record]]) -> str:
    """The standing bundle that begins where ``bundle`` ends; empty if there is none."""
    end = parse_bundle(bundle)[1].high
    return next(
        (
            other
            for other, record in records(namespace_of(bundle)).items()
            if record.state is not State.DELETED and parse_bundle(other)[1].low == end
        ),
        "",
    )


def new_bundles(intent: Intent) -> list[str]:
    """The bundles of the namespace that an intent creates, in ring order."""
    edges = (0, *intent.positions, FULL_RANGE_END)
    return [f"{intent.name}/{HashRange(low, high)}" for low, high in pairwise(edges)]


def absences(intent: Intent, existing: Existing) -> Iterator[Flaw]:
    """The flaws of an intent that names what the cluster does not have, with the nearest names that
    it has; or that readmits a bundle which is not in quarantine."""
    yield from _absent_brokers(intent, existing)
    if intent.kind is IntentKind.NAMESPACE:
        yield from _present_namespace(intent, existing)
    elif intent.kind is IntentKind.UNLOAD and not intent.bundle:
        yield from _absent_namespace(intent, existing)
    elif intent.kind in _BUNDLES or (intent.kind is IntentKind.PIN and intent.bundle):
        yield from _absent_bundle(intent, existing)


def _absent_brokers(intent: Intent, existing: Existing) -> Iterator[Flaw]:
    member, named = "broker", [intent.broker] if intent.broker else []
    if intent.kind in _SEVERAL_BROKERS:
        member, named = "brokers", [*intent.brokers]
    elif intent.kind not in _BROKERS:
        return
    if not named or existing.brokers is None:
        return
    brokers = existing.brokers()
    for broker in named:
        if broker not in brokers:
            near = nearby(broker, brokers)
            yield IntentRule.UNKNOWN_BROKER, f"{member}: {broker} is not known; {near}"


def _present_namespace(intent: Intent, existing: Existing) -> Iterator[Flaw]:
    records = existing.records(intent.name).values()
    standing = sum(record.state is not State.DELETED for record in records)
    if standing:
        problem = f"name: {intent.name} exists; bundles: {standing}"
        yield IntentRule.NAMESPACE_EXISTS, problem


def _absent_namespace(intent: Intent, existing: Existing) -> Iterator[Flaw]:
    namespaces = existing.namespaces()
    if intent.name not in namespaces:
        near = nearby(intent.name, namespaces)
        yield IntentRule.UNKNOWN_NAMESPACE, f"name: no bundle of {intent.name} is known; {near}"


def _absent_bundle(intent: Intent, existing: Existing) -> Iterator[Flaw]:
    bundle = intent.bundle
    namespace = namespace_of(bundle)
    records = existing.records(namespace)
    record = records.get(bundle)
    if record is None or record.state is State.DELETED:
        standing = [name for name, each in records.items() if each.state is not State.DELETED]
        if standing:
            near = nearby(bundle, standing)
        else:
            near = f"no bundle of {namespace} is; {nearby(namespace, existing.namespaces())}"
        yield IntentRule.UNKNOWN_BUNDLE, f"bundle: {bundle} is not known; {near}"
    elif intent.kind is IntentKind.UNLOAD and record.owner is None:
        yield IntentRule.INVALID_MOVE, f"bundle: no broker has {bundle}"
    elif intent.kind is IntentKind.UNLOAD and record.owner == intent.broker:
        yield IntentRule.INVALID_MOVE, f"bundle: {intent.broker} has {bundle} already"
    elif intent.kind is IntentKind.READMIT and record.state is not State.QUARANTINED:
        yield (
            IntentRule.NOT_QUARANTINED,
            f"bundle: {bundle} is not quarantined, but {record.state.value}",
        )
    elif intent.kind is IntentKind.MERGE:
        yield from _apart(bundle, find_above(bundle, existing.records), records)


def _apart(bundle: str, above: str, records: Mapping[str, Record]) -> Iterator[Flaw]:
    """Why a bundle cannot be merged with its neighbour above."""
    if not above:
        yield IntentRule.INVALID_MERGE, f"bundle: {bundle} has no neighbour above it"
        return
    owner, other = records[bundle].owner, records[above].owner
    if owner is None or owner != other:
        have = f"{owner or 'no broker'} has {bundle}, and {other or 'no broker'} has {above}"
        yield IntentRule.INVALID_MERGE, f"bundle: {have}; move one of them first"
