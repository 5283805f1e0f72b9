"""Grants or refuses the wishes of one round in order, each in view of the earlier grants.

The rules that keep a plan safe are here, once for all strategies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Ints
from trimtab.filters import CAPS, FILTERS, may_unload, narrow, reachable
from trimtab.plan import Move, Plan, Refusal, ShedWish
from trimtab.reasons import EMPTYING, Reason, Rule
from trimtab.repair_needs import RepairNeeds
from trimtab.round.allowance import Allowance
from trimtab.round.placing import Placing
from trimtab.round.repair_placement import RepairPlacement
from trimtab.settings import Settings
from trimtab.state.hand_overs import Budgets
from trimtab.state.round_state import Histories, RoundState
from trimtab.view import View

_NOWHERE_ELSE: Final = MappingProxyType(
    {
        Reason.UNDONE: Rule.NO_CANDIDATE,
        Reason.ASKED: Rule.UNFIT_DESTINATION,
        Reason.APPROVED: Rule.UNFIT_DESTINATION,
    }
)
"""Reasons of moves that go where they are wished or not at all, and the rule if they may not."""


class Wanted(NamedTuple):
    """What one part of a round wants done."""

    wishes: Sequence[ShedWish]
    cooling: Collection[int] = ()
    """Rows of the bundles that moved recently."""
    trouble: RepairNeeds | None = None
    """What to repair first."""
    spent: int = 0
    """How much of the round's budget is used up."""
    moved: tuple[Move, ...] = ()
    """The moves that the round has granted already."""


def grant(
    view: View, wanted: Wanted, state: RoundState, settings: Settings, rng: np.random.Generator
) -> tuple[Plan, Histories]:
    """The repairs, moves and refusals, and the histories after them."""
    placing = Placing(view, state.histories, settings, rng)
    plan = Plan()
    if wanted.trouble is not None:
        repairs, postponed = RepairPlacement(placing, wanted.trouble).repairs()
        plan = replace(plan, repairs=repairs, postponed=postponed)
    budgets = Budgets(settings.plans, view.controls, state.handed, view.now_ms)
    allowance = Allowance(settings, budgets, wanted.spent, wanted.moved)
    moves, refusals = Disposal(placing, allowance).judge(wanted.wishes, wanted.cooling)
    return replace(plan, moves=moves, refusals=refusals), placing.remembered()


class Disposal:
    """Builds one plan's moves."""

    def __init__(self, placing: Placing, allowance: Allowance) -> None:
        self._placing, self._view, self._settings = placing, placing.view, placing.settings
        self._allowance = allowance
        self._staying = placing.staying
        self._awaited: Ints = np.zeros_like(self._staying)
        """How many bundles the wishes still to be decided would bring each broker."""
        self._given: Ints = np.zeros_like(self._staying)
        self._granted: dict[ShedWish, int] = {}
        """The wishes granted so far, each with its destination."""
        self._moved: set[int] = set()
        self._lasts: list[ShedWish] = []
        """Granted wishes that leave a broker without bundles until another arrives."""

    def judge(
        self, wishes: Sequence[ShedWish], cooling: Collection[int]
    ) -> tuple[tuple[Move, ...], tuple[Refusal, ...]]:
        """Turn every wish into a move or a refusal; ``cooling`` has the bundle rows that moved
        recently."""
        placed = [wish.destination for wish in wishes if wish.destination is not None]
        np.add.at(self._awaited, placed, 1)
        refusals: list[Refusal] = []
        for wish in wishes:
            if wish.destination is not None:
                self._awaited[wish.destination] -= 1
            answer = self._find_rule(wish, cooling) or self._destination(wish)
            if isinstance(answer, Rule):
                refusals.append(self._refuse(wish, answer))
            else:
                self._grant(wish, answer)
        for wish in self._unreplaced():
            del self._granted[wish]
            refusals.append(self._refuse(wish, Rule.LAST_BUNDLE))
        moves = tuple(self._move(wish, to) for wish, to in self._granted.items())
        return moves, tuple(refusals)

    def _find_rule(self, wish: ShedWish, cooling: Collection[int]) -> Rule | None:
        """The first rule that refuses the wish, wherever its bundle would go."""
        bundle, source, bundles = wish.bundle, wish.source, self._view.bundles
        staying = self._staying[source] + self._awaited[source] - 1
        rules = (
            (Rule.TWICE, bundle in self._moved),
            (Rule.IN_FLIGHT, self._view.intended[bundle] != bundles.owner[bundle]),
            (Rule.COOLING_DOWN, bundle in cooling),
            (Rule.NOT_MOVABLE, not bundles.movable[bundle]),
            (Rule.UNOWNED, bundles.owner[bundle] != source),
            (Rule.SAME_BROKER, wish.destination == source),
            (Rule.LAST_BUNDLE, staying < 1 and wish.reason not in EMPTYING),
        )
        rule = next((rule for rule, refuses in rules if refuses), None)
        broker = self._view.brokers.names[source]
        return rule or self._allowance.find_rule(bundles.names[bundle], broker)

    def _destination(self, wish: ShedWish) -> int | Rule:
        """A broker row for the wish, checked in Pulsar's order; or the rule that leaves none."""
        placing, bundle = self._placing, self._view.bundles.names[wish.bundle]
        request = placing.projection.request(wish.bundle, None if wish.or_stay else wish.source)
        allowed = reachable(request)
        roomy = self._with_room(allowed)
        if not roomy.any():
            return self._shortage(allowed)
        if wish.reason is Reason.DRAINED:
            return placing.draw_evenly(bundle, request, roomy, self._given)
        if not may_unload(request):
            return Rule.ANTI_AFFINITY
        # The evenness filter counts bundles and would undo the shedder's choice of a pair: it does
        # not apply where the shedder placed.
        if wish.destination is not None:
            capped = narrow(request, allowed, CAPS, self._settings)
            if capped[wish.destination]:
                return wish.destination if roomy[wish.destination] else Rule.BROKER_BUDGET
            if wish.reason in _NOWHERE_ELSE:
                return _NOWHERE_ELSE[Reason(wish.reason)]
        chosen = placing.draw(bundle, narrow(request, roomy, FILTERS, self._settings))
        if not placing.light[chosen]:
            chosen = placing.draw(bundle, roomy)
        return Rule.SAME_BROKER if chosen == wish.source else chosen

    def _shortage(self, allowed: Bools) -> Rule:
        """Why no broker may get a bundle that policies allow on ``allowed`` ones."""
        if allowed.any():
            return Rule.BROKER_BUDGET
        others = np.count_nonzero(self._view.brokers.available) > 1
        return Rule.ISOLATED if others else Rule.NO_CANDIDATE

    def _with_room(self, allowed: Bools) -> Bools:
        """Those of the ``allowed`` brokers (n,) that may get another bundle in this round."""
        if not self._settings.plans.broker_moves:
            return allowed
        full = np.array([*map(self._allowance.is_full, self._view.brokers.names)], np.bool_)
        roomy: Bools = allowed & ~full
        return roomy

    def _grant(self, wish: ShedWish, destination: int) -> None:
        self._granted[wish] = destination
        self._moved.add(wish.bundle)
        names, bundle = self._view.brokers.names, self._view.bundles.names[wish.bundle]
        self._allowance.take(bundle, names[wish.source], names[destination])
        self._staying[wish.source] -= 1
        self._staying[destination] += 1
        self._given[destination] += 1
        self._placing.projection.add(wish.bundle, wish.source, destination)
        if self._staying[wish.source] < 1 and wish.reason not in EMPTYING:
            self._lasts.append(wish)

    def _unreplaced(self) -> Iterator[ShedWish]:
        """Granted last bundles of brokers without a granted replacement, the last one first."""
        while bare := [wish for wish in self._lasts if self._staying[wish.source] < 1]:
            wish = bare[-1]
            self._lasts.remove(wish)
            self._staying[wish.source] += 1
            self._staying[self._granted[wish]] -= 1
            yield wish

    def _move(self, wish: ShedWish, destination: int) -> Move:
        names, bundle = self._view.brokers.names, self._view.bundles.names[wish.bundle]
        return Move(
            bundle=bundle,
            source=names[wish.source],
            destination=names[destination],
            reason=wish.reason,
            epoch=self._view.epoch(bundle),
        )

    def _refuse(self, wish: ShedWish, rule: Rule) -> Refusal:
        names = self._view.brokers.names
        return Refusal(
            bundle=self._view.bundles.names[wish.bundle],
            source=names[wish.source],
            rule=rule,
            destination=None if wish.destination is None else names[wish.destination],
        )
