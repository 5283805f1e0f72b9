"""How many more bundles a round may move: in all, off and to one broker, and of one tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trimtab.plan import MOST_AT_ONCE, Move
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.state.hand_overs import CLUSTER, Budgets, tenant_of


def budget(settings: Settings) -> int:
    """How many moves a round may make."""
    return settings.round.max_moves or MOST_AT_ONCE


class Allowance:
    """The budgets of one plan, as they are used up."""

    def __init__(
        self, settings: Settings, budgets: Budgets, spent: int = 0, moved: Iterable[Move] = ()
    ) -> None:
        """``spent``: how much of the round's own budget is used up; ``moved``: the moves that this
        round has granted already."""
        self._broker_moves, self._budgets = settings.plans.broker_moves, budgets
        self._left = budget(settings) - spent
        self._brokers = Counter[str]()
        self._tenants = Counter[str]()
        for move in moved:
            self._count(move.bundle, move.source, move.destination)

    def find_rule(self, bundle: str, source: str) -> Rule | None:
        """The budget that forbids a move of the bundle off its broker, if one does."""
        tenant = tenant_of(bundle)
        if self._left <= 0:
            return Rule.BUDGET
        if self._budgets.is_spent(CLUSTER, self._tenants[CLUSTER]):
            return Rule.MINUTE_BUDGET
        if self._budgets.is_spent(tenant, self._tenants[tenant]):
            return Rule.TENANT_BUDGET
        return Rule.BROKER_BUDGET if self.is_full(source) else None

    def is_full(self, broker: str) -> bool:
        """Whether no more moves may touch a broker in this round."""
        return 0 < self._broker_moves <= self._brokers[broker]

    def take(self, bundle: str, source: str, destination: str) -> None:
        """Count a granted move."""
        self._left -= 1
        self._count(bundle, source, destination)

    def _count(self, bundle: str, source: str, destination: str) -> None:
        self._brokers.update((source, destination))
        self._tenants.update((CLUSTER, tenant_of(bundle)))
