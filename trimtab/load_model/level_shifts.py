"""Classify each bundle's new sample: chance, or a level shift.

residual = log(sample / level), less the median residual of the fleet
z        = residual / its standard deviation
level    = average of the samples, a sample's weight halving each half-life
up, down = sums of z beyond a drift (Page's CUSUM); when one passes the bound, the bundle's level
           has shifted: it restarts with the samples since the sum was last zero; where several
           bundles have just shifted, a lower bound is enough
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load_model.estimates import JOINED, Estimates, Samples
from trimtab.load_model.events import Leaps, draw_leaps
from trimtab.load_model.memory import PRIOR, STEADY, find_memory, innovation, true_variance
from trimtab.load_model.odds import DRIFT, TOGETHER, bound_in_event, together
from trimtab.load_model.outlying import FAR, MOST_AT_ONCE, counted_samples

_RECENT_MS: Final = 60_000
"""A sample equal to the last one counts only after this time: brokers repeat a statistic until they
refresh it (Pulsar every 60 s)."""
_TINY: Final = 1e-3
"""A part of the average share, added to each share: changes of bundles below it hardly count."""
_LEAST_DEVIATION: Final = STEADY
_MOST_DEVIATION: Final = 10.0
"""Cap on the log deviation: reached by bundles whose load comes and goes completely."""
_SAMPLES: Final = 1000.0
"""The most samples that the noise is averaged over."""
_CLIPPED: Final = 3.0
"""Standard deviations at which a residual is clipped: one outlier must not set the variance."""
_MAD: Final = 1.4826
"""Standard deviations per median absolute deviation, of a normal distribution."""
_LEAP: Final = 0.4
"""Change of the logarithm, a factor of 1.5, above which a shift is a leap. Lower: a wave leaps
again and again; higher: events of smaller factors are found one bundle at a time."""
_NOTHING: Final = 1e-9
"""A share of all traffic too small to divide by."""


def add_sample(
    old: Estimates, samples: Samples, shares: Floats, half_life: float, bound: float
) -> Estimates:
    """Add a sample of each bundle; (m,) ``shares`` are the samples' parts of the fleet's traffic,
    ``half_life`` is in seconds."""
    first, elapsed_ms = old.weight == 0, samples.at_ms - old.at_ms
    repeated = (samples.traffic == old.sample) & (elapsed_ms < _RECENT_MS)
    news = (elapsed_ms > 0) & ~repeated & ~first
    if not (news | first).any():
        return old
    fading = 0.5 ** (np.maximum(elapsed_ms, 0) / (1000.0 * half_life))
    tiny = _TINY * float(shares.mean())
    before = np.where(first, shares, _before_run(old))
    residual = np.log((shares + tiny) / (before + tiny))
    common = float(np.median(residual[news])) if news.any() else 0.0
    residual -= common
    earlier = np.where(first, 0.0, np.log((old.last + tiny) / (before + tiny)))
    noise = _noise(old, residual, earlier, news)
    outlying = old.outlying
    deviation = noise.deviation(old)
    z = np.where(news, (residual - noise.memory * earlier) / deviation, 0.0)
    limit = outlying.limit(bound)
    clipped = np.clip(z, -limit, limit)
    # One that is far from the level counts in part, and so does what the noise remembers of it.
    most = limit * np.sqrt(noise.true)
    outlier = news & ((clipped != z) | (np.abs(residual) > most))
    excess = np.where(outlier, residual - np.clip(residual, -most, most), 0.0)
    believed = np.clip((shares + tiny) * np.exp(-excess) - tiny, 0.0, 1.0)
    believed = np.where(outlier, believed, shares)
    runs = _runs(old, clipped, believed, news)
    leap = news & (np.abs(residual) > _LEAP)
    struck = old.leaping + int(np.count_nonzero(leap & runs.beyond(bound)))
    if struck >= together(outlying.expected(JOINED)):
        bound = bound_in_event(len(shares), struck)
    shifted = news & runs.beyond(bound)
    begun, length = runs.mean(bound)
    begun, length = np.where(outlier, shares, begun), np.where(outlier, 1.0, length)
    worth, leapt = length.copy(), np.flatnonzero(shifted & leap)
    if len(leapt) >= TOGETHER:
        columns = (before + tiny, begun + tiny, length, noise.variance)
        level, worth[leapt] = draw_leaps(Leaps(*(each[leapt] for each in columns)))
        begun[leapt] = np.clip(level - tiny, 0.0, 1.0)
    counted = news | first
    weight = np.where(counted, old.weight * fading + 1, old.weight)
    scale = _scale(old.level, shares, news & ~shifted) if shifted.any() else 1.0
    level = old.level * scale
    level = np.where(counted, level + (believed - level) / weight, level)
    last = np.where(counted, shares * np.exp(-common), old.last) * scale
    squares = np.where(counted, old.squares * fading**2 + 1, old.squares)
    return Estimates(
        keys=old.keys,
        at_ms=np.where(counted, samples.at_ms, old.at_ms),
        sample=np.where(counted, samples.traffic, old.sample),
        level=np.where(shifted, begun, level),
        weight=np.where(shifted, worth, weight),
        squares=np.where(shifted, worth, squares),
        variance=np.where(shifted, old.variance, noise.variance),
        seen=np.where(shifted, old.seen, noise.seen),
        **{name: np.where(shifted, 0.0, each) for name, each in runs._asdict().items()},
        age=np.where(shifted & leap, length, old.age + counted),
        last=np.where(shifted, shares, last),
        moved=np.where(shifted, old.moved, noise.moved),
        memory=noise.memory,
        outliers=_outliers(old, z, news),
    )


def _scale(level: Floats, shares: Floats, others: Bools) -> float:
    """How a level shift changed the total share of all ``others``."""
    known, now = float(level[others].sum()), float(shares[others].sum())
    return now / known if known > _NOTHING else 1.0


class _Runs(NamedTuple):
    """(m,) run columns of `Estimates`, one sample later."""

    up: Floats
    rise: Floats
    rising: Floats
    down: Floats
    fall: Floats
    falling: Floats

    def beyond(self, bound: float) -> Bools:
        """(m,) whether a sum has passed the bound."""
        beyond: Bools = (self.up > bound) | (self.down > bound)
        return beyond

    def mean(self, bound: float) -> tuple[Floats, Floats]:
        """(m,) mean and number of the samples in the run of the sum that passed the bound."""
        rises = self.up > bound
        length = np.where(rises, self.rising, self.falling)
        return np.where(rises, self.rise, self.fall) / np.maximum(length, 1), length


def _runs(old: Estimates, z: Floats, shares: Floats, news: Bools) -> _Runs:
    """The sums after ``z``, the residuals in standard deviations."""
    up = np.where(news, np.maximum(old.up + z - DRIFT, 0.0), old.up)
    down = np.where(news, np.maximum(old.down - z - DRIFT, 0.0), old.down)
    return _Runs(
        up,
        *_run(up, old.rise, old.rising, shares, news),
        down,
        *_run(down, old.fall, old.falling, shares, news),
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
    """(m,) the level without the samples of the run: a shift must not hide behind its own effect on
    the average."""
    rises = old.up > old.down
    run, length = np.where(rises, old.rise, old.fall), np.where(rises, old.rising, old.falling)
    weight = old.weight - length
    apart = (length > 0) & (weight >= 1.0)
    without = (old.level * old.weight - run) / np.where(apart, weight, 1.0)
    level: Floats = np.where(apart, np.maximum(without, 0.0), old.level)
    return level


class _Noise(NamedTuple):
    """(m,) columns of `Estimates` that describe the noise, one sample later."""

    variance: Floats
    moved: Floats
    memory: Floats
    seen: Floats

    @property
    def true(self) -> Floats:
        """(m,) variance of a sample's logarithm."""
        return true_variance(self.variance, self.moved, self.memory)

    def deviation(self, old: Estimates) -> Floats:
        """(m,) standard deviation of what a sample has beyond what the last one leads to expect."""
        new: Floats = np.sqrt(self.true * innovation(self.memory, old.weight, old.squares))
        return np.maximum(new, _LEAST_DEVIATION)


def _noise(old: Estimates, residual: Floats, earlier: Floats, news: Bools) -> _Noise:
    """The noise after the residuals of a sample and, about the same level, of the one before."""
    # While a level shift is likely, the samples say nothing of the noise.
    news = news & (np.maximum(old.up, old.down) <= FAR - DRIFT)
    if not news.any():
        return _Noise(old.variance, old.moved, old.memory, old.seen)
    # The level has errors too.
    spread = np.sqrt(1.0 + old.squares / np.maximum(old.weight, 1.0) ** 2)
    variance = _pooled(old.variance, old.seen, residual / spread, news)
    moved = _pooled(old.moved, old.seen, (residual - earlier) / math.sqrt(2.0), news)
    seen = np.where(news, np.minimum(old.seen + 1, _SAMPLES), old.seen)
    return _Noise(variance, moved, find_memory(variance, moved, seen, old.weight), seen)


def _pooled(old: Floats, seen: Floats, deviating: Floats, news: Bools) -> Floats:
    """(m,) mean square of each bundle, drawn towards the fleet's median while samples are few."""
    known = seen > 0
    usual = (_MAD * float(np.median(np.abs(deviating[news])))) ** 2
    if known.any():
        usual = float(np.median(old[known]))
    usual = min(max(usual, _LEAST_DEVIATION**2), _MOST_DEVIATION**2)
    before = np.where(known, old, usual)
    clipped = np.minimum(deviating**2, _CLIPPED**2 * before)
    count = np.minimum(seen + 1, _SAMPLES)
    square = before + (clipped - before) / (count + PRIOR)
    square = np.clip(square, _LEAST_DEVIATION**2, _MOST_DEVIATION**2)
    return np.where(news, square, before)


def _outliers(old: Estimates, z: Floats, news: Bools) -> Floats:
    """(m,) the part of the counted samples that are outliers; those of an event count in part."""
    counted = counted_samples(np.minimum(old.seen + 1, _SAMPLES))
    taken = news & (counted > 0)
    # Those of one run are one outlier.
    far = taken & (np.abs(z) > FAR) & (np.maximum(old.up, old.down) <= 0)
    part = min(1.0, MOST_AT_ONCE * np.count_nonzero(taken) / max(np.count_nonzero(far), 1))
    found = old.outliers + (far * part - old.outliers) / np.maximum(counted, 1.0)
    return np.where(taken, found, old.outliers)
