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

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.options import options
from trimtab.explaining.rules.controls import explain_hold
from trimtab.explaining.rules.excluded import explain_unreported, held_back
from trimtab.explaining.rules.refusals import explain_refusal
from trimtab.explaining.rules.repairs import (
    advise_partitions,
    of_merge,
    of_move,
    of_repair,
    of_split,
)
from trimtab.explaining.rules.skips import explain_skip
from trimtab.explaining.scene import Scene
from trimtab.explaining.verdict import Verdict
from trimtab.explaining.witness import Witness
from trimtab.explaining.words import short
from trimtab.placement import PLACERS
from trimtab.plan import Move
from trimtab.reasons import ORDERED, Reason, Rest, Rule
from trimtab.wire.explanation import Explanation, Option, complete_explanation


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
    if (ungranted := _ungranted(scene, bundle)) is not None:
        return ungranted
    row = scene.bundle_row(bundle)
    if row is None:
        return explain_unreported(scene, bundle)
    if scene.plan.skipped is not None and not scene.asked:
        return Verdict.STAYED, explain_skip(scene, scene.plan.skipped)
    return Verdict.STAYED, next(held_back(scene, bundle, row), None) or _left(witness, row)


def _ungranted(scene: Scene, bundle: str) -> tuple[Verdict, Cause] | None:
    """What kept the round from a change of the bundle that was wanted, if one was."""
    if bundle in scene.held:
        return Verdict.STAYED, explain_hold(scene, bundle)
    refusal = scene.refusals.get(bundle)
    return None if refusal is None else (Verdict.REFUSED, explain_refusal(scene, refusal))


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
