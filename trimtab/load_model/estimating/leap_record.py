"""Record whether the leaps of this fleet last, and how long to wait before one is believed.

leap     = of a bundle's level (`trimtab.load_model.estimating.bundle_leaps`), or of what a broker
           takes by itself (`trimtab.load_model.resources.excess`)
returned = within the horizon it came more than half of the way back
lasted   = it did not
wait     = twice the shortest age beyond which no more leaps returned than lasted: twice, as the
           longest bursts are rare, and few of them are known
Leaps that begin together count as one. A leap younger than the wait is a burst that may pass. In a
fleet whose leaps last there is no wait; where no more have lasted than returned, leaps up that come
one by one wait for a quarter of an hour. What leapt before and came back waits for twice as long as
that took (`trimtab.load_model.estimating.passed_leaps`). Leaps that begin together, more of them
than come so close by chance, are an event: chance is what the fleet's other leaps show, as far as
they tell in the time it is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.passed_leaps import PassedLeaps
from trimtab.load_model.odds import is_event

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
_CLOSE_S: Final = 75.0
"""Time within which leaps begin together: a round, and what reports differ by. Shorter: an
event seems to be single leaps; longer: bursts that happen to meet seem to be an event."""
FIRST_S: Final = 900.0
"""Age (s) at which a leap up that comes by itself is believed while no more have lasted than
returned: one of unknown kind is as likely as not to last as long again as it has lasted. Shorter:
the first bursts and backups of a fleet are answered; longer: what gets busier for good is answered
late."""
_UNFOUND_S: Final = 360.0
"""Time in which none of a fleet's leaps is found: noise is not known in the first few samples, and
what leaps takes a few until it is found. Shorter: bursts of a young fleet seem to meet; longer: an
event of one is taken for bursts."""
_JOINING_S: Final = 300.0
"""Time after an event in which further leaps belong to it: under noise some seem to begin late."""


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
        return isinstance(other, LeapRecord) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in LeapRecord.__dataclass_fields__
        )

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

    def young(self, now_ms: int, since_ms: int = 0, first_s: float = FIRST_S) -> Bools:
        """(k,) whether each open leap may still pass; the fleet is known since ``since_ms``, and a
        leap up that comes by itself waits for ``first_s``."""
        watched_s = min((now_ms - since_ms) / 1000.0, HORIZON_S)
        first = self.up & ~self.in_event(watched_s) & (not self.trusted)
        wait_s = np.maximum(self.wait_s, np.where(first, first_s, 0.0))
        young: Bools = now_ms - self.since_ms < 1000.0 * wait_s
        return young | self.recurring(now_ms)

    def recurring(self, now_ms: int) -> Bools:
        """(k,) whether the like of each open leap came back, and this one may, too."""
        wait_s = np.minimum(2 * self.passed.lasted_of(self.keys, self.up), HORIZON_S)
        recurring: Bools = now_ms - self.since_ms < 1000.0 * wait_s
        return recurring

    def ends_first_burst(self, now_ms: int, since_ms: int) -> Bools:
        """(k,) whether each open leap led down from a level that was known, in a fleet known since
        ``since_ms``, for no longer than the one it led to has lasted by now: then the fleet was
        first seen in a burst, and the later level is the usual one."""
        known_ms, lasted_ms = self.since_ms - since_ms, now_ms - self.since_ms
        ends: Bools = (self.after < self.before) & (lasted_ms >= known_ms)
        return ends

    def in_event(self, watched_s: float) -> Bools:
        """(k,) whether each open leap began with more others in its direction than come so close by
        chance, or soon after such leaps: where bursts overlap, some end as others begin."""
        in_event = np.zeros(len(self.keys), np.bool_)
        times = (watched_s - _UNFOUND_S) / _CLOSE_S - 1.0
        for alike in (self.up, ~self.up):
            in_event[alike] = _find_events(self.since_ms[alike], times)
        return in_event

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
    joined = {name: np.concatenate((getattr(past, name), new)) for name, new in columns.items()}
    order = np.argsort(joined["keys"])
    return LeapRecord(
        **{name: column[order] for name, column in joined.items()},
        returned=past.returned,
        lasted=past.lasted,
        at_ms=past.at_ms or int(since_ms.max()),
        passed=past.passed,
    )


def close_leaps(past: LeapRecord, here: Bools, back: Bools, now_ms: int) -> LeapRecord:
    """The record without the open leaps that are over.

    ``here``: (k,) whether what leapt is still known, and still counts as a leap; ``back``: whether
    the leap returned.
    """
    if not len(past.keys):
        return past
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


def _find_events(since_ms: Ints, times: float) -> Bools:
    """(k,) which leaps that began at ``since_ms`` are part of an event, in a fleet watched for so
    many ``times`` as long besides as what begins together takes."""
    began_ms, at, counts = np.unique(since_ms, return_inverse=True, return_counts=True)
    later_s = (began_ms[None, :] - began_ms[:, None]) / 1000.0
    close = ((later_s >= 0) & (later_s <= _CLOSE_S)) @ counts
    k = len(since_ms)
    begins = np.array([is_event(some, k - some, times) for some in close.tolist()], np.bool_)
    belongs = np.any(begins[:, None] & (later_s >= 0) & (later_s <= _JOINING_S), axis=0)
    found: Bools = np.asarray(belongs)[at.reshape(-1)]
    return found
