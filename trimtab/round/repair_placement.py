"""Places bundles without an owner in order, each in view of the earlier placements.

for each bundle that needs a broker, until there are enough for one batch:
  the broker it was on its way to, or is pinned to, if that is available
  else, of the brokers that policies allow, without its last owner if there is another:
    leave out overloaded ones, if others are left, and those that the filters reject
    keep those that were given the fewest bundles, unless the placement strategy counts itself
    the placement strategy chooses among them
"""

from __future__ import annotations

import numpy as np

from trimtab.arrays import RATE_IN, RATE_OUT, TOPICS, Ints
from trimtab.filters import find_permitted
from trimtab.filters.request import Expected
from trimtab.model import namespace_of
from trimtab.names import rows_by_name
from trimtab.ownership import Event
from trimtab.plan import MOST_AT_ONCE, Repair
from trimtab.repair_needs import Need, RepairNeeds
from trimtab.round.placing import Placing
from trimtab.view import Bundles


class RepairPlacement:
    """Builds one plan's repairs."""

    def __init__(self, placing: Placing, trouble: RepairNeeds) -> None:
        self._placing, self._view, self._trouble = placing, placing.view, trouble
        self._row_of = {name: row for row, name in enumerate(self._view.brokers.names)}
        self._given: Ints = np.zeros(len(self._row_of), dtype=np.int64)
        self._typical = _typical(self._view.bundles)

    def repairs(self) -> tuple[tuple[Repair, ...], int]:
        """A repair for each need, except for bundles that no broker can take now, up to
        MOST_AT_ONCE; and how many needs are left."""
        needs, rows = self._trouble.needs, self._rows()
        self._expect_given(rows)
        found: list[Repair] = []
        for looked_at, need in enumerate(needs):
            if len(found) == MOST_AT_ONCE:
                return tuple(found), len(needs) - looked_at
            repair = self._repair(need, rows.get(need.bundle))
            if repair is not None:
                found.append(repair)
        return tuple(found), 0

    def _rows(self) -> dict[str, int]:
        """The rows of the bundles that need repair, or are awaited by a broker, if in the view."""
        trouble, names = self._trouble, self._view.bundles.names
        wanted = {*trouble.expected, *(need.bundle for need in trouble.needs)}
        return rows_by_name(names, wanted)

    def _expect_given(self, rows: dict[str, int]) -> None:
        """Count the bundles that brokers were given and do not serve yet."""
        trouble = self._trouble
        needing = {need.bundle for need in trouble.needs}
        for bundle in sorted(trouble.expected.keys() - needing):
            broker = self._row_of.get(trouble.expected[bundle])
            if broker is None:
                continue
            self._given[broker] += 1
            # The projection has counted what the view shows.
            if bundle not in rows:
                self._placing.projection.expect(namespace_of(bundle), broker, self._typical)
                self._placing.note(bundle, broker)

    def _repair(self, need: Need, row: int | None) -> Repair | None:
        broker = need.owner if need.event is Event.KEEP else None
        if need.event is Event.ASSIGN:
            chosen = self._destination(need)
            if chosen is None:
                return None
            self._given[chosen] += 1
            load = self._typical if row is None else self._load(row)
            self._placing.projection.expect(namespace_of(need.bundle), chosen, load)
            broker = self._view.brokers.names[chosen]
        return Repair(need.bundle, need.event, broker, need.reason, need.epoch)

    def _destination(self, need: Need) -> int | None:
        """A broker row; None if no broker may have the bundle."""
        request = self._placing.projection.request_for(namespace_of(need.bundle))
        allowed = find_permitted(request)
        pin = self._view.controls.pins.get(need.bundle)
        for wanted in (need.destination, pin and pin.broker):
            intended = self._row_of.get(wanted or "")
            if intended is not None and allowed[intended]:
                return intended
        owner = self._row_of.get(need.owner or "")
        if owner is not None and np.count_nonzero(allowed) > 1:
            allowed[owner] = False
        if not allowed.any():
            return None
        return self._placing.draw_evenly(need.bundle, request, allowed, self._given)

    def _load(self, row: int) -> Expected:
        bundles = self._view.bundles
        rates = bundles.long[:, row]
        return Expected(float(rates[RATE_IN] + rates[RATE_OUT]), int(bundles.counts[TOPICS, row]))


def _typical(bundles: Bundles) -> Expected:
    """The load assumed for a bundle without any figures: the mean of the others, but above zero so
    that it counts at all."""
    if not len(bundles.names):
        return Expected(1.0, 1)
    rates = float((bundles.long[RATE_IN] + bundles.long[RATE_OUT]).mean())
    return Expected(max(rates, 1.0), max(int(bundles.counts[TOPICS].mean()), 1))
