"""Finds what must be repaired: bundles without service, and ownership changes that take too long.

a record is repaired                        by
  Free                        at once       ASSIGN, unless lookups are to do so
  whose owner is gone         at once       ASSIGN, to the destination it was on its way to if any
  Assigning                   when overdue  ASSIGN, to another broker
  Releasing, Splitting,       when overdue  KEEP: it stays with its owner
  Merging
  Quarantined                 when asked    READMIT
  none, of a new namespace    at once       ASSIGN
A record is overdue if it was learnt longer ago than ``round.move_deadline``. "At once" means after
``doubt.delay`` while brokers are being lost, and never while nothing can be believed. Changes that
were issued and may still take effect are waited for. What exceeds one batch follows in the next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from trimtab.doubt import Doubt
from trimtab.health.unsettled import RETRY_MS, due_ms, return_times, waits_for_lookup
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event, State
from trimtab.plan import Plan
from trimtab.reasons import Reason, Rule
from trimtab.repair_needs import Need
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.ownership import Record

_OVERDUE: Final = MappingProxyType(
    {
        State.ASSIGNING: Event.ASSIGN,
        State.RELEASING: Event.KEEP,
        State.SPLITTING: Event.KEEP,
        State.MERGING: Event.KEEP,
    }
)


@dataclass(frozen=True, slots=True)
class Damage:
    """The repairs needed now, and when to look again (batch timestamp); 0: not needed."""

    needs: tuple[Need, ...] = ()
    later_ms: int = 0


def damage(
    memory: Memory, records: Mapping[str, Record], doubt: Doubt, settings: Settings, now_ms: int
) -> Damage:
    """The repairs needed, sorted by bundle name; ``memory`` has learnt ``records``."""
    patience_ms = round(settings.doubt.delay * 1000)
    if doubt is Doubt.UNSTABLE:
        waiting = memory.unsettled or memory.readmitted or memory.created
        return Damage(later_ms=now_ms + max(patience_ms, RETRY_MS) if waiting else 0)
    gone, flights = memory.liveness.gone, memory.in_flight
    needs, later = [], []
    for bundle, since_ms in memory.unsettled.items():
        record = records[bundle]
        at = due_ms(record, since_ms, gone, settings)
        if doubt is Doubt.JITTERY:
            at = max(at, since_ms + patience_ms)
        if waits_for_lookup(record, settings):
            continue
        if bundle in flights:
            later.append(flights[bundle].until_ms)
        elif at > now_ms:
            later.append(at)
        else:
            needs.append(_need(bundle, record, gone))
    needs += [_readmission(b, records[b]) for b in memory.readmitted if b not in flights]
    needs += [_creation(bundle) for bundle in memory.created if bundle not in flights]
    later += [flights[bundle].until_ms for bundle in memory.created if bundle in flights]
    needs.sort(key=lambda need: need.bundle)
    return Damage(tuple(needs), min(later, default=0))


def _need(bundle: str, record: Record, gone: Collection[str]) -> Need:
    event, reason = _OVERDUE.get(record.state, Event.ASSIGN), Reason.STUCK
    if record.state is State.FREE:
        event, reason = Event.ASSIGN, Reason.UNOWNED
    elif record.owner in gone:
        event, reason = Event.ASSIGN, Reason.OWNER_LOST
    return Need(bundle, event, reason, record.epoch, record.owner, record.destination)


def _readmission(bundle: str, record: Record) -> Need:
    return Need(bundle, Event.READMIT, Reason.READMITTED, record.epoch)


def _creation(bundle: str) -> Need:
    # A bundle without a record is free.
    return Need(bundle, Event.ASSIGN, Reason.CREATED, NO_EPOCH)


def next_look(found: Damage, plan: Plan, memory: Memory, settings: Settings, now_ms: int) -> int:
    """When to look again after ``plan`` (batch timestamp); 0: not needed."""
    if plan.skipped is Rule.PAUSED:
        return 0
    times = [found.later_ms, *return_times(memory, settings, now_ms)]
    if plan.repairs:
        times.append(now_ms + round(settings.round.move_deadline * 1000))
    if plan.postponed:
        # In the next batch, however soon: this one has had its round.
        times.append(now_ms + 1)
    if len(plan.repairs) < len(found.needs) or _short_of_budget(plan, memory):
        times.append(now_ms + RETRY_MS)
    return min(filter(None, times), default=0)


def _short_of_budget(plan: Plan, memory: Memory) -> bool:
    """Whether a round's budget was too small to empty a draining broker, or for an approved plan.
    Budgets of a longer time are left to regular rounds."""
    draining, approved = memory.liveness.draining, memory.round.approved
    return any(
        refusal.rule in (Rule.BUDGET, Rule.BROKER_BUDGET)
        and (refusal.source in draining or refusal.bundle in approved)
        for refusal in plan.refusals
    )
