"""Bundles that no plan can make room for.

giant = the largest bundle of its broker, if
          the range that it forces (`floor_at`, `trimtab.planner.search.floor`) is above the
            target, or, if a plan is needed, above a balanced one: a split costs less than to clear
            its broker
          or a plan is needed, none helps, and the coldest broker would be as hot with the bundle as
            its own broker is; but not while much of the load may not move after earlier moves
        judged by a cautious size (SURELY deviations below its level): a false giant costs one
        split, and only once, so less certainty is required than for a move
While a giant waits for its split, its pool is left alone for a few rounds: to move the other
bundles away from it would not help.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.arrays import TOPICS, Ints
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.estimating.rows import locate_keys, take_rows
from trimtab.load_model.history import PlannerHistory, Weighed
from trimtab.model import parse_bundle, within
from trimtab.names import identities, rows_of
from trimtab.planner.constraints import Draft
from trimtab.planner.outlook import Prospect
from trimtab.planner.search.floor import floor_at
from trimtab.planner.search.ground import Ground
from trimtab.settings import Settings
from trimtab.settings.words import AIMS
from trimtab.view import Bundles

SURELY: Final = 1.0
"""Standard deviations below its level at which a giant's size is judged. Lower: noise splits
bundles; higher: a real giant stays whole for longer."""
_MOST: Final = 10
"""Giants of a pool at a time. Lower: many rounds; higher: many clients reconnect at once."""
_LOOKED_AT: Final = 64
"""The largest bundles of a pool that are checked: bounds the time. More than _MOST, as several may
be on one broker."""
_RESTING: Final = 0.1
"""The part of the load that may be immovable: with more, a move that is impossible now may become
possible later, and no bundle is a giant for lack of moves."""
_WAIT: Final = 3.5
"""Rounds that a pool waits for a split. Lower: its other bundles move needlessly; higher: an owner
that does not split blocks the pool."""
_BALANCED: Final = AIMS["balanced"]
"""The widest target for which a bundle is judged: under a wider one it is as large, and to clear
its broker takes many more moves than its children do."""
_TWO: Final = 2
"""The fewest topics, and the smallest range, that can be split."""


def splits_giants(settings: Settings) -> bool:
    """Whether giants are split."""
    return settings.split.enabled and settings.split.trigger == "planned"


def forcing(draft: Draft, pool: Prospect, estimates: Estimates) -> list[int]:
    """Rows of the giants that force a pool's range, one per broker; the largest first."""
    ground, found = pool.ground, dict[int, int]()
    target = draft.settings.planner.target
    if pool.beyond > 0:
        target = min(target, _BALANCED)
    if pool.floor <= target or ground.fleet.takes is not None:
        return []
    for row in _largest(ground).tolist():
        broker = int(ground.fleet.where[row])
        if floor_at(ground, float(ground.fleet.size[row])) <= target or len(found) >= _MOST:
            break
        name = draft.view.bundles.names[row]
        if broker not in found and floor_at(ground, _surely(name, estimates)) > target:
            found[broker] = row
    return list(found.values())


def stuck(draft: Draft, ground: Ground, estimates: Estimates) -> list[int]:
    """The row of the bundle that keeps the hottest broker hot, if no move helps."""
    fleet, movable = draft.fleet, draft.view.bundles.movable
    carried = np.where(ground.held, fleet.size, 0.0)
    if fleet.takes is not None or carried[~movable].sum() > _RESTING * carried.sum():
        return []
    hot = int(ground.brokers[np.argmax(fleet.usage[ground.brokers])])
    cold = int(ground.receivers[np.argmin(fleet.usage[ground.receivers])])
    sizes = np.where((fleet.where == hot) & movable, fleet.size, 0.0)
    if not sizes.any():
        return []
    row = int(np.argmax(sizes))
    size = _surely(draft.view.bundles.names[row], estimates)
    arrived = fleet.usage[cold] + fleet.gain[cold] * size
    return [row] if arrived >= fleet.usage[hot] else []


def note_giants(history: PlannerHistory, draft: Draft) -> PlannerHistory:
    """The history with the giants of the draft; a known one keeps the time it was found."""
    names, sizes, now_ms = draft.view.bundles.names, draft.fleet.size, draft.view.now_ms
    found = {}
    for row in draft.giants:
        known = history.giants.get(names[row])
        at_ms = now_ms if known is None else known.at_ms
        found[names[row]] = Weighed(float(sizes[row]), at_ms)
    return replace(history, giants=found, looked_ms=now_ms)


def is_awaited(draft: Draft, rows: list[int], hot: int, history: PlannerHistory) -> bool:
    """Whether one of the giants ``rows`` is about to be split, or a large bundle of the ``hot``
    broker is being split."""
    names, fleet = draft.view.bundles.names, draft.fleet
    sizes = [fleet.size[r] for r in rows_of(names, draft.view.splitting) if fleet.where[r] == hot]
    large = min(draft.settings.planner.target, _BALANCED)
    if fleet.gain[hot] * max(sizes, default=0.0) > large:
        return True
    now_ms, interval = draft.view.now_ms, draft.settings.round.interval
    for row in rows:
        name = names[row]
        known = history.giants.get(name)
        young = known is None or now_ms - known.at_ms <= 1000 * _WAIT * interval
        if young and is_splittable(draft.view.bundles, row) and not _descends(name, history):
            return True
    return False


def is_splittable(bundles: Bundles, row: int) -> bool:
    """Whether a bundle has at least two topics, and a range that can be split."""
    low, high = parse_bundle(bundles.names[row])[1]
    return bool(bundles.counts[TOPICS, row] >= _TWO and high - low >= _TWO)


def _descends(bundle: str, history: PlannerHistory) -> bool:
    return any(name != bundle and within(name, bundle) for name in history.divided)


def _largest(ground: Ground) -> Ints:
    """Rows of the largest bundles on the brokers, largest first."""
    fleet = ground.fleet
    rows = np.flatnonzero(ground.held)
    if len(rows) > _LOOKED_AT:
        rows = rows[np.argpartition(-fleet.size[rows], _LOOKED_AT)[:_LOOKED_AT]]
    largest: Ints = rows[np.lexsort((rows, -fleet.size[rows]))]
    return largest


def _surely(bundle: str, estimates: Estimates) -> float:
    """A bundle's size less SURELY standard deviations; 0 if it is unknown."""
    at, known = locate_keys(estimates, identities([bundle]))
    if not known[0]:
        return 0.0
    one = take_rows(estimates, at)
    return max(float(one.current[0]) - SURELY * math.sqrt(one.spread[0]), 0.0)
