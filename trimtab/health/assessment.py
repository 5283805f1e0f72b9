"""What a round finds besides load: absent brokers, needed repairs, and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from trimtab.doubt import Doubt, doubt_of_losses, doubt_of_silence, gravest
from trimtab.health.repair import Damage, damage
from trimtab.health.unsettled import is_unserved, list_expected, waits_for_lookup
from trimtab.ownership import State
from trimtab.repair_needs import RepairNeeds
from trimtab.settings import Settings
from trimtab.state.liveness import heard
from trimtab.state.memory import Memory
from trimtab.view import View
from trimtab.wire.ownership import Record

AT_ONCE_MS: Final = 60_000
"""Losses within this time count together."""

_LATE_MS: Final = 10_000
"""A lease's duration: a renewal missed longer ago has since been made, or the lease lost."""


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
    """Number of bundles that no broker serves though one should, quarantined ones included."""
    unserved_since_ms: int
    """When the first was learnt to have none, or was quarantined (epoch ms); 0 without any."""
    quarantined: int
    """How many of them are given to no broker until they are readmitted."""

    def shown(self, view: View) -> View:
        """The view with its brokers' availability and the repair needs."""
        there = [name not in self.away for name in view.brokers.names]
        brokers = replace(view.brokers, available=np.array(there, dtype=np.bool_))
        return replace(view, brokers=brokers, trouble=self.trouble)


def situation_of(
    memory: Memory, records: Mapping[str, Record], settings: Settings, now_ms: int
) -> Assessment:
    """Assess a cluster; ``memory`` has learnt ``records``, see `health.unsettled.learn_records`."""
    liveness = memory.liveness
    suspected = suspicions(memory, records, settings, now_ms)
    level = gravest([*suspected.values(), *memory.doubts.values()])
    unserved = [
        since_ms
        for bundle, since_ms in memory.unsettled.items()
        if is_unserved(records[bundle], liveness.gone)
        and not waits_for_lookup(records[bundle], settings)
    ]
    quarantined = [each.since for each in records.values() if each.state is State.QUARANTINED]
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
        unserved=len(unserved) + len(quarantined),
        unserved_since_ms=min([*unserved, *quarantined], default=0),
        quarantined=len(quarantined),
    )


def suspicions(
    memory: Memory, records: Mapping[str, Record], settings: Settings, now_ms: int
) -> dict[str, Doubt]:
    """Cause to level of doubt, from how many brokers are silent or lost at once.

    An absent broker that owns nothing has left, and does not count; where there are no records
    (`round.observe_only`) all count. Owners are looked up only where many are absent.
    """
    liveness = memory.liveness
    fleet = {*memory.appended, *liveness.gone} - liveness.draining
    late = {broker for broker, at_ms in liveness.late.items() if now_ms - at_ms < _LATE_MS}
    present = {*heard(memory.appended, memory.paces, settings)} - liveness.gone.keys() - late
    absent = fleet - present
    lost = {b for b, each in liveness.losses.items() if now_ms - each.last_ms < AT_ONCE_MS}
    silence = doubt_of_silence(len(absent), len(fleet), settings.doubt)
    if silence is not Doubt.STABLE and records:
        left = absent.difference(record.owner for record in records.values())
        silence = doubt_of_silence(len(absent - left), len(fleet - left), settings.doubt)
    return {
        "silence": silence,
        "losses": doubt_of_losses(len((lost | late) & fleet), len(fleet), settings.doubt),
    }
