"""What a kept plan is predicted to do, by the model that every plan is reviewed against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.explaining.prediction import Prediction
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import short
from trimtab.kept_plans.kept_plan import Effect
from trimtab.names import rows_of
from trimtab.plan import Held
from trimtab.round.allowance import budget
from trimtab.settings import Settings

_MINUTE_S: Final = 60.0


def predict_effect(scene: Scene, held: Held) -> Effect:
    """The effect of what a round held back, beside what it does."""
    without = Prediction(scene)
    whole = replace(scene.plan, moves=scene.plan.moves + held.moves)
    prediction = Prediction(replace(scene, plan=whole))
    rows = rows_of(scene.view.bundles.names, {move.bundle for move in held.moves})
    brokers = {broker for move in held.moves for broker in (move.source, move.destination)}
    brokers |= {split.broker for split in held.splits} | {merge.broker for merge in held.merges}
    return Effect(
        handovers=len(held.moves),
        brokers=tuple(sorted(brokers)),
        load=short(float(prediction.sizes(np.array(rows, dtype=np.int64)).sum())),
        before=short(without.range(without.after)),
        after=short(prediction.range(prediction.after)),
        seconds=predict_seconds(len(held.moves), scene.before.ledger.hand_overs, scene.settings),
    )


def predict_seconds(moves: int, hand_overs: Sequence[float], settings: Settings) -> float:
    """Seconds that this many moves take. The moves of a round take as long as the median of the
    last ``hand_overs`` (s), or ``round.move_deadline`` if there were none. ``plans.minute_moves``
    may make it longer."""
    each = float(np.median(hand_overs)) if len(hand_overs) else settings.round.move_deadline
    rounds = math.ceil(moves / budget(settings))
    allowed = settings.plans.minute_moves
    paced = _MINUTE_S * (moves / allowed) if allowed else 0.0
    return short(max(rounds * each, paced))
