"""Explains one bundle: its result in a round, and the rule that decided.

the first that applies:
  it was moved, split, merged or repaired: why
  its move was refused: by which rule
  it is not in the view: what its record says
  no strategy was asked: why not
  it must not be moved: in flight, cooling down, on an absent broker, ...
  the strategy left it in place: what it compared
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.options import options
from trimtab.explaining.refusals import cooling, explain_refusal, explain_skip
from trimtab.explaining.repairs import advise_partitions, of_merge, of_move, of_repair, of_split
from trimtab.explaining.scene import Scene
from trimtab.explaining.silence import explain_silence
from trimtab.explaining.verdict import Verdict
from trimtab.explaining.witness import Witness
from trimtab.explaining.words import short
from trimtab.model import namespace_of
from trimtab.ownership import State
from trimtab.placement import PLACERS
from trimtab.plan import Move
from trimtab.reasons import ORDERED, Reason, Rest, Rule
from trimtab.state.round_state import begun
from trimtab.view import is_monitoring
from trimtab.wire.explanation import Explanation, Option, complete_explanation
from trimtab.wire.ownership import Record

_DELETED: Final = Cause(Rest.UNREPORTED, "it was divided or merged, and is no more")
_UNDER_WAY: Final = MappingProxyType(
    {
        State.ASSIGNING: "{record.owner} has been given it, and has not said yet that it serves it",
        State.RELEASING: "{record.owner} is handing it over",
        State.SPLITTING: "{record.owner} is dividing it",
        State.MERGING: "{record.owner} is merging it with its neighbour",
    }
)


def of_bundle(witness: Witness, bundle: str) -> Explanation:
    """Explain a bundle, even an unknown one."""
    verdict, cause = _became(witness, bundle)
    source, destination = _ends(witness.scene, bundle)
    ends = [broker for broker in (source, destination) if broker is not None]
    usage = {broker: both for broker in ends if (both := witness.usage(broker)) is not None}
    could = _options(witness, bundle, verdict, (source, destination))
    why = cause.why
    if cause.rule is Rest.NOT_CHOSEN and could and all(option.bar for option in could):
        why += ". No broker may get it: see what forbids them"
    busy = witness.scene.busy_topics.get(bundle)
    if verdict is Verdict.MOVED:
        why += _placed(witness.scene, witness.scene.moves[bundle])
    return complete_explanation(
        witness.blank(bundle, verdict),
        rule=str(cause.rule),
        why=why,
        source=source,
        destination=destination,
        usage=usage,
        figures={name: short(figure) for name, figure in cause.figures.items()},
        options=could,
        nearest=cause.nearest,
        until=cause.until,
        advice="" if busy is None else advise_partitions(busy),
    )


def _became(witness: Witness, bundle: str) -> tuple[Verdict, Cause]:
    scene = witness.scene
    if (move := scene.moves.get(bundle)) is not None:
        return Verdict.MOVED, of_move(scene, move) or _balanced(witness, move)
    if (split := scene.splits.get(bundle)) is not None:
        return Verdict.SPLIT, of_split(scene, split)
    if (merge := scene.merges.get(bundle)) is not None:
        return Verdict.MERGED, of_merge(scene, merge)
    if (repair := scene.repairs.get(bundle)) is not None:
        return Verdict.REPAIRED, of_repair(scene, repair)
    if (refusal := scene.refusals.get(bundle)) is not None:
        return Verdict.REFUSED, explain_refusal(scene, refusal)
    row = scene.bundle_row(bundle)
    if row is None:
        return _unreported(scene, bundle)
    if scene.plan.skipped is not None and not scene.asked:
        return Verdict.STAYED, explain_skip(scene, scene.plan.skipped)
    return Verdict.STAYED, next(_held(scene, bundle, row), None) or _left(witness, row)


def _placed(scene: Scene, move: Move) -> str:
    """How the destination was found, if the strategy did not name it."""
    placement = scene.settings.round.placement
    chose = f"; round.placement ({placement}) chose {move.destination}"
    if move.reason is Reason.ASKED and scene.before.asked_moves.get(move.bundle):
        return ""
    if move.reason in ORDERED:
        return chose
    if scene.directed or move.reason is Reason.UNDONE:
        return ""
    compared = PLACERS[placement].compared
    return f"{chose}, {compared}" if compared else ""


def _balanced(witness: Witness, move: Move) -> Cause:
    row = witness.scene.bundle_row(move.bundle)
    if witness.account is None or row is None:
        return Cause(move.reason, "")
    return witness.account.moved(witness.scene.place(row))._replace(rule=move.reason)


def _left(witness: Witness, row: int) -> Cause:
    if witness.account is None:
        return Cause(Rule.NOT_MOVABLE, "")
    return witness.account.stayed(witness.scene.place(row))


def _unreported(scene: Scene, bundle: str) -> tuple[Verdict, Cause]:
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


def _held(scene: Scene, bundle: str, row: int) -> Iterator[Cause]:
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
        yield Cause(Rule.NOT_MOVABLE, "it is not to be moved")


def _by_record(scene: Scene, bundle: str) -> Iterator[Cause]:
    record, memory = scene.view.records.get(bundle), scene.memory
    if record is None:
        if not scene.settings.round.observe_only and scene.view.records:
            yield Cause(Rule.UNOWNED, "it has no record: nobody has claimed it yet")
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
    why = f"nobody has it: its record is {record.state}, and the next round, or lookup, places it"
    if record.state is State.QUARANTINED:
        why = (
            f"it is quarantined: {record.falls} owners in a row died soon after they had got it. "
            f"Find out why, then: trimtab bundles readmit {bundle} --cluster {scene.view.cluster}"
        )
    elif bundle in {need.bundle for need in scene.view.trouble.needs}:
        why = "nobody has it, and no broker may get it in this round"
    return Cause(Rule.UNOWNED, why)


def _ends(scene: Scene, bundle: str) -> tuple[str | None, str | None]:
    """The bundle's owner and its next owner."""
    if (move := scene.moves.get(bundle)) is not None:
        return move.source, move.destination
    if (repair := scene.repairs.get(bundle)) is not None:
        record = scene.view.records.get(bundle)
        return (record.owner if record is not None else None), repair.broker
    if (refusal := scene.refusals.get(bundle)) is not None:
        return refusal.source, refusal.destination
    row = scene.bundle_row(bundle)
    if row is not None:
        return scene.view.brokers.names[int(scene.view.bundles.owner[row])], None
    record = scene.view.records.get(bundle)
    return (record.owner if record is not None else None), None


def _options(
    witness: Witness, bundle: str, verdict: Verdict, ends: tuple[str | None, str | None]
) -> tuple[Option, ...]:
    if verdict in (Verdict.UNKNOWN, Verdict.SPLIT, Verdict.MERGED) or witness.prediction is None:
        return ()
    source, destination = ends
    chosen = destination if verdict is not Verdict.REFUSED else None
    return options(witness.scene, witness.prediction, bundle, source, chosen)
