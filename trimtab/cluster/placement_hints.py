"""Placement hints for lookups: brokers that may get an unowned bundle, least loaded first.

candidates = available brokers, without overloaded ones if others are left, that the caps permit
load       = the placement strategy's own measure
each       = mean load per bundle
Each isolation policy has its own candidates. How namespaces and anti-affinity groups are spread is
counted when a bundle is placed (`trimtab.store.spreading`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, compress, islice
from types import MappingProxyType
from typing import Final

import numpy as np

from trimtab.arrays import Bools
from trimtab.filters import UNCOUNTED, find_permitted, narrow
from trimtab.filters.request import Projection
from trimtab.model import namespace_of
from trimtab.placement import PLACERS
from trimtab.policies import Policies
from trimtab.round.placing import lightly_used, prefer_wanted
from trimtab.settings import Settings
from trimtab.state.in_flight import Flight, list_proposed
from trimtab.state.round_state import Histories
from trimtab.view import View
from trimtab.wire.hints import Hints, Pool
from trimtab.wire.ownership import Candidate

_CANDIDATES: Final = 64
_PROPOSED: Final = 1000
"""Limits: every lookup that places a bundle reads all but the groups."""

_LEAST: Final = 1e-4
"""Minimum load that one more bundle adds: an idle fleet's bundles must count too."""


def hints(
    view: View,
    settings: Settings,
    number: int,
    histories: Histories,
    flights: Mapping[str, Flight] = MappingProxyType({}),
) -> Hints:
    """The hints after round ``number``; they list what is proposed for bundles in ``flights``."""
    finder = _Finder(view, settings, histories)
    policies = view.policies
    shared = finder.anywhere()
    pools = tuple(
        Pool(namespaces=policy.namespaces, candidates=finder.under(name))
        for name, policy in policies.isolation.items()
    )
    named = {each.broker for each in chain(shared, *(pool.candidates for pool in pools))}
    domains = policies.domains if settings.placement.failure_domains else {}
    return Hints(
        round=number,
        candidates=shared,
        each=finder.each(),
        pools=pools,
        groups=_groups_of(policies),
        domains={broker: domain for broker, domain in domains.items() if broker in named},
        evenly=settings.placement.distribute_evenly,
        proposed=dict(islice((finder.pinned() | list_proposed(flights)).items(), _PROPOSED)),
    )


def _groups_of(policies: Policies) -> dict[str, tuple[str, ...]]:
    members: dict[str, list[str]] = {}
    for namespace in sorted(policies.groups):
        group = policies.group_of(namespace)
        if group is not None:
            members.setdefault(group, []).append(namespace)
    return {group: tuple(spaces) for group, spaces in members.items()}


class _Finder:
    """Finds the candidates of one policy after the other."""

    def __init__(self, view: View, settings: Settings, histories: Histories) -> None:
        self._view, self._settings = view, settings
        self._projection = Projection(view)
        self._light = lightly_used(view.brokers, settings)
        placement = settings.round.placement
        placer = PLACERS[placement](self._projection, histories.of(placement), settings)
        self._loads: list[float] = placer.loads().tolist()

    def anywhere(self) -> tuple[Candidate, ...]:
        """The candidates for namespaces under no isolation policy."""
        permits, available = self._projection.permits, self._view.brokers.available
        return self._candidates(permits.of_others(available))

    def under(self, policy: str) -> tuple[Candidate, ...]:
        """The candidates for the namespaces of an isolation policy."""
        permits, available = self._projection.permits, self._view.brokers.available
        return self._candidates(permits.under(policy, available))

    def pinned(self) -> dict[str, str]:
        """Bundle to the broker that it is pinned to, where that may have it."""
        row_of = {name: row for row, name in enumerate(self._view.brokers.names)}
        return {
            bundle: pin.broker
            for bundle, pin in sorted(self._view.controls.pins.items())
            if (row := row_of.get(pin.broker)) is not None
            and find_permitted(self._projection.request_for(namespace_of(bundle)))[row]
        }

    def each(self) -> float:
        total = sum(compress(self._loads, self._view.brokers.available.tolist()))
        return max(total / max(len(self._view.bundles.names), 1), _LEAST)

    def _candidates(self, allowed: Bools) -> tuple[Candidate, ...]:
        light = prefer_wanted(allowed, self._light)
        # No filter that is asked here looks at the namespace.
        request = self._projection.request_for("")
        rows = np.flatnonzero(narrow(request, light, UNCOUNTED, self._settings))
        names = self._view.brokers.names
        found = [Candidate(names[row], self._loads[row]) for row in rows.tolist()]
        return tuple(sorted(found, key=lambda each: (each.load, each.broker))[:_CANDIDATES])
