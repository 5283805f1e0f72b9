"""Explains what kept a bundle from the strategy: its record, its owner, or a move before."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.rules.controls import explain_controls
from trimtab.explaining.rules.refusals import cooling
from trimtab.explaining.scene import Scene
from trimtab.explaining.silence import explain_silence
from trimtab.explaining.verdict import Verdict
from trimtab.model import namespace_of
from trimtab.ownership import State
from trimtab.reasons import Rest, Rule
from trimtab.state.round_state import begun
from trimtab.view import is_monitoring
from trimtab.wire.ownership import Record

_DELETED: Final = Cause(Rest.UNREPORTED, "it was split or merged, and no longer exists")

_UNDER_WAY: Final = MappingProxyType(
    {
        State.ASSIGNING: "{record.owner} has been given it, and has not said yet that it serves it",
        State.RELEASING: "{record.owner} is handing it over",
        State.SPLITTING: "{record.owner} is dividing it",
        State.MERGING: "{record.owner} is merging it with its neighbour",
    }
)


def explain_unreported(scene: Scene, bundle: str) -> tuple[Verdict, Cause]:
    """What happened to a bundle that is not in the view, by its record."""
    record = scene.view.records.get(bundle)
    if record is None:
        why = "no broker reports it, and it has no record: is that its name, in this cluster?"
        return Verdict.UNKNOWN, Cause(Rest.UNREPORTED, why)
    if record.state is State.DELETED:
        return Verdict.UNKNOWN, _DELETED
    owner = record.owner
    if owner is None:
        return Verdict.STAYED, _unowned(scene, bundle, record)
    if owner in scene.memory.liveness.gone:
        return Verdict.STAYED, Cause(Rule.OWNER_LOST, f"{owner}, which has it, is lost")
    if owner not in scene.broker_rows:
        silence = explain_silence(scene, owner)
        why = f"{owner}, which has it, {silence}"
        return Verdict.STAYED, Cause(Rest.SILENT, why)
    why = f"{owner} has it by its record ({record.state}) and does not report it"
    return Verdict.STAYED, Cause(Rest.UNREPORTED, why)


def held_back(scene: Scene, bundle: str, row: int) -> Iterator[Cause]:
    """What kept the bundle from the strategy, most serious first."""
    if is_monitoring(bundle):
        yield Cause(Rule.NOT_MOVABLE, "it is its broker's own heartbeat, and never moves")
    yield from _by_record(scene, bundle)
    owner = scene.view.brokers.names[int(scene.view.bundles.owner[row])]
    if scene.shown.intended[row] != scene.view.bundles.owner[row]:
        aim = scene.view.brokers.names[int(scene.shown.intended[row])]
        yield Cause(Rule.IN_FLIGHT, f"it is on its way from {owner} to {aim}")
    if not scene.view.brokers.available[scene.view.bundles.owner[row]]:
        yield Cause(Rest.AWAY, f"{owner}, which has it, has no part in balancing at present")
    if bundle in begun(scene.before, scene.settings, scene.now_ms).recent:
        yield cooling(scene, bundle)
    if not scene.shown.bundles.movable[row]:
        yield from explain_controls(scene, bundle)
        yield Cause(Rule.NOT_MOVABLE, "it is not to be moved")


def _by_record(scene: Scene, bundle: str) -> Iterator[Cause]:
    record, memory = scene.view.records.get(bundle), scene.memory
    if record is None:
        if not scene.settings.round.observe_only and scene.view.records:
            yield Cause(Rule.UNOWNED, "it has no record: no broker has claimed it yet")
        return
    if record.owner is None:
        yield _unowned(scene, bundle, record)
    if record.owner in memory.liveness.gone:
        yield Cause(Rule.OWNER_LOST, f"{record.owner}, which has it, is lost")
    flight = memory.in_flight.get(bundle)
    if flight is not None or record.state is not State.OWNED:
        until = flight.until_ms if flight is not None else 0
        why = "a change of it was issued, and the journal has not shown it yet"
        if record.state in _UNDER_WAY:
            why = _UNDER_WAY[record.state].format(record=record)
            why += f", to {record.destination}" if record.destination is not None else ""
        yield Cause(Rule.IN_FLIGHT, why, until=until)
    if namespace_of(bundle) in memory.flawed:
        why = f"the records of {namespace_of(bundle)} overlap or leave a hole"
        yield Cause(Rule.BROKEN_NAMESPACE, why)


def _unowned(scene: Scene, bundle: str, record: Record) -> Cause:
    """The cause for a bundle without an owner."""
    if record.state is State.DELETED:
        return _DELETED
    why = f"no broker has it: its record is {record.state}; the next round, or lookup, places it"
    if record.state is State.QUARANTINED:
        why = (
            f"it is quarantined: {record.falls} owners in a row died soon after they had got it. "
            f"Find out why, then: trimtab bundles readmit {bundle} --cluster {scene.view.cluster} "
            "--execute"
        )
    elif bundle in {need.bundle for need in scene.view.trouble.needs}:
        why = "no broker has it, and none may get it in this round"
    return Cause(Rule.UNOWNED, why)
