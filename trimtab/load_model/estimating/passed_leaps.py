"""Leaps that came back, by what leapt: a job that runs every hour leaps every hour.

What leapt and came back is expected to do so again: the next leap in the same direction waits for
twice as long as the last one lasted. That is known of each bundle, or broker, by itself, whatever
the fleet's other leaps do, and of many that leap together too.

So is what leapt together with others, once some of these came back: the jobs of an hour begin
together, and end one after another.

What leaps up after a dip catches up: consumers that stopped read their backlog. A leap is half more
at least, so what was missed in the dip is made up for within twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats, Ints, same_columns
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.rows import find_keys
from trimtab.load_model.odds import TOGETHER

_REMEMBERED_MS: Final = 2 * 86_400_000
"""Time for which a leap that came back is remembered. Shorter: a daily job is answered every day;
longer: what gets busier for good after it once did for a while is answered late."""
CLOSE_S: Final = 75.0
"""Time within which leaps begin together: a round, and what reports differ by. Shorter: an
event seems to be single leaps; longer: bursts that happen to meet seem to be an event."""
_SOME: Final = 0.25
"""The part of an event that came back from which the rest is expected to. Lower: noise in a few of
many takes the answer to an event back; higher: where jobs end one after another, each end is
answered. Four fleets with hourly jobs make 145 moves a day without the rule, 136 with a half and
117 with a quarter."""


@dataclass(frozen=True, slots=True, eq=False)
class PassedLeaps:
    """(k,) columns, ascending by ``keys``: the last leap of each that came back."""

    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    lasted_s: Floats = field(default_factory=lambda: np.zeros(0))
    """How long it lasted; below 0 of a leap down."""
    at_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """When it came back."""

    def __eq__(self, other: object) -> bool:
        return same_columns(self, other)

    @property
    def began_ms(self) -> Ints:
        """(k,) when each began."""
        began_ms: Ints = self.at_ms - np.abs(1000.0 * self.lasted_s).astype(np.int64)
        return began_ms

    def lasted_of(self, keys: Keys, up: Bools) -> Floats:
        """(k,) how long (s) the last leap in the same direction lasted; 0 if none came back."""
        at, here = find_keys(keys, self.keys)
        lasted_s = self.lasted_s[at[here]]
        lasted = np.zeros(len(keys))
        lasted[here] = np.maximum(np.where(up[here], lasted_s, -lasted_s), 0.0)
        return lasted

    def lasted_beside(self, up: Bools, since_ms: Ints) -> Floats:
        """(k,) how long (s) leaps lasted on average that began together with each, in the same
        direction; 0 unless three came back, which are no chance, and not few of them all."""
        lasted_s, began_ms = np.abs(self.lasted_s), self.began_ms
        beside = np.zeros(len(up))
        for mine, theirs in ((up, self.lasted_s > 0), (~up, self.lasted_s < 0)):
            at = since_ms[mine]
            order = np.argsort(began_ms[theirs])
            first, last = _find_close(began_ms[theirs][order], at)
            open_first, open_last = _find_close(np.sort(at), at)
            back, left = last - first, open_last - open_first
            some = (back >= TOGETHER) & (back >= _SOME * (back + left))
            total = np.append(0.0, np.cumsum(lasted_s[theirs][order]))
            mean = (total[last] - total[first]) / np.maximum(back, 1)
            beside[mine] = np.where(some, mean, 0.0)
        return beside

    def dipped_of(self, keys: Keys, up: Bools, since_ms: Ints) -> Floats:
        """(k,) how long (s) the dip lasted that a leap up at ``since_ms`` catches up on; 0 if it is
        down, or the last dip ended more than twice as long before it."""
        at, here = find_keys(keys, self.keys)
        dipped_s = np.where(up, self.lasted_of(keys, np.zeros_like(up)), 0.0)
        after_s = np.full(len(keys), np.inf)
        after_s[here] = (since_ms[here] - self.at_ms[at[here]]) / 1000.0
        dipped: Floats = np.where(after_s <= 2 * dipped_s, dipped_s, 0.0)
        return dipped

    def note(self, keys: Keys, lasted_s: Floats, lasting: Keys, now_ms: int) -> PassedLeaps:
        """With further leaps that came back now, without what leapt for good (``lasting``)."""
        kept = self.at_ms >= now_ms - _REMEMBERED_MS
        kept &= ~np.isin(self.keys, np.concatenate((keys, lasting)))
        # Most rounds note nothing.
        if not len(keys) and kept.all():
            return self
        joined = np.concatenate((self.keys[kept], keys))
        order = np.argsort(joined)
        return PassedLeaps(
            joined[order],
            np.concatenate((self.lasted_s[kept], lasted_s))[order],
            np.concatenate((self.at_ms[kept], np.full(len(keys), now_ms, np.int64)))[order],
        )


def _find_close(began_ms: Floats | Ints, at_ms: Ints) -> tuple[Ints, Ints]:
    """(k,) the first of the sorted times that is close to each of ``at_ms``, and that after the
    last."""
    first = np.searchsorted(began_ms, at_ms - 1000.0 * CLOSE_S)
    return first, np.searchsorted(began_ms, at_ms + 1000.0 * CLOSE_S, side="right")
