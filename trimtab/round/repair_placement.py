"""Places bundles without an owner in order, each in view of the earlier placements.

for each bundle that needs a broker, until there are enough for one batch:
  the broker it was on its way to, if that is available
  else, of the brokers that policies allow, without its last owner if there is another:
    leave out overloaded ones, if others are left, and those that the filters reject
    keep those that were given the fewest bundles, unless the placement strategy counts itself
    the placement strategy chooses among them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trimtab.arrays import RATE_IN, RATE_OUT, TOPICS, Bools, Ints
from trimtab.filters import FILTERS, find_permitted, narrow
from trimtab.filters.request import Expected, Projection, Request
from trimtab.load import usage
from trimtab.model import namespace_of
from trimtab.names import rows_of
from trimtab.ownership import Event
from trimtab.placement import Placer
from trimtab.plan import MOST_AT_ONCE, Repair
from trimtab.repair_needs import Need
from trimtab.settings import Settings
from trimtab.view import View


class RepairPlacement:
    """Builds one plan's repairs. ``projection`` is the one that ``placer`` was opened with."""

    def __init__(
        self,
        view: View,
        projection: Projection,
        placer: Placer[Any],
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        self._view, self._projection, self._placer = view, projection, placer
        self._settings, self._rng = settings, rng
        brokers, bundles = view.brokers, view.bundles
        self._row_of = {name: row for row, name in enumerate(brokers.names)}
        self._spaces = {name: row for row, name in enumerate(bundles.namespaces)}
        self._light = lightly_used(view, settings)
        self._given: Ints = np.zeros(len(brokers.names), dtype=np.int64)
        self._typical = _typical(view)

    def repairs(self, needs: Sequence[Need]) -> tuple[tuple[Repair, ...], int]:
        """A repair for each need, except for bundles that no broker can take now, up to
        MOST_AT_ONCE; and how many needs are left."""
        expected, needing = self._view.trouble.expected, {need.bundle for need in needs}
        rows = self._rows({*expected, *needing})
        for bundle in sorted(expected.keys() - needing):
            broker = self._row_of.get(expected[bundle])
            if broker is not None:
                self._given[broker] += 1
                # The projection has counted what the view shows.
                if bundle not in rows:
                    self._projection.expect(self._space(bundle), broker, self._typical)
                    if self._placer.counts:
                        self._placer.best(bundle, np.array([broker]))
        found: list[Repair] = []
        for looked_at, need in enumerate(needs):
            if len(found) == MOST_AT_ONCE:
                return tuple(found), len(needs) - looked_at
            repair = self._repair(need, rows.get(need.bundle))
            if repair is not None:
                found.append(repair)
        return tuple(found), 0

    def _rows(self, bundles: set[str]) -> dict[str, int]:
        names = self._view.bundles.names
        return {names[row]: row for row in rows_of(names, bundles)}

    def _repair(self, need: Need, row: int | None) -> Repair | None:
        broker = need.owner if need.event is Event.KEEP else None
        if need.event is Event.ASSIGN:
            chosen = self._destination(need)
            if chosen is None:
                return None
            self._given[chosen] += 1
            load = self._typical if row is None else self._load(row)
            self._projection.expect(self._space(need.bundle), chosen, load)
            broker = self._view.brokers.names[chosen]
        return Repair(need.bundle, need.event, broker, need.reason, need.epoch)

    def _destination(self, need: Need) -> int | None:
        """A broker row; None if no broker may have the bundle."""
        request = self._request(need.bundle)
        allowed = find_permitted(request)
        intended = self._row_of.get(need.destination or "")
        if intended is not None and allowed[intended]:
            return intended
        owner = self._row_of.get(need.owner or "")
        if owner is not None and np.count_nonzero(allowed) > 1:
            allowed[owner] = False
        if not allowed.any():
            return None
        allowed = prefer_wanted(allowed, self._light)
        candidates = narrow(request, allowed, FILTERS, self._settings)
        if not self._placer.counts:
            candidates = fewest(candidates, self._given)
        best = self._placer.best(need.bundle, np.flatnonzero(candidates))
        return int(best[self._rng.integers(len(best))])

    def _request(self, bundle: str) -> Request:
        return Request(self._view, self._projection, bundle, self._space(bundle))

    def _space(self, bundle: str) -> int:
        return self._spaces.get(namespace_of(bundle), -1)

    def _load(self, row: int) -> Expected:
        bundles = self._view.bundles
        rates = bundles.long[:, row]
        return Expected(float(rates[RATE_IN] + rates[RATE_OUT]), int(bundles.counts[TOPICS, row]))


def lightly_used(view: View, settings: Settings) -> Bools:
    """(n,) brokers that are not overloaded."""
    loads = usage(view.brokers.resources, settings.weights)
    light: Bools = loads <= settings.round.overloaded_threshold
    return light


def prefer_wanted(candidates: Bools, wanted: Bools) -> Bools:
    """Those of ``candidates`` that are ``wanted``; all of them if none is."""
    both = candidates & wanted
    return both if both.any() else candidates


def fewest(candidates: Bools, given: Ints) -> Bools:
    """Those of ``candidates`` (at least one) that were given least."""
    least: Bools = candidates & (given == given[candidates].min())
    return least


def _typical(view: View) -> Expected:
    """The load assumed for a bundle without any figures: the mean of the others, but above zero so
    that it counts at all."""
    bundles = view.bundles
    if not len(bundles.names):
        return Expected(1.0, 1)
    rates = float((bundles.long[RATE_IN] + bundles.long[RATE_OUT]).mean())
    return Expected(max(rates, 1.0), max(int(bundles.counts[TOPICS].mean()), 1))
