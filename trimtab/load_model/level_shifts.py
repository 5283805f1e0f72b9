"""Classify each bundle's new sample: chance, or a level shift.

residual = log(sample / level), less the median residual of the fleet
z        = (residual - memory * residual of the last sample) / its standard deviation: a CUSUM needs
           residuals that are independent of each other (prewhitening, Box and Jenkins 1976)
level    = average of the samples, a sample's weight halving each half-life; where outliers are
           common, what is far from the level counts in part
up, down = sums of z beyond a drift (Page's CUSUM); when one passes the bound, the bundle's level
           has shifted: it restarts with the samples since the sum was last zero; where several
           bundles have just shifted, a lower bound is enough
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load_model.estimates import JOINED, Estimates, Samples
from trimtab.load_model.events import Leaps, draw_leaps
from trimtab.load_model.memory import STEADY
from trimtab.load_model.noise import count_outliers, learn_noise
from trimtab.load_model.odds import DRIFT, TOGETHER, bound_in_event, together

_RECENT_MS: Final = 60_000
"""A sample equal to the last one counts only after this time: brokers repeat a statistic until they
refresh it (Pulsar every 60 s)."""
_TINY: Final = 1e-3
"""A part of the average share, added to each share: changes of bundles below it hardly count."""
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
    common = float(np.median(residual[news])) if news.any() else 0.0
    residual -= common
    earlier = np.where(first, 0.0, np.log((old.last + tiny) / (before + tiny)))
    noise = learn_noise(old, residual, earlier, news)
    outlying = old.outlying
    z = np.where(news, (residual - noise.memory * earlier) / noise.deviation(old), 0.0)
    # What has hardly any noise has no outliers.
    quiet = (old.seen > 0) & (old.moved <= STEADY**2)
    limit = np.where(quiet, np.inf, outlying.limit(bound))
    excess = _excess(residual, limit * np.sqrt(noise.true))
    outlier = news & ((np.abs(z) > limit) | (excess != 0))
    believed = np.clip((shares + tiny) * np.exp(-excess) - tiny, 0.0, 1.0)
    believed = np.where(outlier, believed, shares)
    runs = _runs(old, np.clip(z, -limit, limit), believed, news)
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
        outliers=count_outliers(old, z, news),
    )


def _excess(residual: Floats, most: Floats) -> Floats:
    """(m,) how far residuals are beyond ``most``. What the noise remembers of an outlier counts
    here too, which is why this is not about the sample's own part of it."""
    excess: Floats = residual - np.clip(residual, -most, most)
    return excess


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
