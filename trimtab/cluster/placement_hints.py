"""Placement hints for lookups: brokers that may get an unowned bundle, least loaded first.

candidates = available brokers, without overloaded ones if others are left, that the caps permit
each       = mean usage per bundle
Each namespace under a policy gets its own candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress, islice
from types import MappingProxyType
from typing import Final

import numpy as np

from trimtab.arrays import Bools
from trimtab.filters import CAPS, find_permitted, narrow
from trimtab.filters.request import Projection
from trimtab.load import usage
from trimtab.round.placing import lightly_used, prefer_wanted
from trimtab.settings import Settings
from trimtab.state.in_flight import Flight, list_proposed
from trimtab.view import View
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Candidate

_CANDIDATES: Final = 64
_NAMESPACES: Final = 1000
_PROPOSED: Final = 1000
"""Limits: every lookup that places a bundle reads all the hints."""

_LEAST: Final = 1e-4
"""Minimum usage that one more bundle adds: an idle fleet's bundles must count too."""


def hints(
    view: View,
    settings: Settings,
    namespaces: Iterable[str],
    number: int,
    flights: Mapping[str, Flight] = MappingProxyType({}),
) -> Hints:
    """The hints after round ``number``; they list those of ``namespaces`` under a policy, and what
    is proposed for bundles in ``flights``."""
    finder = _Finder(view, settings)
    bound = [name for name in sorted(namespaces) if view.policies.binds(name)]
    return Hints(
        round=number,
        candidates=finder.anywhere(),
        each=finder.each(),
        namespaces={name: finder.within(name) for name in bound[:_NAMESPACES]},
        proposed=dict(islice(sorted(list_proposed(flights).items()), _PROPOSED)),
    )


class _Finder:
    """Finds the candidates for one namespace after the other."""

    def __init__(self, view: View, settings: Settings) -> None:
        self._view, self._settings = view, settings
        self._projection = Projection(view)
        self._light = lightly_used(view, settings)
        self._loads: list[float] = usage(view.brokers.resources, settings.weights).tolist()

    def anywhere(self) -> tuple[Candidate, ...]:
        """The candidates for namespaces under no policy."""
        allowed = self._projection.permits.of_others(self._view.brokers.available)
        return self._candidates("", allowed)

    def within(self, namespace: str) -> tuple[Candidate, ...]:
        """The candidates for a namespace under a policy."""
        return self._candidates(namespace, find_permitted(self._projection.request_for(namespace)))

    def each(self) -> float:
        used = sum(compress(self._loads, self._view.brokers.available.tolist()))
        return max(used / max(len(self._view.bundles.names), 1), _LEAST)

    def _candidates(self, namespace: str, allowed: Bools) -> tuple[Candidate, ...]:
        light = prefer_wanted(allowed, self._light)
        request = self._projection.request_for(namespace)
        rows = np.flatnonzero(narrow(request, light, CAPS, self._settings))
        names = self._view.brokers.names
        found = [Candidate(names[row], self._loads[row]) for row in rows.tolist()]
        return tuple(sorted(found, key=lambda each: (each.load, each.broker))[:_CANDIDATES])
