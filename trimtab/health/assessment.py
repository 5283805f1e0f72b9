"""What a round finds besides load: absent brokers, needed repairs, and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from trimtab.doubt import Doubt, gravest
from trimtab.health.repair import Damage, damage, is_unserved, list_expected, waits_for_lookup
from trimtab.repair_needs import RepairNeeds
from trimtab.settings import Settings
from trimtab.state.liveness import suspicions
from trimtab.state.memory import Memory
from trimtab.view import View
from trimtab.wire.ownership import Record


@dataclass(frozen=True, slots=True)
class Assessment:
    """The state of one cluster's health at one time."""

    doubts: Mapping[str, Doubt]
    """Every cause with its level."""
    found: Damage
    trouble: RepairNeeds
    away: frozenset[str]
    """Brokers that must not get bundles now."""
    unserved: int
    """Number of bundles that no broker serves though one should."""

    def shown(self, view: View) -> View:
        """The view with its brokers' availability and the repair needs."""
        there = [name not in self.away for name in view.brokers.names]
        brokers = replace(view.brokers, available=np.array(there, dtype=np.bool_))
        return replace(view, brokers=brokers, trouble=self.trouble)


def situation_of(
    memory: Memory, records: Mapping[str, Record], settings: Settings, now_ms: int
) -> Assessment:
    """Assess a cluster; ``memory`` has learnt ``records``, see `health.repair.learn_records`."""
    liveness = memory.liveness
    suspected = suspicions(liveness, memory.appended, memory.paces, settings, now_ms)
    level = gravest([*suspected.values(), *memory.doubts.values()])
    found = damage(memory, records, level, settings, now_ms)
    return Assessment(
        doubts=suspected | memory.doubts,
        found=found,
        trouble=RepairNeeds(
            needs=found.needs,
            expected=list_expected(memory, records),
            draining=liveness.draining,
            doubt=level,
        ),
        away=frozenset(liveness.out_of_use(settings.flapping, now_ms)),
        unserved=sum(
            is_unserved(record, liveness.gone) and not waits_for_lookup(record, settings)
            for record in (records[bundle] for bundle in memory.unsettled)
        ),
    )
