"""How many more bundles a round may move: in all, off and to one broker, and of one tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trimtab.plan import MOST_AT_ONCE, Move
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.state.hand_overs import CLUSTER, HandOvers, budget_of, count_spent, tenant_of
from trimtab.view import View


def budget(settings: Settings) -> int:
    """How many moves a round may make."""
    return settings.round.max_moves or MOST_AT_ONCE


class Allowance:
    """The budgets of one plan, as they are used up; ``view`` names its rows."""

    def __init__(
        self,
        view: View,
        settings: Settings,
        handed: HandOvers,
        spent: int = 0,
        moved: Iterable[Move] = (),
    ) -> None:
        """``spent``: how much of the round's own budget is used up; ``moved``: the moves that this
        round has granted already."""
        self._view, self._settings, self._handed = view, settings, handed
        self._left = budget(settings) - spent
        self._brokers = Counter[str]()
        self._tenants = Counter[str]()
        for move in moved:
            self._count(move.bundle, move.source, move.destination)

    def find_rule(self, bundle: int, source: int) -> Rule | None:
        """The budget that forbids a move off broker row ``source``, if one does."""
        tenant = tenant_of(self._view.bundles.names[bundle])
        if self._left <= 0:
            return Rule.BUDGET
        if self._is_spent(CLUSTER):
            return Rule.MINUTE_BUDGET
        if self._is_spent(tenant):
            return Rule.TENANT_BUDGET
        return Rule.BROKER_BUDGET if self.is_full(source) else None

    def is_full(self, broker: int) -> bool:
        """Whether no more moves may touch a broker row in this round."""
        most = self._settings.plans.broker_moves
        return 0 < most <= self._brokers[self._view.brokers.names[broker]]

    def take(self, bundle: int, source: int, destination: int) -> None:
        """Count a granted move."""
        names = self._view.brokers.names
        self._left -= 1
        self._count(self._view.bundles.names[bundle], names[source], names[destination])

    def _count(self, bundle: str, source: str, destination: str) -> None:
        self._brokers.update((source, destination))
        self._tenants.update((CLUSTER, tenant_of(bundle)))

    def _is_spent(self, tenant: str) -> bool:
        plans, view = self._settings.plans, self._view
        most = budget_of(tenant, plans, view.controls)
        if most is None:
            return False
        spent = count_spent(self._handed, tenant, plans, view.now_ms)
        return spent + self._tenants[tenant] >= most
