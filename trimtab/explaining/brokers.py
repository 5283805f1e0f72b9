"""Explains one broker: how loaded it is, what it gives and gets, and why or why not."""

from __future__ import annotations

import numpy as np

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.rules.controls import explain_trade_held
from trimtab.explaining.rules.skips import explain_skip
from trimtab.explaining.scene import Scene
from trimtab.explaining.silence import explain_silence
from trimtab.explaining.verdict import Verdict
from trimtab.explaining.witness import Witness
from trimtab.explaining.words import format_count, percent, seconds, short
from trimtab.load import usage
from trimtab.reasons import Reason, Rest, Rule
from trimtab.wire.explanation import Explanation, complete_explanation


def of_broker(witness: Witness, broker: str) -> Explanation:
    """Explain a broker, even an unknown one."""
    verdict, cause = _became(witness, broker)
    said = [part for part in (cause.why, _place(witness, broker), _trade(witness, broker)) if part]
    both = witness.usage(broker)
    figures = _figures(witness, broker) | dict(cause.figures)
    return complete_explanation(
        witness.blank(broker, verdict),
        rule=str(cause.rule),
        why="; ".join(said),
        usage={} if both is None else {broker: both},
        figures={name: short(figure) for name, figure in figures.items()},
        nearest=cause.nearest,
        until=cause.until,
    )


def _became(witness: Witness, broker: str) -> tuple[Verdict, Cause]:
    scene = witness.scene
    away = _away(scene, broker)
    given, gotten = scene.given.get(broker), scene.gotten.get(broker)
    if given:
        return Verdict.GIVES, away or _balances(witness, broker)
    if away is not None:
        return Verdict.AWAY, away
    if broker not in scene.broker_rows:
        return Verdict.UNKNOWN, Cause(Rest.SILENT, _unheard(scene, broker))
    if gotten:
        return Verdict.GETS, _balances(witness, broker)
    held = explain_trade_held(scene, broker)
    return Verdict.LEFT, held or _gave_nothing(_balances(witness, broker))


def _unheard(scene: Scene, broker: str) -> str:
    subject = "it" if broker in scene.memory.appended else "a broker of this name"
    return f"{subject} {explain_silence(scene, broker)}"


def _gave_nothing(cause: Cause) -> Cause:
    """The cause for a broker that was to give bundles and gave none."""
    if not isinstance(cause.rule, Reason):
        return cause
    why = f"{cause.why}; but none of its bundles may leave, fits, or was granted a place"
    return cause._replace(rule=Rest.NO_GAIN, why=why, nearest=None)


def _away(scene: Scene, broker: str) -> Cause | None:
    liveness, now_ms = scene.memory.liveness, scene.now_ms
    if broker in liveness.gone:
        lost = (now_ms - liveness.gone[broker]) / 1000
        return Cause(Rule.OWNER_LOST, f"its lease ran out: it was lost {seconds(lost)} ago")
    if broker in liveness.draining:
        return Cause(Reason.DRAINED, "it is to be emptied, and gets nothing")
    until = liveness.held_back(scene.settings.flapping).get(broker, 0)
    if until > now_ms:
        losses = liveness.losses[broker].number
        often = "once" if losses == 1 else f"{losses} times"
        why = (
            f"it was lost {often} and came back: it gets nothing for another "
            f"{seconds((until - now_ms) / 1000)}"
        )
        return Cause(Rest.AWAY, why, until=until)
    return None


def _balances(witness: Witness, broker: str) -> Cause:
    scene = witness.scene
    row = scene.broker_rows.get(broker)
    place = -1 if row is None else int(scene.broker_places[row])
    if witness.account is None or place < 0:
        return explain_skip(scene, scene.plan.skipped or Rule.BALANCED)
    return witness.account.broker(place)


def _place(witness: Witness, broker: str) -> str:
    """The broker's rank by usage among the available brokers, and its newest report."""
    scene, prediction = witness.scene, witness.prediction
    row = scene.broker_rows.get(broker)
    if prediction is None or row is None or scene.broker_places[row] < 0:
        return ""
    own, loads = float(prediction.before[row]), prediction.before[scene.seen_brokers]
    hotter = int(np.count_nonzero(loads > own))
    reported = _reported(scene, row)
    return (
        f"its expected usage, {percent(own)} before the plan, is number {hotter + 1} of "
        f"{loads.size}; its newest report says {percent(reported)}"
    )


def _trade(witness: Witness, broker: str) -> str:
    given = len(witness.scene.given.get(broker, ()))
    gotten = len(witness.scene.gotten.get(broker, ()))
    both = witness.usage(broker)
    if not (given or gotten):
        return ""
    after = f", and is at {percent(both[1])} then" if both is not None else ""
    return f"it gives {format_count(given, 'bundle')} and gets {gotten}{after}"


def _figures(witness: Witness, broker: str) -> dict[str, float]:
    scene, row = witness.scene, witness.scene.broker_rows.get(broker)
    if row is None or not scene.computable:
        return {}
    return {"reported_usage": _reported(scene, row)}


def _reported(scene: Scene, row: int) -> float:
    return float(usage(scene.view.brokers.resources, scene.settings.weights)[row])
