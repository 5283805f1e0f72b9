"""Update the estimates from a round's reports.

A bundle is tracked as a share of the fleet's traffic, so a change that all share (a daily wave)
changes nothing. A bundle that no broker reports at the moment keeps its estimate for a while.

Bundles that are reported for the first time add to that traffic, so all others are a smaller part
of it than they were. At a start, when brokers report one after another, that is most of them: what
the first ones reported were shares of what they carried alone.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.level_shifts import add_sample, find_silent
from trimtab.load_model.estimating.rows import (
    begin_rows,
    join_rows,
    locate_keys,
    rescale,
    take_rows,
)

_FORGET_MS: Final = 3_600_000
"""An estimate not reported for this long is dropped. Shorter: a long outage loses estimates;
longer: deleted bundles stay in state."""
AWAY_MS: Final = 600_000
"""A bundle that is moved, or whose owner is lost, is reported again within this time. Shorter: the
others' shares look too large; longer: a deleted bundle makes them look too small."""
_MOST_UNSEEN: Final = 0.5
"""The largest total share that unreported bundles keep: most of the traffic is assumed seen."""


def follow_samples(past: Estimates, samples: Samples, half_life: float, bound: float) -> Estimates:
    """The estimates one round later; ``half_life`` is in seconds, ``bound`` is that of the sums
    (`trimtab.load_model.odds.bound`)."""
    known, kept = _carried(past, samples)
    total = float(samples.traffic.sum())
    if total > 0:
        unseen = 0.0 if kept is None else _unseen(kept, int(samples.at_ms.max()))
        silent = find_silent(known, samples)
        unseen = min(unseen + float(known.level[silent].sum()), _MOST_UNSEEN)
        part = _part_left(known, samples.traffic / total, unseen, silent)
        if part != 1.0:
            known, unseen = rescale(known, part), part * unseen
            kept = None if kept is None else rescale(kept, part)
        shares = samples.traffic / total * (1.0 - unseen)
        known = add_sample(known, samples, shares, half_life, bound)
    return known if kept is None else join_rows(known, kept)


def _carried(past: Estimates, samples: Samples) -> tuple[Estimates, Estimates | None]:
    """A row for each sample, and the rows of bundles that no broker reports at the moment."""
    keys = samples.keys
    if np.array_equal(past.keys, keys):
        return past, None
    at, here = locate_keys(past, keys)
    absent = np.ones(len(past.keys), np.bool_)
    absent[at[here]] = False
    absent &= past.at_ms >= samples.at_ms.max(initial=0) - _FORGET_MS
    kept = take_rows(past, np.flatnonzero(absent)) if absent.any() else None
    fresh = begin_rows(samples.keys, samples.at_ms)
    if not here.any():
        return fresh, kept
    old = take_rows(past, at)
    merged = {
        each.name: np.where(here, getattr(old, each.name), getattr(fresh, each.name))
        for each in fields(Estimates)
    }
    return Estimates(**merged), kept


def _unseen(absent: Estimates, now_ms: int) -> float:
    """The total share of bundles that were reported a short while ago and no longer are."""
    recent = absent.at_ms >= now_ms - AWAY_MS
    return min(float(absent.level[recent].sum()), _MOST_UNSEEN)


def _part_left(known: Estimates, parts: Floats, unseen: float, silent: Bools) -> float:
    """What is left of every share as some bundles are reported for the first time.

    (m,) ``parts`` of the samples' traffic, ``unseen``: the share of bundles that are none of them,
    or ``silent``.
    """
    fresh = known.unsampled
    if not fresh.any():
        return 1.0
    others = float(parts[~fresh].sum())
    # Of all but the unseen share, the others have this part, before and after.
    before = float(known.level[~fresh & ~silent].sum()) + others * unseen
    return min(others / before, 1.0) if before > 0 else 1.0
