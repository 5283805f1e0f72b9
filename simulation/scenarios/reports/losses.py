"""Finds what the job would know of brokers that are gone or must be emptied."""

from __future__ import annotations

from simulation.scenarios.world.state import World
from trimtab.doubt import Doubt, doubt_of_losses, doubt_of_silence, gravest
from trimtab.health.assessment import AT_ONCE_MS
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event
from trimtab.reasons import Reason
from trimtab.repair_needs import NOTHING_TO_REPAIR, Need, RepairNeeds
from trimtab.settings import Settings


def trouble_of(world: World, settings: Settings, now_ms: int, silent: int) -> RepairNeeds:
    """Bundles that no broker serves, brokers to empty, and the level of doubt about that, where so
    many brokers are ``silent``."""
    orphans = world.orphans()
    if not (orphans or world.crashed_ms or world.draining.any() or silent):
        return NOTHING_TO_REPAIR
    doubt = _doubt(world, settings, now_ms, silent)
    patience_ms = 1000 * settings.doubt.delay if doubt is Doubt.JITTERY else 0
    needs = [] if doubt is Doubt.UNSTABLE else [_need(world, row) for row in orphans]
    since = {world.brokers[broker]: ms for broker, ms in world.crashed_ms.items()}
    due = [need for need in needs if now_ms - since.get(need.owner or "", 0) >= patience_ms]
    draining = (name for name, on in zip(world.brokers, world.draining, strict=True) if on)
    return RepairNeeds(
        needs=tuple(sorted(due, key=lambda need: need.bundle)),
        draining=frozenset(draining),
        doubt=doubt,
    )


def _doubt(world: World, settings: Settings, now_ms: int, silent: int) -> Doubt:
    horizon_ms = now_ms - 1000 * settings.round.forget
    gone = [ms for ms in world.crashed_ms.values() if ms >= horizon_ms]
    fleet = int(world.up.sum()) + len(gone)
    lost = sum(now_ms - ms < AT_ONCE_MS for ms in gone)
    return gravest(
        (
            doubt_of_silence(len(gone) + silent, fleet, settings.doubt),
            doubt_of_losses(lost, fleet, settings.doubt),
        )
    )


def _need(world: World, row: int) -> Need:
    flight = world.flights.get(row)
    return Need(
        bundle=world.names[row],
        event=Event.ASSIGN,
        reason=Reason.OWNER_LOST,
        epoch=NO_EPOCH,
        owner=world.brokers[int(world.owner[row])],
        destination=None if flight is None else world.brokers[flight.destination],
    )
