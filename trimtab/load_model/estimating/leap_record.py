"""Record whether the leaps of this fleet last, and how long to wait before one is believed.

leap     = a bundle's level shift by a large factor (`trimtab.load_model.estimating.level_shifts`)
returned = within the horizon its level came more than half of the way back
lasted   = it did not
wait     = twice the shortest age beyond which no more leaps returned than lasted: twice, as the
           longest bursts are rare, and few of them are known
Leaps that begin together count as one. A leap younger than the wait is a burst that may pass. In a
fleet whose leaps last, or that has had almost none, there is no wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.estimating.estimates import Estimates, Keys, locate_keys
from trimtab.load_model.estimating.runs import find_level_before_run

_EDGES_S: Final = (0.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)
"""From when (s) each count of returned leaps is; a wait is the edge of one."""
_HORIZON_S: Final = 3840.0
"""Age at which a leap counts as lasting. Shorter: long bursts count as lasting; longer: where
leaps have returned, a lasting one is acted on late."""
_HALF_LIFE_S: Final = 86_400.0
"""Of the counts. Shorter: rare bursts are forgotten from one to the next; longer: a fleet that has
come to rest is distrusted for long."""
_PRIOR: Final = 1.5
"""Lasting leaps that are assumed. Lower: one leap that returns delays the next plan; higher: more
bursts are answered before their nature is known."""


def _none() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class LeapRecord:
    """The open leaps as (k,) columns, ascending by ``keys``, and the fading counts of others."""

    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    before: Floats = field(default_factory=_none)
    """Level before the leap."""
    after: Floats = field(default_factory=_none)
    """Level right after it."""
    since_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    worth: Floats = field(default_factory=_none)
    """What the leap counts: one over the number of leaps that began with it."""
    returned: tuple[float, ...] = (0.0,) * len(_EDGES_S)
    """Counts of the leaps that returned, by age."""
    lasted: float = 0.0
    at_ms: int = 0
    """When the counts were last faded."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeapRecord) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in LeapRecord.__dataclass_fields__
        )

    @property
    def wait_s(self) -> float:
        """How old (s) a leap must be to be believed; 0: it is believed at once."""
        longer = np.cumsum(self.returned[::-1])[::-1]
        doubted = np.flatnonzero(longer > self.lasted + _PRIOR)
        if not doubted.size:
            return 0.0
        return min(2 * (*_EDGES_S, _HORIZON_S)[int(doubted[-1]) + 1], _HORIZON_S)


def record_leaps(past: LeapRecord, before: Estimates, after: Estimates, now_ms: int) -> LeapRecord:
    """The record after a round that turned the estimates ``before`` into ``after``."""
    past = _open(past, before, after, now_ms)
    if not len(past.keys):
        return past
    at, here = locate_keys(after, past.keys)
    age_s = (now_ms - past.since_ms) / 1000.0
    back = here & _returned(past, after.level[at])
    lasted = here & ~back & (age_s >= _HORIZON_S)
    kept = 0.5 ** (max(now_ms - past.at_ms, 0) / (1000.0 * _HALF_LIFE_S))
    bins = np.searchsorted(_EDGES_S, age_s[back], side="right") - 1
    counts = np.bincount(bins.clip(0), past.worth[back], len(_EDGES_S))
    returned = kept * np.array(past.returned) + counts
    left = here & ~back & ~lasted
    return LeapRecord(
        keys=past.keys[left],
        before=past.before[left],
        after=past.after[left],
        since_ms=past.since_ms[left],
        worth=past.worth[left],
        returned=tuple(returned.tolist()),
        lasted=kept * past.lasted + float(past.worth[lasted].sum()),
        at_ms=now_ms,
    )


def expect_levels(record: LeapRecord, estimates: Estimates, now_ms: int) -> tuple[Floats, Bools]:
    """(m,) levels with those before leaps that may pass, and which bundles these are."""
    level, passing = estimates.level, np.zeros(len(estimates.keys), np.bool_)
    young = now_ms - record.since_ms < 1000.0 * record.wait_s
    if not young.any():
        return level, passing
    at, here = locate_keys(estimates, record.keys[young])
    level = level.copy()
    level[at[here]] = record.before[young][here]
    passing[at[here]] = True
    return level, passing


def _open(past: LeapRecord, before: Estimates, after: Estimates, now_ms: int) -> LeapRecord:
    """The record with the leaps of this round."""
    at, here = locate_keys(before, after.keys)
    if not len(before.keys):
        return past
    old = before.age[at]
    leapt = here & np.isfinite(after.age) & (after.age <= old) & (after.at_ms != before.at_ms[at])
    # A bundle that leaps on, or back, is in the record already.
    rows = np.flatnonzero(leapt)
    rows = rows[~np.isin(after.keys[rows], past.keys)]
    if not rows.size:
        return past
    columns = {
        "keys": after.keys[rows],
        "before": find_level_before_run(before)[at[rows]],
        "after": after.level[rows],
        "since_ms": np.full(rows.size, now_ms, np.int64),
        "worth": np.full(rows.size, 1.0 / rows.size),
    }
    joined = {name: np.concatenate((getattr(past, name), new)) for name, new in columns.items()}
    order = np.argsort(joined["keys"])
    return LeapRecord(
        **{name: column[order] for name, column in joined.items()},
        returned=past.returned,
        lasted=past.lasted,
        at_ms=past.at_ms or now_ms,
    )


def _returned(leaps: LeapRecord, level: Floats) -> Bools:
    """(k,) whether the levels are nearer to those before the leaps."""
    tiny = 1e-12
    away = np.log((level + tiny) / (leaps.before + tiny))
    leap = np.log((leaps.after + tiny) / (leaps.before + tiny))
    returned: Bools = away * np.sign(leap) < np.abs(leap) / 2
    return returned
