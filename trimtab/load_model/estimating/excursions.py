"""Bursts of a fleet known for minutes: how common they are, and which were not seen to begin.

A bundle that was first seen in a burst, or leapt in its first samples, seems to be as large as it
always was. Only the fleet tells better: where leaps up come one by one, they came before, too.

common  = whether more leaps up came one by one than bundles may grow for good in that time: most
          of them pass, even if none has had the time to
lasting = how long a burst lasts: the time spent in all that were seen, over those that ended
hidden  = bursts seen / (e^(known / lasting) - 1): of bursts that begin at any time and last
          exponentially, how many of those that go on began before the fleet was ``known``
beyond  = what a burst has beyond the level before it, in parts of the level, on average

Leaps that begin together are an event, and count here as none.
"""

from __future__ import annotations

from math import expm1
from typing import Final

import numpy as np

from trimtab.load_model.estimating.doubted_leaps import find_lone
from trimtab.load_model.estimating.leap_record import EDGES_S, HORIZON_S, LeapRecord
from trimtab.load_model.odds import TOGETHER, together

_FOR_GOOD_S: Final = 7 * 86_400.0
"""Time in which a bundle leaps up for good once, at most. Shorter: bursts are answered until some
have ended; longer: a fleet in which several tenants grow at about the same time waits."""
_ENDED: Final = 0.5
"""Bursts that are taken to have ended besides those that did (Jeffreys' prior for a rate). Lower: a
fleet whose first bursts have yet to end waits longer; higher: they seem to be short."""
_SOME: Final = 0.05
"""The number of hidden bursts up to which there is none: of fleets like this one, one in twenty has
one, as `trimtab.load_model.first_reports` has it. Lower: a young fleet waits longer; higher: a
burst that was never seen to begin is balanced."""
_LONGEST: Final = 100.0
"""Exponents above it leave nothing hidden."""


def are_bursts_common(record: LeapRecord, bundles: int, now_ms: int, since_ms: int) -> bool:
    """Whether most leaps up of a fleet known since ``since_ms`` must pass."""
    watched_s = min(_known_s(now_ms, since_ms), HORIZON_S)
    count = np.count_nonzero(find_lone(record, watched_s))
    return bool(count >= together(_lasting(bundles, watched_s)))


def find_hidden_part(record: LeapRecord, bundles: int, now_ms: int, since_ms: int) -> float:
    """The part of a bundle's level by which it may be too large, as a burst began before the fleet
    was known, since ``since_ms``; 0 if hardly any such burst goes on, or few leaps were seen."""
    known_s = _known_s(now_ms, since_ms)
    watched_s = min(known_s, HORIZON_S)
    lone = find_lone(record, watched_s)
    count = float(np.count_nonzero(lone))
    if count < TOGETHER + _lasting(bundles, watched_s):
        return 0.0
    age_s, ended = (now_ms - record.since_ms[lone]) / 1000.0, np.array(record.returned)
    middle_s = (np.array(EDGES_S) + np.array((*EDGES_S[1:], HORIZON_S))) / 2
    spent_s = float((record.worth[lone] * age_s).sum() + (ended * middle_s).sum())
    lasting_s = max(spent_s, 1.0) / (float(ended.sum()) + _ENDED)
    if count <= _SOME * expm1(min(known_s / lasting_s, _LONGEST)):
        return 0.0
    return float((1.0 - record.before[lone] / record.after[lone]).mean())


def _known_s(now_ms: int, since_ms: int) -> float:
    """For how long (s) the fleet is known; reports bear another clock's time than rounds."""
    return max(now_ms - since_ms, 0) / 1000.0


def _lasting(bundles: int, watched_s: float) -> float:
    """How many leaps up may last that began in this time."""
    return bundles * watched_s / _FOR_GOOD_S
