"""Notes what a round's moves are predicted to do, for comparison with what happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from trimtab.arrays import Floats
from trimtab.load_model.model import Model
from trimtab.load_model.resources.takes import AT_WORST, Takes
from trimtab.names import rows_by_name
from trimtab.plan import Move
from trimtab.reasons import Reason
from trimtab.state.ledger_state import MOST_OPEN, Awaited, Noted, Side
from trimtab.state.round_state import RoundState


def note_prediction(
    moves: Sequence[Move],
    row_of: Mapping[str, int],
    model: Model,
    now_ms: int,
    state: RoundState,
) -> Noted | None:
    """What this round's moves are predicted to do, to be compared once they land; None: no moves.

    ``row_of``: the model's row of each broker by name; moves to or from others are left out. So are
    moves off a draining broker: they had no alternative and cannot be undone. Of more than
    MOST_OPEN moves only the first are followed.
    """
    given = [move for move in moves if move.source in row_of and move.destination in row_of]
    if not given:
        return None
    sizes = model.sizes([move.bundle for move in given]).tolist()
    awaited = {
        move.bundle: _awaited(move, size, row_of, model, place)
        for place, (move, size) in enumerate(zip(given, sizes, strict=True))
    }
    doubts = np.zeros(len(model.usage))
    if model.takes is not None:
        rows = rows_by_name(model.takes.names, awaited)
        awaited = _by_resource(awaited, row_of, rows, model.takes)
        doubts = _doubts(awaited, row_of, rows, model.takes)
    known = state.histories.trimtab.corrections
    sides = {
        broker: replace(
            _side(row_of[broker], change, model, known.get(broker, 1.0)),
            doubt=float(doubts[row_of[broker]]),
        )
        for broker, change in _changes(awaited).items()
    }
    undoing = any(move.reason is Reason.UNDONE for move in given)
    first = dict(islice(awaited.items(), MOST_OPEN))
    return Noted(state.number, now_ms, first, sides, undoing)


def _awaited(
    move: Move, size: float, row_of: Mapping[str, int], model: Model, place: int
) -> Awaited:
    return Awaited(
        source=move.source,
        destination=move.destination,
        taken=size * float(model.gain[row_of[move.source]]),
        added=size * float(model.gain[row_of[move.destination]]),
        counter=move.epoch.counter,
        generation=move.epoch.generation,
        place=place,
    )


def _by_resource(
    awaited: Mapping[str, Awaited],
    row_of: Mapping[str, int],
    rows: Mapping[str, int],
    takes: Takes,
) -> dict[str, Awaited]:
    """What each move takes and adds of usage that is of several resources, after those before it:
    so their sum is the plan's. ``rows``: those of the bundles in ``takes``."""
    used, found = takes.used.copy(), dict(awaited)
    for bundle, move in awaited.items():
        if bundle in rows:
            need, usages = takes.need[:, rows[bundle]], []
            for broker, sign in ((row_of[move.source], -1), (row_of[move.destination], 1)):
                before = float((used[:, broker] * takes.scale[:, broker]).max())
                used[:, broker] += sign * need
                after = float((used[:, broker] * takes.scale[:, broker]).max())
                usages.append(sign * (after - before))
            found[bundle] = replace(move, taken=usages[0], added=usages[1])
    return found


def _doubts(
    awaited: Mapping[str, Awaited],
    row_of: Mapping[str, int],
    rows: Mapping[str, int],
    takes: Takes,
) -> Floats:
    """(n,) the standard deviation of what the moves bring a broker or take off it, of the resource
    that is known least."""
    variance = np.zeros_like(takes.used)
    for bundle, move in awaited.items():
        if bundle in rows:
            deviation = takes.tail[:, rows[bundle]] / AT_WORST
            for broker in (row_of[move.source], row_of[move.destination]):
                variance[:, broker] += (deviation * takes.scale[:, broker]) ** 2
    doubts: Floats = np.sqrt(variance.max(axis=0))
    return doubts


def _changes(awaited: Mapping[str, Awaited]) -> dict[str, float]:
    """Broker to the usage that all the moves together bring it."""
    changes: dict[str, float] = {}
    for move in awaited.values():
        changes[move.source] = changes.get(move.source, 0.0) - move.taken
        changes[move.destination] = changes.get(move.destination, 0.0) + move.added
    return changes


def _side(row: int, change: float, model: Model, correction: float) -> Side:
    before = float(model.usage[row])
    return Side(
        before=before,
        predicted=before + change,
        variance=float(model.variance[row]),
        cost=float(model.cost[row]),
        correction=correction,
        used_then=float(model.used[row]),
        traffic_then=float(model.traffic[row]),
        strays=float(model.strays[row]),
    )
