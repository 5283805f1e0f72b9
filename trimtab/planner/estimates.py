"""What each bundle carries, told apart from its noise: averages, their variance, and steps.

A bundle is followed as a share of the fleet's traffic, so that what all do together (a day's wave)
changes nothing. Of each new sample:

residual = log(sample / level), less the median residual of the fleet
z        = residual / its standard deviation
level    = average of the samples, a sample's weight halving each half-life
up, down = sums of z beyond a drift (Page's CUSUM); one that passes the bound says that the bundle
           has stepped: its level starts anew with the samples since the sum was last zero;
           where several have just stepped, a lower one says so
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.planner.odds import DRIFT, TOGETHER, bound_in_event
from trimtab.view import Bools, Floats, Ints

Keys = NDArray[np.uint64]

_FORGET_MS: Final = 3_600_000
"""A bundle that nobody has reported for so long is forgotten."""
_RECENT_MS: Final = 60_000
"""A sample that repeats the last one counts only so long after it: brokers repeat a statistic until
they refresh it (Pulsar each 60 s)."""
_AWAY_MS: Final = 600_000
"""A bundle that is moved, or whose owner is lost, is back by then."""
_MOST_UNSEEN: Final = 0.5
_TINY: Final = 1e-3
"""Of an average bundle's share: below it, ups and downs are of no interest."""
_PRIOR: Final = 10.0
"""Samples after which a bundle's own variance outweighs that of all."""
_LEAST_DEVIATION: Final = 0.005
_MOST_DEVIATION: Final = 10.0
"""Of a logarithm: what comes and goes altogether is no more certain to."""
_CLIPPED: Final = 3.0
"""Standard deviations beyond which a residual tells nothing of the variance."""
_MAD: Final = 1.4826
"""Standard deviations in a median absolute deviation, of a normal distribution."""
_SETTLED: Final = 10.0
"""Samples after which a step is history."""
_LEAP: Final = 0.4
"""Of the logarithm."""
_JUST: Final = 7.0
"""Samples up to which it may be one event with others."""


def _none() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """(m,) columns, ascending by ``keys`` (`trimtab.names.identities`)."""

    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    at_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """When the report of the newest sample was appended."""
    sample: Floats = field(default_factory=_none)
    """The newest, as reported."""
    level: Floats = field(default_factory=_none)
    """Average share of the fleet's traffic."""
    weight: Floats = field(default_factory=_none)
    """Sum of the samples' weights in it."""
    squares: Floats = field(default_factory=_none)
    """Sum of their squares."""
    variance: Floats = field(default_factory=_none)
    """Of a sample's logarithm, pooled; 0 before there was a second sample."""
    seen: Floats = field(default_factory=_none)
    """Residuals in ``variance``."""
    up: Floats = field(default_factory=_none)
    down: Floats = field(default_factory=_none)
    rise: Floats = field(default_factory=_none)
    """Sum of the samples since ``up`` was zero."""
    rising: Floats = field(default_factory=_none)
    """How many those are."""
    fall: Floats = field(default_factory=_none)
    falling: Floats = field(default_factory=_none)
    """The same of ``down``."""
    stepped: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Whether it leapt a short while ago: stepped by far, not as a wave does again and again."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimates) and all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name))
            for each in fields(Estimates)
        )

    @property
    def struck(self) -> int:
        """How many have just leapt."""
        return int(np.count_nonzero(self.stepped & (self.weight <= _JUST)))

    @property
    def chance(self) -> Floats:
        """(m,) variance of ``level``; 0 of a bundle that has stepped, for that was no chance."""
        chance: Floats = np.where(self.stepped, 0.0, self.spread)
        return chance

    @property
    def spread(self) -> Floats:
        """(m,) variance of ``level``."""
        each = self.level**2 * np.expm1(self.variance)
        spread: Floats = each * self.squares / np.maximum(self.weight, 1.0) ** 2
        return spread


class Samples(NamedTuple):
    """(m,) columns, ascending by ``keys``: bytes/s, and when they were reported."""

    keys: Keys
    traffic: Floats
    at_ms: Ints


def taken(all_of: Estimates, at: Ints) -> Estimates:
    """The rows ``at`` these places, in that order."""
    return Estimates(**{each.name: getattr(all_of, each.name)[at] for each in fields(Estimates)})


def located(all_of: Estimates, keys: Keys) -> tuple[Ints, Bools]:
    """Places of ``keys`` in the estimates, and which of them are there."""
    if np.array_equal(all_of.keys, keys):
        return np.arange(len(keys)), np.ones(len(keys), np.bool_)
    if not len(all_of.keys):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
    at = np.minimum(np.searchsorted(all_of.keys, keys), len(all_of.keys) - 1)
    return at, all_of.keys[at] == keys


def followed(past: Estimates, samples: Samples, half_life: float, bound: float) -> Estimates:
    """One round later. ``half_life`` in seconds, ``bound`` of the sums
    (`trimtab.planner.odds.bound`)."""
    known, kept = _carried(past, samples)
    total = float(samples.traffic.sum())
    if total > 0:
        unseen = 0.0 if kept is None else _unseen(kept, int(samples.at_ms.max()))
        shares = samples.traffic / total * (1.0 - unseen)
        known = _sampled(known, samples, shares, half_life, bound)
    return known if kept is None else _joined(known, kept)


def _carried(past: Estimates, samples: Samples) -> tuple[Estimates, Estimates | None]:
    """A row for each sample, and the rows of bundles that nobody reports at the moment."""
    keys = samples.keys
    if np.array_equal(past.keys, keys):
        return past, None
    at, here = located(past, keys)
    absent = np.ones(len(past.keys), np.bool_)
    absent[at[here]] = False
    absent &= past.at_ms >= samples.at_ms.max(initial=0) - _FORGET_MS
    kept = taken(past, np.flatnonzero(absent)) if absent.any() else None
    fresh = _unknown(samples)
    if not here.any():
        return fresh, kept
    old = taken(past, at)
    merged = {
        each.name: np.where(here, getattr(old, each.name), getattr(fresh, each.name))
        for each in fields(Estimates)
    }
    return Estimates(**merged), kept


def _unseen(absent: Estimates, now_ms: int) -> float:
    """The share of bundles that were reported a short while ago and are not any more."""
    recent = absent.at_ms >= now_ms - _AWAY_MS
    return min(float(absent.level[recent].sum()), _MOST_UNSEEN)


def _unknown(samples: Samples) -> Estimates:
    nothing = np.zeros(len(samples.keys))
    return Estimates(
        keys=samples.keys,
        at_ms=samples.at_ms,
        sample=samples.traffic,
        level=nothing,
        weight=nothing,
        squares=nothing,
        variance=nothing,
        seen=nothing,
        up=nothing,
        down=nothing,
        rise=nothing,
        rising=nothing,
        fall=nothing,
        falling=nothing,
        stepped=np.zeros(len(samples.keys), np.bool_),
    )


def _joined(some: Estimates, others: Estimates) -> Estimates:
    whole = {
        each.name: np.concatenate((getattr(some, each.name), getattr(others, each.name)))
        for each in fields(Estimates)
    }
    return taken(Estimates(**whole), np.argsort(whole["keys"]))


def _sampled(
    old: Estimates, samples: Samples, shares: Floats, half_life: float, bound: float
) -> Estimates:
    first, elapsed_ms = old.weight == 0, samples.at_ms - old.at_ms
    repeated = (samples.traffic == old.sample) & (elapsed_ms < _RECENT_MS)
    news = (elapsed_ms > 0) & ~repeated & ~first
    if not (news | first).any():
        return old
    fading = 0.5 ** (np.maximum(elapsed_ms, 0) / (1000.0 * half_life))
    tiny = _TINY * float(shares.mean())
    residual = np.log((shares + tiny) / (np.where(first, shares, _before_run(old)) + tiny))
    residual -= np.median(residual[news]) if news.any() else 0.0
    variance, seen = _variance(old, residual, news)
    deviation = np.sqrt(np.where(news, variance * _spread(old), 1.0))
    z = residual / deviation
    up = np.where(news, np.maximum(old.up + z - DRIFT, 0.0), old.up)
    down = np.where(news, np.maximum(old.down - z - DRIFT, 0.0), old.down)
    rise, rising = _run(up, old.rise, old.rising, shares, news)
    fall, falling = _run(down, old.fall, old.falling, shares, news)
    step = news & ((up > bound) | (down > bound))
    leap = np.abs(residual) > _LEAP
    struck = old.struck + int(np.count_nonzero(step & leap))
    if struck >= TOGETHER:
        bound = bound_in_event(len(shares), struck)
        step = news & ((up > bound) | (down > bound))
    run, length = np.where(up > bound, rise, fall), np.where(up > bound, rising, falling)
    counted = news | first
    weight = np.where(counted, old.weight * fading + 1, old.weight)
    level = np.where(counted, old.level + (shares - old.level) / weight, old.level)
    squares = np.where(counted, old.squares * fading**2 + 1, old.squares)
    return Estimates(
        keys=old.keys,
        at_ms=np.where(counted, samples.at_ms, old.at_ms),
        sample=np.where(counted, samples.traffic, old.sample),
        level=np.where(step, run / np.maximum(length, 1), level),
        weight=np.where(step, length, weight),
        squares=np.where(step, length, squares),
        variance=np.where(step, old.variance, variance),
        seen=np.where(step, old.seen, seen),
        up=np.where(step, 0.0, up),
        down=np.where(step, 0.0, down),
        rise=np.where(step, 0.0, rise),
        rising=np.where(step, 0.0, rising),
        fall=np.where(step, 0.0, fall),
        falling=np.where(step, 0.0, falling),
        stepped=(step & leap) | (old.stepped & (weight < _SETTLED)),
    )


def _run(
    above: Floats, run: Floats, length: Floats, shares: Floats, news: Bools
) -> tuple[Floats, Floats]:
    """Sum and number of the samples since ``above`` was zero."""
    running = above > 0
    return (
        np.where(news, np.where(running, run + shares, 0.0), run),
        np.where(news, np.where(running, length + 1, 0.0), length),
    )


def _before_run(old: Estimates) -> Floats:
    """(m,) the level without the samples of the run: what has stepped must not hide behind what it
    has done to its own average."""
    rises = old.up > old.down
    run, length = np.where(rises, old.rise, old.fall), np.where(rises, old.rising, old.falling)
    weight = old.weight - length
    apart = (length > 0) & (weight >= 1.0)
    without = (old.level * old.weight - run) / np.where(apart, weight, 1.0)
    level: Floats = np.where(apart, np.maximum(without, 0.0), old.level)
    return level


def _spread(old: Estimates) -> Floats:
    """(m,) variance of a residual in units of a sample's: the level it is held against errs too."""
    spread: Floats = 1.0 + old.squares / np.maximum(old.weight, 1.0) ** 2
    return spread


def _variance(old: Estimates, residual: Floats, news: Bools) -> tuple[Floats, Floats]:
    """Each bundle's, drawn towards what is usual in the fleet while it has few samples."""
    if not news.any():
        return old.variance, old.seen
    whole = residual / np.sqrt(_spread(old))
    known = old.seen > 0
    usual = (_MAD * float(np.median(np.abs(whole[news])))) ** 2
    if known.any():
        usual = float(np.median(old.variance[known]))
    usual = min(max(usual, _LEAST_DEVIATION**2), _MOST_DEVIATION**2)
    before = np.where(known, old.variance, usual)
    clipped = np.minimum(whole**2, _CLIPPED**2 * before)
    count = np.minimum(old.seen + 1, 1000.0)
    variance = before + (clipped - before) / (count + _PRIOR)
    variance = np.clip(variance, _LEAST_DEVIATION**2, _MOST_DEVIATION**2)
    return np.where(news, variance, before), np.where(news, count, old.seen)
