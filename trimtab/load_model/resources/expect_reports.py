"""Finds what is expected of a view's reports: the state before them, on the rows of the view.

Each report is the sum of what its broker takes by itself, what traffic takes, and what else its
bundles take. `trimtab.load_model.resources.learn_needs` learns from how far that is off.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load import COUNTED
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.resources.base_use import find_idle, find_usual, free_base
from trimtab.load_model.resources.known_bundles import KnownBundles, loosened, recall_bundles
from trimtab.load_model.resources.needs import TINY, Needs, weights_of
from trimtab.load_model.resources.slopes import PRIOR, Fit, count_reports, fit_slopes
from trimtab.view import Brokers, View

_BASE: Final = 0.03
"""Standard deviation of what a broker takes by itself, in parts of its limit. Lower: memory that is
always in use counts as the bundles'; higher: bundles with little traffic seem to take nothing."""
_LEAST_NOISE: Final = 0.003
"""Floor of a report's noise, in the same parts."""


class ByKey(NamedTuple):
    """The m bundles of a view by ascending key."""

    keys: Keys
    order: Ints
    """(m,) the view's row of each key."""


class News(NamedTuple):
    """The n brokers of a view, and which of them have a new report."""

    at: Ints
    """Row in what was known; -1 for a new broker."""
    known: Bools
    before_ms: Ints
    """The last report counted; 0 if there is none."""
    new: Bools
    elapsed_ms: Ints
    """From the last report counted to the newest."""


class Expected(NamedTuple):
    """What is expected of the reports."""

    moments: Floats
    fit: Fit
    idle: Floats
    base_variance: Floats
    noise: Floats
    spread: Floats
    bundles: KnownBundles
    weights: Floats
    come: Bools
    """(m,) bundles that their broker reports for the first time."""
    loose: Floats
    base: Floats
    own: Floats


def find_news(past: Needs, brokers: Brokers) -> News:
    """Which brokers of the view have a new report, and how old the one before is."""
    row_of = {name: row for row, name in enumerate(past.brokers)}
    at = np.array([row_of.get(name, -1) for name in brokers.names], np.int64)
    known = at >= 0
    before_ms = np.where(known, np.append(past.reported_ms, 0)[at], 0)
    elapsed_ms = brokers.reported_ms - before_ms
    return News(at, known, before_ms, elapsed_ms > 0, elapsed_ms)


def expect_reports(
    past: Needs, view: View, by_key: ByKey, news: News, half_life: float
) -> Expected:
    """What the brokers' newest reports should say, by all that was known before them."""
    keys, order = by_key
    brokers, n = view.brokers, len(view.brokers.names)
    at, known, before_ms, new, elapsed_ms = news
    moments = count_reports(past.moments, brokers, new, elapsed_ms, half_life)
    hosts, limits = view.bundles.owner[order], brokers.limits[COUNTED]
    held, usual_limits = np.bincount(hosts, minlength=n), np.median(limits, axis=1)
    base_variance = (_BASE * usual_limits) ** 2
    idle = find_idle(past.idle, brokers, elapsed_ms[new & (before_ms > 0)])
    idle_use = idle * usual_limits
    busiest = int(np.argmax(brokers.smoothed_resources[COUNTED].mean(axis=1)))
    fit = fit_slopes(moments, busiest, float(idle_use[busiest]))
    held_by_one = max(float(held.mean()), 1.0)
    usual, spread = find_usual(fit, base_variance, idle_use, held_by_one)
    weights = weights_of(view.bundles)[order]
    bundles = recall_bundles(past, keys, usual[:, None] * weights, np.where(known, at, -1))
    come = (bundles.was != hosts) & new[hosts]
    loose = np.where(come, bundles.unsure, bundles.loose + loosened(bundles, hosts, held))
    past_base = np.hstack((past.base, np.zeros((4, 1))))
    # One that teaches nothing yet is no emptier than others are without their traffic.
    base = np.where(known, past_base[:, at], (fit.rest - usual * held_by_one)[:, None])
    freed = free_base(base, idle[:, None] * limits, known)
    traffic = PRIOR @ view.bundles.long[:, order]
    share = traffic / np.maximum(np.bincount(hosts, traffic, n), TINY)[hosts]
    return Expected(
        moments=moments,
        fit=fit,
        idle=idle,
        base_variance=base_variance,
        noise=np.maximum(past.noise, (_LEAST_NOISE * usual_limits) ** 2),
        spread=spread,
        bundles=bundles,
        weights=weights,
        come=come,
        loose=np.minimum(loose, bundles.unsure),
        base=base - freed,
        own=bundles.own + freed[:, hosts] * share,
    )
