"""Which of the open leaps may pass.

young     = younger than the wait of its fleet (`trimtab.load_model.estimating.leap_record`)
lone      = up, in no event, in a fleet where no more leaps have lasted than returned: it waits for
            a quarter of an hour
recurring = its like came back, or some of what leapt with it, or it catches up on a dip: it waits
            for twice as long as that took (`trimtab.load_model.estimating.passed_leaps`)
event     = leaps that begin together, more of them than come so close by chance; chance is what the
            fleet's other leaps show, as far as they tell in the time it is known
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.arrays import Bools, Ints
from trimtab.load_model.estimating.leap_record import HORIZON_S, LeapRecord
from trimtab.load_model.estimating.passed_leaps import CLOSE_S
from trimtab.load_model.odds import is_event

LONE_S: Final = 900.0
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


def find_young(record: LeapRecord, now_ms: int, since_ms: int = 0, lone_s: float = LONE_S) -> Bools:
    """(k,) whether each open leap may still pass; the fleet is known since ``since_ms``, and a lone
    leap waits for ``lone_s``."""
    watched_s = min((now_ms - since_ms) / 1000.0, HORIZON_S)
    wait_s = np.maximum(record.wait_s, np.where(find_lone(record, watched_s), lone_s, 0.0))
    young: Bools = now_ms - record.since_ms < 1000.0 * wait_s
    return young | find_recurring(record, now_ms)


def find_lone(record: LeapRecord, watched_s: float) -> Bools:
    """(k,) whether each open leap is up and part of no event, where no more have lasted than
    returned; the fleet is watched for so long, an hour or so at most."""
    lone: Bools = record.up & ~are_in_event(record, watched_s) & (not record.trusted)
    return lone


def find_recurring(record: LeapRecord, now_ms: int) -> Bools:
    """(k,) whether the like of each open leap came back, or some of those that began with it, and
    this one may, too, or it catches up on a dip."""
    lasted_s = record.passed.lasted_of(record.keys, record.up)
    dipped_s = record.passed.dipped_of(record.keys, record.up, record.since_ms)
    beside_s = record.passed.lasted_beside(record.up, record.since_ms)
    wait_s = 2 * np.maximum.reduce((lasted_s, beside_s, dipped_s))
    recurring: Bools = now_ms - record.since_ms < 1000.0 * wait_s
    return recurring


def find_first_ends(record: LeapRecord, now_ms: int, since_ms: int) -> Bools:
    """(k,) whether each open leap led down from a level that was known, in a fleet known since
    ``since_ms``, for no longer than the one it led to has lasted by now: then the fleet was first
    seen in a burst, and the later level is the usual one."""
    known_ms, lasted_ms = record.since_ms - since_ms, now_ms - record.since_ms
    ends: Bools = (record.after < record.before) & (lasted_ms >= known_ms)
    return ends


def are_in_event(record: LeapRecord, watched_s: float) -> Bools:
    """(k,) whether each open leap began with more others in its direction than come so close by
    chance, or soon after such leaps: where bursts overlap, some end as others begin."""
    return find_events(record.since_ms, record.up, watched_s)


def find_events(began_ms: Ints, up: Bools, watched_s: float) -> Bools:
    """(k,) whether each leap is part of an event, as `are_in_event` says, of all that ``began``
    while the fleet was watched; ``up``: in which direction."""
    in_event = np.zeros(len(up), np.bool_)
    times = (watched_s - _UNFOUND_S) / CLOSE_S - 1.0
    for alike in (up, ~up):
        in_event[alike] = _find_events_one_way(began_ms[alike], times)
    return in_event


def _find_events_one_way(since_ms: Ints, times: float) -> Bools:
    """(k,) which leaps that began at ``since_ms`` are part of an event, in a fleet watched for so
    many ``times`` as long besides as what begins together takes."""
    began_ms, at, counts = np.unique(since_ms, return_inverse=True, return_counts=True)
    later_s = (began_ms[None, :] - began_ms[:, None]) / 1000.0
    close = ((later_s >= 0) & (later_s <= CLOSE_S)) @ counts
    k = len(since_ms)
    begins = np.array([is_event(some, k - some, times) for some in close.tolist()], np.bool_)
    belongs = np.any(begins[:, None] & (later_s >= 0) & (later_s <= _JOINING_S), axis=0)
    found: Bools = np.asarray(belongs)[at.reshape(-1)]
    return found
