"""Classify each bundle's new sample: chance, or a level shift.

residual = log(sample / level), less the median residual of all bundles that carried and carry load
z        = (residual - memory * residual of the last sample) / its standard deviation: a CUSUM needs
           residuals that are independent of each other (prewhitening, Box and Jenkins 1976)
level    = average of the samples, a sample's weight halving each half-life; where outliers are
           common, what is far from the level counts in part
shift    = when a sum of z passes the bound (`trimtab.load_model.estimating.runs`), the level of the
           bundle has shifted: it restarts with the samples since the sum was last zero; where
           several bundles have just shifted, a lower bound is enough
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, find_median
from trimtab.load_model.estimating.drifts import find_drifts
from trimtab.load_model.estimating.early_leaps import find_early_leaps, keep_first
from trimtab.load_model.estimating.estimates import JOINED, Estimates, Samples
from trimtab.load_model.estimating.events import LEAP, Leaps, draw_leaps
from trimtab.load_model.estimating.noise import Noise, count_outliers, learn_noise
from trimtab.load_model.estimating.noise_memory import STEADY
from trimtab.load_model.estimating.outlying import FAR, Outlying, counted_samples
from trimtab.load_model.estimating.rows import replace_rows, rescale
from trimtab.load_model.estimating.runs import Runs, find_level_before_run, follow_runs
from trimtab.load_model.odds import TOGETHER, bound_in_event, together

_RECENT_MS: Final = 60_000
"""A sample equal to the last one counts only after this time: brokers repeat a statistic until they
refresh it (Pulsar every 60 s)."""
_COUNTING_MS: Final = 180_000
"""For how long counters of a new bundle, or of one that has just come to its broker, may read 0
before that is believed: they are refreshed every 60 s. Shorter: brokers that have just started seem
to be idle; longer: a bundle that is idle seems to be new."""
_TINY: Final = 1e-3
"""A part of the average share, added to each share: changes of bundles below it hardly count."""
_NOTHING: Final = 1e-9
"""A share of all traffic too small to divide by."""


def add_sample(
    old: Estimates, samples: Samples, shares: Floats, half_life: float, bound: float
) -> Estimates:
    """Add a sample of each bundle; (m,) ``shares`` are the samples' parts of the fleet's traffic,
    ``half_life`` is in seconds."""
    fresh, elapsed_ms = old.unsampled, samples.at_ms - old.at_ms
    silent = find_silent(old, samples)
    begins = fresh & ~silent
    repeated = (samples.traffic == old.sample) & (elapsed_ms < _RECENT_MS)
    news = (elapsed_ms > 0) & ~repeated & ~fresh & ~silent
    counted = news | begins
    if not counted.any():
        return old
    found = _compare(old, samples, shares, fresh, news)
    old = found.old
    believed = _believe(old, found, bound)
    shift = _find_shifts(old, found, believed, bound)
    shifted, noise, rows = shift.shifted, found.noise, np.flatnonzero(shift.shifted)
    fading = 0.5 ** (np.maximum(elapsed_ms, 0) / (1000.0 * half_life))
    weight = np.where(counted, old.weight * fading + 1, old.weight)
    squares = np.where(counted, old.squares * fading**2 + 1, old.squares)
    scale = _scale(old.level, shares, news & ~shifted) if shifted.any() else 1.0
    level = old.level * scale
    beyond = (believed.shares + found.tiny) / (level + found.tiny) - 1.0
    # A sample is no more than so many times the average that it is part of: what began with nothing
    # lags behind by no more.
    beyond = np.minimum(beyond, weight - 1.0)
    # A young average has not had the time to lag: behind begins at 0, and takes a half-life.
    behind = old.behind + np.where(news, (1.0 - fading) * (beyond - old.behind), 0.0)
    level = np.where(counted, level + (believed.shares - level) / np.maximum(weight, 1.0), level)
    last = np.where(counted, shares * np.exp(-found.common), old.last) * scale
    known = Estimates(
        keys=old.keys,
        at_ms=np.where(counted, samples.at_ms, old.at_ms),
        sample=np.where(counted, samples.traffic, old.sample),
        level=replace_rows(level, rows, shift.level),
        weight=replace_rows(weight, rows, shift.worth),
        squares=replace_rows(squares, rows, shift.worth),
        variance=replace_rows(noise.variance, rows, old.variance),
        seen=replace_rows(noise.seen, rows, old.seen),
        **{name: replace_rows(each, rows) for name, each in shift.runs._asdict().items()},
        age=np.where(shift.leapt, shift.length, old.age + counted),
        last=replace_rows(last, rows, shares),
        moved=replace_rows(noise.moved, rows, old.moved),
        memory=noise.memory,
        outliers=count_outliers(old, found.z, news),
        behind=replace_rows(behind, rows),
        growing=old.growing,
        first=replace_rows(keep_first(old, shares) * scale, rows),
        host=old.host,
    )
    return find_early_leaps(known).follow_growth()


def find_silent(old: Estimates, samples: Samples) -> Bools:
    """(m,) whether counters read 0 as they do not count yet: those of a new bundle, or young ones
    of one that carried something before."""
    young = old.unsampled
    if samples.young is not None:
        young = young | (samples.young & (old.sample > 0))
    early = samples.at_ms - old.at_ms < _COUNTING_MS
    silent: Bools = young & early & (samples.traffic == 0)
    return silent


def _scale(level: Floats, shares: Floats, others: Bools) -> float:
    """How a level shift changed the total share of all ``others``."""
    known, now = float(level[others].sum()), float(shares[others].sum())
    return now / known if known > _NOTHING else 1.0


class _Compared(NamedTuple):
    """(m,) samples beside the levels before them; ``news``: whose sample counts, not its first."""

    old: Estimates
    """The estimates before, with what namespaces have drifted since."""
    shares: Floats
    news: Bools
    tiny: float
    before: Floats
    residual: Floats
    common: float
    """What was taken off all residuals: their median, where there was and is load."""
    noise: Noise
    z: Floats
    outlying: Outlying


def _compare(
    old: Estimates, samples: Samples, shares: Floats, fresh: Bools, news: Bools
) -> _Compared:
    tiny = _TINY * float(shares.mean())
    before = find_level_before_run(old) * old.growth
    before = np.where(fresh, shares, before)
    residual = np.log((shares + tiny) / (before + tiny))
    # What carried nothing, or carries nothing now, tells of no change that all have in common.
    told = news & (before > tiny) & (shares > tiny)
    common = find_median(residual[told]) if told.any() else 0.0
    residual -= common
    noisy = news
    if samples.namespace is not None and news.any():
        drifts = find_drifts(residual, news, samples.namespace)
        if drifts is not None:
            residual -= drifts.by
            factor = np.exp(drifts.by)
            before *= factor
            old = rescale(old, factor)
            noisy = news & ~drifts.leaping
    earlier = np.where(fresh, 0.0, np.log((old.last + tiny) / (before + tiny)))
    noise = learn_noise(old, residual, earlier, noisy)
    z = np.where(news, (residual - noise.memory * earlier) / noise.deviation(old), 0.0)
    return _Compared(old, shares, news, tiny, before, residual, common, noise, z, old.outlying)


class _Believed(NamedTuple):
    """(m,) what of each sample is believed; ``limit`` is that of z."""

    shares: Floats
    outlier: Bools
    limit: Floats


def _believe(old: Estimates, found: _Compared, bound: float) -> _Believed:
    # What has hardly any noise has no outliers.
    quiet = (old.seen > 0) & (old.moved <= STEADY**2)
    limit = np.where(quiet, np.inf, found.outlying.limit(bound))
    excess = _excess(found.residual, limit * np.sqrt(found.noise.true))
    outlier = found.news & ((np.abs(found.z) > limit) | (excess != 0))
    believed = np.clip((found.shares + found.tiny) * np.exp(-excess) - found.tiny, 0.0, 1.0)
    return _Believed(np.where(outlier, believed, found.shares), outlier, limit)


def _excess(residual: Floats, most: Floats) -> Floats:
    """(m,) how far residuals are beyond ``most``. What the noise remembers of an outlier counts
    here too, which is why this is not about the sample's own part of it."""
    excess: Floats = residual - np.clip(residual, -most, most)
    return excess


class _Shifts(NamedTuple):
    """(m,) which levels shifted, and where they start again: on how many samples (``length``), and
    as how many those count (``worth``)."""

    runs: Runs
    shifted: Bools
    leapt: Bools
    level: Floats
    length: Floats
    worth: Floats


def _find_shifts(old: Estimates, found: _Compared, believed: _Believed, bound: float) -> _Shifts:
    limited = np.clip(found.z, -believed.limit, believed.limit)
    runs = follow_runs(old, limited, believed.shares, found.news)
    leap = found.news & (np.abs(found.residual) > LEAP)
    struck, at_once = _count_struck(old, found, believed, leap, runs.beyond(bound))
    if at_once or struck >= together(found.outlying.expected(JOINED)):
        bound = bound_in_event(len(found.shares), max(struck, at_once))
    shifted = found.news & runs.beyond(bound)
    leapt = shifted & leap
    level, length = runs.mean(bound)
    level = np.where(believed.outlier, found.shares, level)
    length = np.where(believed.outlier, 1.0, length)
    worth, rows = length.copy(), np.flatnonzero(leapt)
    if len(rows) >= TOGETHER:
        columns = (found.before + found.tiny, level + found.tiny, length, found.noise.variance)
        drawn, worth[rows] = draw_leaps(Leaps(*(each[rows] for each in columns)))
        level[rows] = np.clip(drawn - found.tiny, 0.0, 1.0)
    return _Shifts(runs, shifted, leapt, level, length, worth)


def _count_struck(
    old: Estimates, found: _Compared, believed: _Believed, leap: Bools, beyond: Bools
) -> tuple[int, int]:
    """How many bundles have leapt within a few samples, and how many seem to now, if that is an
    event: where one sample is no level shift, the same one of many is."""
    struck = old.leaping + int(np.count_nonzero(leap & beyond))
    far = leap & (np.abs(found.z) > FAR) & (counted_samples(old.seen) > 0)
    at_once = int(np.count_nonzero(far & np.isfinite(believed.limit)))
    return struck, at_once if at_once >= together(found.outlying.expected(1.0)) else 0
