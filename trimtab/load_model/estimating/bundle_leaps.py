"""Leaps of bundles: level shifts by a large factor, recorded until they last or come back."""

from __future__ import annotations

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.estimating.leap_record import LeapRecord, close_leaps, open_leaps
from trimtab.load_model.estimating.rows import locate_keys
from trimtab.load_model.estimating.runs import find_level_before_run


def record_leaps(
    past: LeapRecord, before: Estimates, after: Estimates, now_ms: int, since_ms: int
) -> LeapRecord:
    """The record after a round that turned the estimates ``before`` into ``after``; the fleet is
    known since ``since_ms``."""
    past = _open(past, before, after, now_ms)
    at, here = locate_keys(after, past.keys)
    here &= ~past.ends_first_burst(now_ms, since_ms)
    return close_leaps(past, here, _returned(past, after.level[at]), now_ms)


def expect_levels(
    record: LeapRecord, estimates: Estimates, now_ms: int, since_ms: int
) -> tuple[Floats, Bools]:
    """(m,) levels with those before leaps that may pass, and which bundles these are; the fleet is
    known since ``since_ms``."""
    level, passing = estimates.current, np.zeros(len(estimates.keys), np.bool_)
    young = record.young(now_ms, since_ms)
    if not young.any():
        return level, passing
    at, here = locate_keys(estimates, record.keys[young])
    level = level.copy()
    level[at[here]] = record.before[young][here]
    passing[at[here]] = True
    return level, passing


def _open(past: LeapRecord, before: Estimates, after: Estimates, now_ms: int) -> LeapRecord:
    """The record with the leaps of this round."""
    if not len(before.keys):
        return past
    at, here = locate_keys(before, after.keys)
    old = before.age[at]
    leapt = here & np.isfinite(after.age) & (after.age <= old) & (after.at_ms != before.at_ms[at])
    # A bundle that leaps on, or back, is in the record already.
    rows = np.flatnonzero(leapt)
    rows = rows[~np.isin(after.keys[rows], past.keys)]
    if not rows.size:
        return past
    levels = (find_level_before_run(before)[at[rows]], after.level[rows])
    # A shift is found some samples late where outliers are common, or may be.
    was = at[rows]
    run = np.where(before.up[was] > before.down[was], before.rising[was], before.falling[was])
    late_ms = (run * (after.at_ms[rows] - before.at_ms[was])).astype(np.int64)
    return open_leaps(past, after.keys[rows], levels, now_ms - late_ms)


def _returned(leaps: LeapRecord, level: Floats) -> Bools:
    """(k,) whether the levels are nearer to those before the leaps."""
    tiny = 1e-12
    away = np.log((level + tiny) / (leaps.before + tiny))
    leap = np.log((leaps.after + tiny) / (leaps.before + tiny))
    returned: Bools = away * np.sign(leap) < np.abs(leap) / 2
    return returned
