"""A load that swings is not chased: what plans count as, and how wide a range is accepted after.

counted  = 1 for a plan that begins after the last one's cool-down, less the part of it that answers
           steps
answered = all of it in an event, or where it goes on with the answer to one
           (`trimtab.load_model.event_answers`), or if it relieves a broker near overload; else what
           the plan takes from brokers up to what leaps brought there since the last plan, as a part
           of all that it takes; or what it brings, if that is more
A wave, noise that lasts, and tenants that grow and fall bring brokers apart without any leap. Where
now one bundle steps and now another, each plan is right, and none is a reason to leave the next one
out. Only leaps that are believed count, in a fleet whose leaps last. Nor is an event a swing: while
it lasts its plan is right, and once it passes another one is.

All provisional plans count as one. While bursts may go on that were not seen to begin, each plan
corrects what the one before it took for the usual load, and none shows a load that swings. While
the fleet grows beyond what it carried of late at its highest, as on a Monday, each goes on where
the one before it saw less of the growth. Should the load swing back, it falls, and what
falls is left alone (`trimtab.load_model.falls`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.load_model.estimating.doubted_leaps import find_young
from trimtab.load_model.estimating.rows import find_keys
from trimtab.load_model.history import PlannerHistory
from trimtab.names import identities
from trimtab.settings import Settings
from trimtab.settings.words import AIMS

_BALANCED: Final = AIMS["balanced"]
_WIDENING: Final = 0.75
"""The part of the target, of a balanced one at most, by which each recent plan widens what is
accepted. Lower: a swinging load is chased; higher: a real skew after a plan stays."""
_WIDEST: Final = 2.0
"""The most by which it widens, in the same unit: a balanced target then accepts what AvgShedder
does. Lower: a swinging load is chased; higher: a load that grows for hours is left to AvgShedder's
advantage."""
_CALM: Final = AIMS["calm"]
"""The range beyond which nothing widens: what AvgShedder accepts at all times. Lower: a swinging
load is chased; higher: under wide targets a range that swings is left wider than by AvgShedder, and
plans that come too late for one swing are wrong for the next."""
_HALF_LIFE_MS: Final = 12 * 3_600_000
"""Time after which a plan counts half. Shorter: a daily swing is chased; longer: a fleet that was
balanced yesterday stays skewed today."""


def unrest_of(history: PlannerHistory, now_ms: int) -> float:
    """The number of recent plans, faded to now."""
    elapsed_ms = max(now_ms - history.planned_ms, 0)
    return float(history.unrest * 0.5 ** (elapsed_ms / _HALF_LIFE_MS))


class Made(NamedTuple):
    """A plan that was made."""

    moves: int
    answered: float = 0.0
    """The part of it that answers steps."""
    provisional: bool = False
    """Whether more plans are to be expected for the same cause: bursts may go on that were not seen
    to begin, or the fleet grows beyond its highest."""
    cut: bool = False
    """See `PlannerHistory.cut`."""


def note_plan(
    history: PlannerHistory, made: Made, unrest: float, settings: Settings, now_ms: int
) -> PlannerHistory:
    """The history with a plan, after ``unrest`` recent ones."""
    counted = _count(history, made.moves, settings, now_ms)
    history = replace(history, cut=made.cut)
    if counted == 0:
        return history
    counted *= 1.0 - made.answered
    if made.provisional:
        counted = min(counted, max(1.0 - unrest, 0.0))
    return replace(
        history, unrest=unrest + counted, planned_ms=now_ms, counted=counted, swing=made.moves
    )


def find_answered_part(
    history: PlannerHistory, names: Sequence[str], where: Ints, brought: Floats, now_ms: int
) -> float:
    """The part of a plan that answers steps.

    ``where``: (m,) brokers of the bundles ``names`` before the plan; ``brought``: (n,) the traffic
    that it adds to brokers, in parts of the fleet's.
    """
    leaps = history.leaps
    if leaps.wait_s > 0:
        return 0.0
    counts = leaps.since_ms > history.planned_ms
    counts &= ~find_young(leaps, now_ms, history.known_since_ms)
    if not counts.any():
        return 0.0
    at, here = find_keys(identities(names), leaps.keys)
    rows = np.full(len(leaps.keys), -1)
    rows[at[here]] = np.flatnonzero(here)
    counts &= rows >= 0
    grown = (leaps.after - leaps.before)[counts]
    leapt = np.bincount(where[rows[counts]], grown, len(brought))
    answered = np.minimum(np.abs(brought), np.maximum(-np.sign(brought) * leapt, 0.0))
    parts = [
        float(answered[side].sum() / np.abs(brought[side]).sum())
        for side in (brought < 0, brought > 0)
        if side.any()
    ]
    return max(parts, default=0.0)


def has_just_planned(history: PlannerHistory, settings: Settings, now_ms: int) -> bool:
    """Whether the cool-down of the last plan lasts."""
    return now_ms - history.planned_ms < 1000 * settings.round.grace_period


def _count(history: PlannerHistory, moves: int, settings: Settings, now_ms: int) -> float:
    """How much a plan of so many moves, that answers no step, adds to the unrest, from 0 to 1.

    A plan that begins after the cool-down of the last one counts as 1. Within it, a plan that
    continues an unfinished one counts as 0; any other corrects the last plan, and counts as its
    moves over those of that one: corrections get smaller, and a load that swings does not.
    """
    if not has_just_planned(history, settings, now_ms):
        return 1.0
    return 0.0 if history.cut else min(moves / max(history.swing, 1), 1.0)


def find_tolerated_range(settings: Settings, unrest: float) -> float:
    """The range that is accepted without noise; ``unrest`` counts recent plans."""
    target = settings.planner.target
    wider = min(_WIDENING * max(unrest - 1.0, 0.0), _WIDEST)
    return max(target, min(target + min(target, _BALANCED) * wider, _CALM))


def find_slack(settings: Settings, unrest: float) -> float:
    """How far a broker may be from where it counts, so that a range as wide as after many plans is
    always seen."""
    widest = find_tolerated_range(settings, math.inf)
    return (widest - find_tolerated_range(settings, unrest)) / 2
