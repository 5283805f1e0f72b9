"""A plan being built, with only moves that the round will grant.

receives = the brokers of a pool that the round lets a shedder choose: within the topic cap, of the
           wanted load manager, of the latest version (`trimtab.filters.CAPS`); but none that
           reports to near overload while what is known of its bundles does not explain that: they
           burst, and that is not found yet
`trimtab.planner.groups` handles anti-affinity groups.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from trimtab.arrays import TOPICS, Bools
from trimtab.filters import CAPS, may_unload, narrow, reachable
from trimtab.filters.request import Projection
from trimtab.load import usage
from trimtab.load_model.fleet import Fleet
from trimtab.planner.pools import Pool
from trimtab.planner.search.ground import BoardMove, Ground
from trimtab.planner.search.order import order_moves
from trimtab.planner.search.standing import stand
from trimtab.settings import Settings
from trimtab.view import View


class Draft:
    """A plan being built: the fleet after its moves, and what else the round would grant."""

    def __init__(self, view: View, fleet: Fleet, settings: Settings, reach: float = 1.0) -> None:
        self.view, self.fleet, self.settings = view, fleet, settings
        self.reach = reach
        """The part of its way to the target that a plan goes."""
        self.projection = Projection(view)
        self.peak = float(fleet.usage.max(initial=0.0)) + 1e-9
        """No move may raise a broker's usage above this."""
        self.staying = self.projection.own_bundles()
        """(n,) bundles each broker will have, without heartbeat and SLA bundles."""
        self.steps: list[BoardMove] = []
        """The plan's moves, in order."""
        self.moved: set[int] = set()
        """Rows of the bundles that the plan moves."""
        self.cut = False
        """Whether the plan ends short of its aim: the next round continues it."""
        self.giants: list[int] = []
        """Rows of the bundles that no plan can make room for (`trimtab.planner.giants`)."""
        self.bound = bool(view.policies.isolation or view.policies.groups)
        """Whether policies keep bundles from some brokers."""
        placement = settings.placement
        self._choosy = bool(placement.load_manager) or placement.prefer_later_versions
        reported = usage(view.brokers.resources, settings.weights)
        self._explained = (reported <= fleet.near_overload) | (fleet.usage > fleet.near_overload)

    def ground(self, pool: Pool, staying: Collection[int] = ()) -> Ground:
        """The start of a pool's plan; bundle rows ``staying`` are not moved."""
        free = pool.free
        if staying:
            free = free.copy()
            free[[*staying]] = False
        return Ground.of(self.fleet, pool.brokers, free, self._receives(pool))

    def find_returning(self, steps: Sequence[BoardMove]) -> set[int]:
        """Rows of the bundles that the steps take back to the broker that they left of late."""
        names, brokers, left = self.view.bundles.names, self.view.brokers.names, self.view.left
        if not left:
            # Names of ten thousand bundles take a quarter of a second to spell out.
            return set()
        return {s.bundle for s in steps if left.get(names[s.bundle]) == brokers[s.destination]}

    def keeps(self, ground: Ground) -> list[int]:
        """(n,) bundles each broker must keep of those it could give: one if it has no others."""
        last = (self.staying > 0) & (self.staying <= np.diff(ground.ends))
        keeps: list[int] = last.astype(np.int64).tolist()
        return keeps

    def destinations(self, row: int) -> Bools:
        """(n,) brokers to which the round would let a shedder move a bundle from its broker."""
        request = self.projection.request(row, int(self.fleet.where[row]))
        allowed = reachable(request)
        if not allowed.any() or not may_unload(request):
            return np.zeros(len(allowed), np.bool_)
        return narrow(request, allowed, CAPS, self.settings)

    def group(self, row: int) -> str | None:
        """The anti-affinity group of a bundle."""
        bundles = self.view.bundles
        return self.view.policies.group_of(bundles.namespaces[bundles.namespace[row]])

    def granted(self, steps: Sequence[BoardMove]) -> tuple[BoardMove, ...]:
        """The steps that the round would grant one after the other, in a suitable order."""
        kept = tuple(steps)
        while kept and self._capped(kept):
            refused = self._refused(kept)
            if not refused:
                break
            kept = order_moves(self.fleet, [step for step in kept if step not in refused])
        return kept

    def add(self, steps: Sequence[BoardMove]) -> None:
        """Add the steps to the plan."""
        if steps and not self.moved:
            # Copy on first write: until now the columns were the caller's.
            usage, where = self.fleet.usage.copy(), self.fleet.where.copy()
            movable = self.fleet.movable.copy()
            self.fleet = replace(self.fleet, usage=usage, where=where, movable=movable)
        if steps:
            after = stand(self.fleet, steps).fleet
            # In place: grounds of this draft see it.
            self.fleet.usage[:] = after.usage
            self.fleet = replace(self.fleet, takes=after.takes)
        self.steps += steps
        for step in steps:
            # A bundle moves only once in a plan.
            self.fleet.where[step.bundle] = step.destination
            self.fleet.movable[step.bundle] = False
            self.staying[step.source] -= 1
            self.staying[step.destination] += 1
            self.moved.add(step.bundle)
            # Without policies all moves are planned in one go, and nothing is projected.
            if self.bound:
                self.projection.add(*step)

    def _receives(self, pool: Pool) -> Bools:
        """The part of a pool's brokers that a bundle of its hottest broker may go to."""
        rows, brokers = np.flatnonzero(pool.free), pool.brokers & self._explained
        most = self.settings.placement.max_topics
        if not rows.size or not (self._choosy or self.projection.most_topics > most):
            return brokers
        hottest = int(np.argmax(np.where(pool.brokers, self.fleet.usage, -np.inf)))
        request = self.projection.request(int(rows[0]), hottest)
        brokers[hottest] = False
        return narrow(request, brokers, CAPS, self.settings)

    def _capped(self, steps: Sequence[BoardMove]) -> bool:
        """Whether a filter may refuse one of the steps."""
        rows, _, to = np.array(steps).T
        brokers, topics = self.view.brokers, self.view.bundles.counts[TOPICS, rows]
        arriving = np.bincount(to, topics, len(brokers.names)) + self.projection.topics
        most = (brokers.topics + arriving).max()
        return self._choosy or bool(most > self.settings.placement.max_topics)

    def _refused(self, steps: Sequence[BoardMove]) -> set[BoardMove]:
        refused = set()
        for step in steps:
            if self.destinations(step.bundle)[step.destination]:
                self.projection.add(*step)
            else:
                refused.add(step)
        for step in steps:
            if step not in refused:
                self.projection.withdraw(*step)
        return refused
