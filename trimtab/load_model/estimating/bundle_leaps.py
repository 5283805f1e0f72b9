"""Leaps of bundles: level shifts by a large factor, recorded until they last or come back."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.estimating.doubted_leaps import (
    LONE_S,
    find_first_ends,
    find_recurring,
    find_young,
)
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.estimating.events import LEAP
from trimtab.load_model.estimating.excursions import are_bursts_common
from trimtab.load_model.estimating.leap_record import (
    HORIZON_S,
    LeapRecord,
    close_leaps,
    open_leaps,
)
from trimtab.load_model.estimating.rows import locate_keys
from trimtab.load_model.estimating.runs import find_level_before_run

_FEW: Final = 4.0
"""Samples before a run that hardly make a level. Fewer: what leapt in a fleet's first minutes
counts too large; more: what the first sample has by chance counts."""


class Expected(NamedTuple):
    """(m,) columns of the bundles of `Estimates`."""

    level: Floats
    """With the levels before leaps that may pass."""
    passing: Bools
    """Whose leap may pass."""
    recurring: Bools
    """Whose leap's like came back."""
    common: bool
    """Whether most leaps up of this fleet pass (`are_bursts_common`)."""


def record_leaps(
    past: LeapRecord, before: Estimates, after: Estimates, now_ms: int, since_ms: int
) -> LeapRecord:
    """The record after a round that turned the estimates ``before`` into ``after``; the fleet is
    known since ``since_ms``."""
    if not len(before.keys):
        return past
    leapt = _leapt(before, after)
    past = _open(past, before, after, leapt, now_ms)
    past = past.without(find_first_ends(past, now_ms, since_ms), since_ms, now_ms)
    at, here = locate_keys(after, past.keys)
    level = after.level[at]
    record = close_leaps(past, here, _returned(past, level), now_ms)
    # What leaps back past where it was, as when consumers that stopped read their backlog, leaps.
    past_it = here & leapt[at] & _is_beyond(past, level)
    if not past_it.any():
        return record
    began_ms = _find_begin(before, after, at[past_it], now_ms)
    return open_leaps(record, past.keys[past_it], (past.before[past_it], level[past_it]), began_ms)


def expect_levels(record: LeapRecord, estimates: Estimates, now_ms: int, since_ms: int) -> Expected:
    """What is expected of the bundles; the fleet is known since ``since_ms``."""
    level, passing = estimates.current, np.zeros(len(estimates.keys), np.bool_)
    common = are_bursts_common(record, len(level), now_ms, since_ms)
    # If most leaps pass, one passes however long it has lasted, until some tell how long they do.
    young = find_young(record, now_ms, since_ms, HORIZON_S if common else LONE_S)
    recurring = np.zeros_like(passing)
    at, here = locate_keys(estimates, record.keys)
    here &= young
    level[at[here]] = record.before[here]
    passing[at[here]] = True
    recurring[at[here & find_recurring(record, now_ms)]] = True
    return Expected(level, passing, recurring, common)


def _open(
    past: LeapRecord, before: Estimates, after: Estimates, leapt: Bools, now_ms: int
) -> LeapRecord:
    """The record with the leaps of this round, and with what all others' levels changed by: where
    many leap, all others' parts of the traffic change."""
    at, here = locate_keys(before, after.keys)
    if not (len(past.keys) or leapt.any()):
        return past
    open_at, there = locate_keys(after, past.keys)
    others = here & ~leapt
    others[open_at[there]] = False
    scale = _find_change(before.level[at][others], after.level[others])
    past = past.rescale(scale)
    # A bundle that leaps on, or back, is in the record already.
    rows = np.flatnonzero(leapt)
    rows = rows[~np.isin(after.keys[rows], past.keys)]
    # The levels before are found of all bundles.
    if not rows.size:
        return past
    was, early = at[rows], after.first[rows] < 0
    few = early | (before.weight[was] - _find_run(before, was) < _FEW)
    earlier = scale * _find_level_before(before, was, few, after.level[rows])
    began_ms = _find_begin(before, after, rows, now_ms)
    return open_leaps(past, after.keys[rows], (earlier, after.level[rows]), began_ms)


def _leapt(before: Estimates, after: Estimates) -> Bools:
    """(m,) which bundles of ``after`` leapt by their newest samples."""
    at, here = locate_keys(before, after.keys)
    new = after.at_ms != before.at_ms[at]
    leapt: Bools = here & np.isfinite(after.age) & (after.age <= before.age[at]) & new
    return leapt


def _find_begin(before: Estimates, after: Estimates, rows: Ints, now_ms: int) -> Ints:
    """(j,) when the leaps of these rows began: a shift is found some samples late where outliers
    are common, or may be. An age counts the newest sample, too, and a run those before it."""
    at, _ = locate_keys(before, after.keys[rows])
    run = np.where(after.first[rows] < 0, after.age[rows] - 1.0, _find_run(before, at))
    began_ms: Ints = now_ms - (run * (after.at_ms[rows] - before.at_ms[at])).astype(np.int64)
    return began_ms


def _find_run(before: Estimates, at: Ints) -> Floats:
    """(j,) how many samples before the newest one were on its side of the level."""
    rising = before.up[at] > before.down[at]
    return np.where(rising, before.rising[at], before.falling[at])


def _find_level_before(before: Estimates, at: Ints, few: Bools, after: Floats) -> Floats:
    """(j,) levels before the leaps of the rows ``at``. Of ``few`` samples some may follow the leap:
    then the first one counts, if it is further from the levels ``after``."""
    level, first = find_level_before_run(before)[at], before.first[at]
    first = np.where(few & (first > 0), first, level)
    return np.where(after > level, np.minimum(level, first), np.maximum(level, first))


def _find_change(before: Floats, after: Floats) -> float:
    """The factor from what bundles carried together before to what they do now; 1 of none."""
    known, now = float(before.sum()), float(after.sum())
    return now / known if known > 0 and now > 0 else 1.0


def _returned(leaps: LeapRecord, level: Floats) -> Bools:
    """(k,) whether the levels are nearer to those before the leaps."""
    away, leap = _measure(leaps, level)
    returned: Bools = away < leap / 2
    return returned


def _is_beyond(leaps: LeapRecord, level: Floats) -> Bools:
    """(k,) whether the levels are on the other side of those before the leaps, and a leap off."""
    away, _ = _measure(leaps, level)
    beyond: Bools = away < -LEAP
    return beyond


def _measure(leaps: LeapRecord, level: Floats) -> tuple[Floats, Floats]:
    """(k,) logarithms of the levels over those before the leaps, and of the leaps; in the direction
    of each leap."""
    tiny = 1e-12
    away = np.log((level + tiny) / (leaps.before + tiny))
    leap = np.log((leaps.after + tiny) / (leaps.before + tiny))
    return away * np.sign(leap), np.abs(leap)
