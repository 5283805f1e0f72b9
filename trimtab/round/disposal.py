"""Grants or refuses the wishes of one round in order, each in view of the earlier grants.

The rules that keep a plan safe are here, once for all strategies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Ints
from trimtab.filters import CAPS, FILTERS, may_unload, narrow, reachable
from trimtab.filters.request import Projection, Request, own_bundles, request_of
from trimtab.names import rows_of
from trimtab.placement import Placer
from trimtab.plan import MOST_AT_ONCE, Move, Plan, Refusal, ShedWish
from trimtab.reasons import Reason, Rule
from trimtab.round.repair_placement import fewest, lightly_used, prefer_wanted
from trimtab.settings import Settings
from trimtab.view import View


class _Grant(NamedTuple):
    wish: ShedWish
    destination: int
    last: bool
    """Whether it leaves its broker without bundles until another arrives."""


class Disposal:
    """Builds one plan. ``projection`` is the one that ``placer`` was opened with."""

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
        self._planned: set[int] = set()
        self._staying = own_bundles(view)
        self._awaited: Ints = np.zeros(len(view.brokers.names), dtype=np.int64)
        """How many bundles the wishes still to be decided would bring each broker."""
        self._light = lightly_used(view, settings)
        self._given: Ints = np.zeros(len(view.brokers.names), dtype=np.int64)
        self._spent = 0

    def plan(self, wishes: Sequence[ShedWish], cooling: Collection[str], spent: int = 0) -> Plan:
        """Turn every wish into a move or a refusal; ``cooling`` names the bundles that moved
        recently, ``spent`` is how much of the budget is used up."""
        self._spent = spent
        resting = frozenset(rows_of(self._view.bundles.names, cooling))
        placed = [wish.destination for wish in wishes if wish.destination is not None]
        np.add.at(self._awaited, placed, 1)
        granted, refusals = list[_Grant](), []
        for wish in wishes:
            if wish.destination is not None:
                self._awaited[wish.destination] -= 1
            answer = self._objection(wish, resting) or self._destination(wish)
            if isinstance(answer, Rule):
                refusals.append(self._refused(wish, answer))
            else:
                granted.append(self._granted(wish, answer))
        for each in self._unreplaced(granted):
            granted.remove(each)
            refusals.append(self._refused(each.wish, Rule.LAST_BUNDLE))
        return Plan(moves=tuple(map(self._move, granted)), refusals=tuple(refusals))

    def _objection(self, wish: ShedWish, resting: Collection[int]) -> Rule | None:
        bundles = self._view.bundles
        if wish.bundle in self._planned:
            return Rule.TWICE
        if self._view.intended[wish.bundle] != bundles.owner[wish.bundle]:
            return Rule.IN_FLIGHT
        if wish.bundle in resting:
            return Rule.COOLING_DOWN
        if not bundles.movable[wish.bundle]:
            return Rule.NOT_MOVABLE
        return self._broker_objection(wish)

    def _broker_objection(self, wish: ShedWish) -> Rule | None:
        if self._view.bundles.owner[wish.bundle] != wish.source:
            return Rule.UNOWNED
        if wish.destination == wish.source:
            return Rule.SAME_BROKER
        left = self._staying[wish.source] + self._awaited[wish.source] - 1
        if left < 1 and wish.reason is not Reason.DRAINED:
            return Rule.LAST_BUNDLE
        if self._spent + len(self._planned) >= budget(self._settings):
            return Rule.BUDGET
        return None

    def _destination(self, wish: ShedWish) -> int | Rule:
        """A broker row for the wish, checked in Pulsar's order; or the rule that leaves none."""
        source = None if wish.or_stay else wish.source
        request = request_of(self._view, self._projection, wish.bundle, source)
        allowed = reachable(request)
        if not allowed.any():
            others = np.count_nonzero(self._view.brokers.available) > 1
            return Rule.ISOLATED if others else Rule.NO_CANDIDATE
        if wish.reason is Reason.DRAINED:
            return self._emptied(request, allowed)
        if not may_unload(request):
            return Rule.ANTI_AFFINITY
        # The evenness filter counts bundles and would undo the shedder's choice of a pair: it does
        # not apply where the shedder placed.
        if wish.destination is not None:
            capped = narrow(request, allowed, CAPS, self._settings)
            if capped[wish.destination]:
                return wish.destination
            if wish.reason is Reason.UNDONE:
                return Rule.NO_CANDIDATE
        chosen = self._draw(request, narrow(request, allowed, FILTERS, self._settings))
        if not self._light[chosen]:
            chosen = self._draw(request, allowed)
        return Rule.SAME_BROKER if chosen == wish.source else chosen

    def _emptied(self, request: Request, allowed: Bools) -> int:
        """A broker for a bundle that must leave."""
        light = prefer_wanted(allowed, self._light)
        candidates = narrow(request, light, FILTERS, self._settings)
        if not self._placer.counts:
            candidates = fewest(candidates, self._given)
        return self._draw(request, candidates)

    def _draw(self, request: Request, candidates: Bools) -> int:
        best = self._placer.best(request.bundle, np.flatnonzero(candidates))
        return int(best[self._rng.integers(len(best))])

    def _granted(self, wish: ShedWish, destination: int) -> _Grant:
        self._planned.add(wish.bundle)
        self._staying[wish.source] -= 1
        self._staying[destination] += 1
        self._given[destination] += 1
        self._projection.add(wish.bundle, wish.source, destination)
        last = self._staying[wish.source] < 1 and wish.reason is not Reason.DRAINED
        return _Grant(wish, destination, last)

    def _unreplaced(self, granted: Sequence[_Grant]) -> Iterator[_Grant]:
        """Last bundles of brokers without a granted replacement."""
        lasts = [each for each in granted if each.last]
        while bare := [each for each in lasts if self._staying[each.wish.source] < 1]:
            lasts.remove(bare[-1])
            self._staying[bare[-1].wish.source] += 1
            self._staying[bare[-1].destination] -= 1
            yield bare[-1]

    def _move(self, grant: _Grant) -> Move:
        names, wish = self._view.brokers.names, grant.wish
        bundle = self._view.bundles.names[wish.bundle]
        return Move(
            bundle=bundle,
            source=names[wish.source],
            destination=names[grant.destination],
            reason=wish.reason,
            epoch=self._view.epoch(bundle),
        )

    def _refused(self, wish: ShedWish, rule: Rule) -> Refusal:
        names = self._view.brokers.names
        return Refusal(
            bundle=self._view.bundles.names[wish.bundle],
            source=names[wish.source],
            rule=rule,
            destination=None if wish.destination is None else names[wish.destination],
        )


def budget(settings: Settings) -> int:
    """How many moves a round may make."""
    return settings.round.max_moves or MOST_AT_ONCE
