"""Counts of moves that budgets compare with: of the whole cluster, and of tenants.

Counted is by sixtieths of a budget's period, so that a budget binds for up to a sixtieth longer
than it says, and never for less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trimtab.controls import Controls
from trimtab.settings import PlanSettings

HandOvers = dict[str, tuple[tuple[int, int], ...]]
"""Tenant, or CLUSTER, to the beginnings of sixtieths of its period (ms), each with its moves."""

CLUSTER: Final = ""
_MINUTE_MS: Final = 60_000
_PARTS: Final = 60


def budget_of(tenant: str, settings: PlanSettings, controls: Controls) -> int | None:
    """How many moves of the tenant's bundles, or of the CLUSTER's, its period may have; None: any
    number."""
    if tenant == CLUSTER:
        return settings.minute_moves or None
    return controls.budgets.get(tenant, settings.tenant_moves or None)


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets of a cluster and its tenants, and the moves of their present periods."""

    settings: PlanSettings
    controls: Controls
    handed: HandOvers
    now_ms: int

    def is_spent(self, tenant: str, more: int) -> bool:
        """Whether the tenant, or the CLUSTER, may have no more moves after so many ``more``."""
        most = budget_of(tenant, self.settings, self.controls)
        if most is None:
            return False
        return count_spent(self.handed, tenant, self.settings, self.now_ms) + more >= most

    def after(self, bundles: Iterable[str]) -> HandOvers:
        """The counts after these bundles move now, without those whose period has passed."""
        moved = Counter(tenant for bundle in bundles for tenant in (CLUSTER, tenant_of(bundle)))
        after: HandOvers = {}
        for tenant in sorted({*self.handed, *moved}):
            if budget_of(tenant, self.settings, self.controls) is None:
                continue
            period_ms = _period_ms(tenant, self.settings)
            part = self.now_ms // (period_ms // _PARTS) * (period_ms // _PARTS)
            since = self.now_ms - 2 * period_ms
            counts = Counter({at: n for at, n in self.handed.get(tenant, ()) if at > since})
            counts[part] += moved[tenant]
            after[tenant] = tuple(sorted((+counts).items()))
        return {tenant: counts for tenant, counts in after.items() if counts}


def tenant_of(bundle: str) -> str:
    """The tenant of a bundle or namespace."""
    return bundle.partition("/")[0]


def count_spent(handed: HandOvers, tenant: str, settings: PlanSettings, now_ms: int) -> int:
    """The moves of the tenant's present period."""
    period_ms = _period_ms(tenant, settings)
    since = now_ms - period_ms - period_ms // _PARTS
    return sum(count for at, count in handed.get(tenant, ()) if at > since)


def _period_ms(tenant: str, settings: PlanSettings) -> int:
    return _MINUTE_MS if tenant == CLUSTER else round(1000 * settings.tenant_period)
