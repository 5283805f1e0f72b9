"""Views of brokers by what they carry, and what the planner wishes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.support.clusters import NOW_MS, Broker, Bundle, view_of
from trimtab.load_model.history import PlannerHistory
from trimtab.plan import ShedWish
from trimtab.planner import shed
from trimtab.policies import NO_POLICIES, Policies
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.view import View

INTERVAL_MS = 60_000
KEPT = 0.5 ** (1 / 30)
"""The part of operator ①'s average that a minute's report leaves."""
_FULL = 1e9
"""Bytes/s that fill a broker."""

Carried = tuple[str, float]
"""A bundle's namespace, and the part of a broker that it fills."""


def carrying(
    brokers: Mapping[str, Sequence[Carried]],
    policies: Policies = NO_POLICIES,
    like: Mapping[str, Broker] | None = None,
    topics: int = 1,
) -> View:
    """Brokers with their bundles, numbered, of so many topics each; ``like`` says what else there
    is to some brokers."""
    made, count = {}, 0
    for name, bundles in brokers.items():
        own = []
        for namespace, load in bundles:
            bundle = f"{namespace}/0x{count:06x}00_0x{count + 1:06x}00"
            half = load * _FULL / 2
            own.append(Bundle((0, 0, half, half), name=bundle, topics=topics))
            count += 1
        usage = sum(load for _, load in bundles)
        made[name] = replace((like or {}).get(name, Broker()), usage=usage, bundles=own)
    return view_of(made, policies)


def later(view: View, rounds: int) -> View:
    """What is reported so many rounds later, where nothing has happened."""
    brokers = replace(view.brokers, reported_ms=view.brokers.reported_ms + rounds * INTERVAL_MS)
    return replace(view, brokers=brokers, now_ms=NOW_MS + rounds * INTERVAL_MS)


def wished(view: View, settings: Settings | None = None) -> list[ShedWish]:
    """The wishes of the first round that knows of noise."""
    chosen = settings or Settings()
    _, history = shed(view, PlannerHistory(), chosen)
    wishes, _ = shed(later(view, 1), history, chosen)
    return list(wishes)


def spread_out(view: View, settings: Settings | None = None) -> list[ShedWish]:
    """Those of the very first round's wishes that spread groups, whatever the noise."""
    wishes, _ = shed(view, PlannerHistory(), settings or Settings())
    return [wish for wish in wishes if wish.reason is Reason.SPREAD_GROUP]


def destinations(view: View, wishes: Sequence[ShedWish]) -> set[str]:
    """Brokers that the wishes lead to."""
    return {view.brokers.names[wish.destination] for wish in wishes if wish.destination is not None}


def after(view: View, wishes: Sequence[ShedWish]) -> dict[str, set[str]]:
    """Namespaces of each broker once the wishes are granted."""
    where = view.bundles.owner.copy()
    for wish in wishes:
        assert wish.destination is not None
        where[wish.bundle] = wish.destination
    held: dict[str, set[str]] = {name: set() for name in view.brokers.names}
    for row, broker in enumerate(where.tolist()):
        namespace = view.bundles.namespaces[int(view.bundles.namespace[row])]
        held[view.brokers.names[broker]].add(namespace)
    return held
