"""Classify each bundle's new sample: chance, or a level shift.

residual = log(sample / level), less the median residual of the fleet
z        = residual / its standard deviation
level    = average of the samples, a sample's weight halving each half-life
up, down = sums of z beyond a drift (Page's CUSUM); when one passes the bound, the bundle's level
           has shifted: it restarts with the samples since the sum was last zero; where several
           bundles have just shifted, a lower bound is enough
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load_model.estimates import Estimates, Samples
from trimtab.load_model.events import Leaps, draw_leaps
from trimtab.load_model.odds import DRIFT, TOGETHER, bound_in_event

_RECENT_MS: Final = 60_000
"""A sample equal to the last one counts only after this time: brokers repeat a statistic until they
refresh it (Pulsar every 60 s)."""
_TINY: Final = 1e-3
"""A part of the average share, added to each share: changes of bundles below it hardly count."""
_PRIOR: Final = 10.0
"""Samples after which a bundle's own variance outweighs the fleet's. Lower: few samples decide;
higher: a noisy bundle counts as a quiet one for long."""
_LEAST_DEVIATION: Final = 0.005
"""Floor of the log deviation: without it every change of a steady bundle is a level shift."""
_MOST_DEVIATION: Final = 10.0
"""Cap on the log deviation: reached by bundles whose load comes and goes completely."""
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
    before = np.where(first, shares, find_level_before_run(old))
    residual = np.log((shares + tiny) / (before + tiny))
    residual -= np.median(residual[news]) if news.any() else 0.0
    variance, seen = _variance(old, residual, news)
    deviation = np.sqrt(np.where(news, variance * _spread(old), 1.0))
    runs = _runs(old, residual / deviation, shares, news)
    leap = news & (np.abs(residual) > _LEAP)
    struck = old.leaping + int(np.count_nonzero(leap & runs.beyond(bound)))
    if struck >= TOGETHER:
        bound = bound_in_event(len(shares), struck)
    shifted = news & runs.beyond(bound)
    begun, length = runs.mean(bound)
    worth, together = length.copy(), np.flatnonzero(shifted & leap)
    if len(together) >= TOGETHER:
        columns = (before + tiny, begun + tiny, length, variance)
        level, worth[together] = draw_leaps(Leaps(*(each[together] for each in columns)))
        begun[together] = np.clip(level - tiny, 0.0, 1.0)
    counted = news | first
    weight = np.where(counted, old.weight * fading + 1, old.weight)
    level = _rescale(old.level, shares, news & ~shifted) if shifted.any() else old.level
    level = np.where(counted, level + (shares - level) / weight, level)
    squares = np.where(counted, old.squares * fading**2 + 1, old.squares)
    return Estimates(
        keys=old.keys,
        at_ms=np.where(counted, samples.at_ms, old.at_ms),
        sample=np.where(counted, samples.traffic, old.sample),
        level=np.where(shifted, begun, level),
        weight=np.where(shifted, worth, weight),
        squares=np.where(shifted, worth, squares),
        variance=np.where(shifted, old.variance, variance),
        seen=np.where(shifted, old.seen, seen),
        **{name: np.where(shifted, 0.0, each) for name, each in runs._asdict().items()},
        age=np.where(shifted & leap, length, old.age + counted),
    )


def _rescale(level: Floats, shares: Floats, others: Bools) -> Floats:
    """The levels, scaled by how a level shift changed the total share of all ``others``."""
    known, now = float(level[others].sum()), float(shares[others].sum())
    return level * (now / known) if known > _NOTHING else level


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


def find_level_before_run(old: Estimates) -> Floats:
    """(m,) the level without the samples of the run: a shift must not hide behind its own effect on
    the average."""
    rises = old.up > old.down
    run, length = np.where(rises, old.rise, old.fall), np.where(rises, old.rising, old.falling)
    weight = old.weight - length
    apart = (length > 0) & (weight >= 1.0)
    without = (old.level * old.weight - run) / np.where(apart, weight, 1.0)
    level: Floats = np.where(apart, np.maximum(without, 0.0), old.level)
    return level


def _spread(old: Estimates) -> Floats:
    """(m,) variance of a residual relative to a sample's: the level has errors too."""
    spread: Floats = 1.0 + old.squares / np.maximum(old.weight, 1.0) ** 2
    return spread


def _variance(old: Estimates, residual: Floats, news: Bools) -> tuple[Floats, Floats]:
    """(m,) variance of each bundle, drawn towards the fleet's median while it has few samples, and
    the number of residuals in it."""
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
