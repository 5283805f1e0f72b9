"""Record whether the leaps of this fleet last, and how long to wait before one is believed.

leap     = of a bundle's level (`trimtab.load_model.estimating.bundle_leaps`), or of what a broker
           takes by itself (`trimtab.load_model.resources.excess`)
returned = within the horizon it came more than half of the way back
lasted   = it did not
wait     = twice the shortest age beyond which no more leaps returned than lasted: twice, as the
           longest bursts are rare, and few of them are known
Leaps that begin together count as one. In a fleet whose leaps last there is no wait. Which of the
open leaps are doubted tells `trimtab.load_model.estimating.doubted_leaps`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from trimtab.arrays import Bools, Floats, Ints, same_columns
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.passed_leaps import PassedLeaps

EDGES_S: Final = (0.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)
"""From when (s) each count of returned leaps is; a wait is the edge of one."""
HORIZON_S: Final = 3840.0
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
    returned: tuple[float, ...] = (0.0,) * len(EDGES_S)
    """Counts of the leaps that returned, by age."""
    lasted: float = 0.0
    at_ms: int = 0
    """When the counts were last faded."""
    passed: PassedLeaps = field(default_factory=PassedLeaps)

    def __eq__(self, other: object) -> bool:
        return same_columns(self, other)

    @property
    def up(self) -> Bools:
        """(k,) whether the open leaps are up; of those that are believed, ``before`` may be what
        they are now (`trimtab.load_model.resources.excess`)."""
        before = np.where(self.before == self.after, 0.0, self.before)
        up: Bools = self.after > before
        return up

    @property
    def wait_s(self) -> float:
        """How old (s) a leap must be to be believed; 0: it is believed at once."""
        longer = np.cumsum(self.returned[::-1])[::-1]
        doubted = np.flatnonzero(longer > self.lasted + _PRIOR)
        if not doubted.size:
            return 0.0
        return min(2 * (*EDGES_S, HORIZON_S)[int(doubted[-1]) + 1], HORIZON_S)

    @property
    def trusted(self) -> bool:
        """Whether more leaps have lasted than returned."""
        return self.lasted > sum(self.returned)

    def rescale(self, factor: float) -> LeapRecord:
        """The record with levels that all other bundles' have changed by."""
        return replace(self, before=self.before * factor, after=self.after * factor)

    def hand_down(self, parents: Keys, children: Keys, parts: Floats) -> LeapRecord:
        """The record with (j,) ``children`` in the place of what was split; a leap of their parent
        is one of each, of its part of the load."""
        at, left = np.searchsorted(self.keys, parents), ~np.isin(self.keys, parents)
        order = np.argsort(np.concatenate((self.keys[left], children)))

        def join(column: Floats) -> Floats:
            return np.concatenate((column[left], column[at] * parts))[order]

        return replace(
            self,
            keys=np.concatenate((self.keys[left], children))[order],
            before=join(self.before),
            after=join(self.after),
            since_ms=np.concatenate((self.since_ms[left], self.since_ms[at]))[order],
            worth=join(self.worth),
        )

    def without(self, ended: Bools, since_ms: int, now_ms: int) -> LeapRecord:
        """The record without (k,) leaps that ``ended`` the burst in which what leapt was first
        seen, ``since_ms``; it passed, unless it was seen for as long as what lasts."""
        left, burst_s = ~ended, (self.since_ms - since_ms) / 1000.0
        short = ended & (burst_s < HORIZON_S)
        return replace(
            self,
            keys=self.keys[left],
            before=self.before[left],
            after=self.after[left],
            since_ms=self.since_ms[left],
            worth=self.worth[left],
            passed=self.passed.note(self.keys[short], burst_s[short], self.keys[:0], now_ms),
        )


def open_leaps(
    past: LeapRecord, keys: Keys, levels: tuple[Floats, Floats], since_ms: Ints
) -> LeapRecord:
    """The record with (k,) leaps that began at ``since_ms``, none of them known; ``levels`` are
    those before and after."""
    if not len(keys):
        return past
    columns = {
        "keys": keys,
        "before": levels[0],
        "after": levels[1],
        "since_ms": since_ms,
        "worth": np.full(len(keys), 1.0 / len(keys)),
    }
    joined: dict[str, Any] = {
        name: np.concatenate((getattr(past, name), new)) for name, new in columns.items()
    }
    order = np.argsort(joined["keys"])
    return replace(past, **{name: column[order] for name, column in joined.items()})


def close_leaps(past: LeapRecord, here: Bools, back: Bools, now_ms: int) -> LeapRecord:
    """The record without the open leaps that are over.

    ``here``: (k,) whether what leapt is still known, and still counts as a leap; ``back``: whether
    the leap returned.
    """
    age_s = (now_ms - past.since_ms) / 1000.0
    back = here & back
    lasted = here & ~back & (age_s >= HORIZON_S)
    kept = 0.5 ** (max(now_ms - past.at_ms, 0) / (1000.0 * _HALF_LIFE_S))
    bins = np.searchsorted(EDGES_S, age_s[back], side="right") - 1
    counts = np.bincount(bins.clip(0), past.worth[back], len(EDGES_S))
    returned = kept * np.array(past.returned) + counts
    left = here & ~back & ~lasted
    lasted_s = np.where(past.up, age_s, -age_s)[back]
    return LeapRecord(
        keys=past.keys[left],
        before=past.before[left],
        after=past.after[left],
        since_ms=past.since_ms[left],
        worth=past.worth[left],
        returned=tuple(returned.tolist()),
        lasted=kept * past.lasted + float(past.worth[lasted].sum()),
        at_ms=now_ms,
        passed=past.passed.note(past.keys[back], lasted_s, past.keys[lasted], now_ms),
    )
