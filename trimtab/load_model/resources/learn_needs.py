"""Learns what bundles take of each resource from a view's reports.

own     = what traffic does not tell. A broker's report says the sum over its bundles, and what the
          sum is off is dealt out to them and to the broker by their variances (a Kalman filter
          with one row a broker, Kalman 1960, that keeps no covariances). A bundle that arrives is
          unsure and those that were there are not: so a move tells what the moved bundle takes.
          Nothing is learned from a broker while a bundle of it bursts, or while it is busier than
          usual for a while (`trimtab.load_model.resources.excess`): what that takes would be dealt
          out to its bundles, and stay theirs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load import COUNTED
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.resources.base_use import find_idle, find_usual, follow_noise, free_base
from trimtab.load_model.resources.excess import Excess, hash_brokers, note_spells
from trimtab.load_model.resources.known_bundles import (
    KnownBundles,
    find_changed,
    loosened,
    recall_bundles,
    sum_by_broker,
)
from trimtab.load_model.resources.needs import TINY, Needs, weights_of
from trimtab.load_model.resources.slopes import PRIOR, Fit, count_reports, fit_slopes
from trimtab.view import Brokers, View

_BASE: Final = 0.03
"""Standard deviation of what a broker takes by itself, in parts of its limit. Lower: a memory that
is always in use counts as the bundles'; higher: bundles that nothing tells of take nothing."""
_LEAST_NOISE: Final = 0.003
"""Floor of a report's noise, the same way."""
_MOST_FOLLOWED: Final = 0.5
"""The largest part of a surprise that is taken for a change after a long silence."""
_LOOSE: Final = 0.01
"""The part of its variance that a bundle's broker never binds: needs change."""
_CALM_MS: Final = 300_000
"""Time after bundles came or went until which a surprise is theirs. Shorter: a report that is older
than a move seems to be a spell; longer: a spell is missed."""


class ByKey(NamedTuple):
    """The m bundles of a view by ascending key."""

    keys: Keys
    order: Ints
    """(m,) the view's row of each key."""


class Terms(NamedTuple):
    """What is learned, and how fast."""

    bursting: Bools
    """(n,) whether a broker has a bundle that bursts, or may."""
    weight: Floats
    """(4,) how much each resource counts."""
    full: float
    """Usage that is near overload."""
    half_life: float
    """Seconds; of what traffic takes."""
    own_half_life: float
    """Of what it does not tell."""


class _News(NamedTuple):
    """The n brokers of a view, and which of them have a new report."""

    at: Ints
    """Row in what was known; -1 for a new broker."""
    known: Bools
    before_ms: Ints
    """The last report counted; 0 if there is none."""
    new: Bools
    elapsed_ms: Ints
    """From the last report counted to the newest."""


class _Expected(NamedTuple):
    """What is expected of the reports: the state before them, on the rows of the view."""

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


def learn_needs(past: Needs, view: View, by_key: ByKey, terms: Terms) -> Needs:
    """The needs after a view's reports."""
    keys, order = by_key
    brokers, n = view.brokers, len(view.brokers.names)
    news = _find_news(past, brokers)
    if not news.new.any() and np.array_equal(keys, past.keys) and past.brokers == brokers.names:
        return past
    known, hosts = news.known, view.bundles.owner[order]
    it = _expect(past, view, by_key, news, terms.half_life)
    used = brokers.resources[COUNTED] / 100 * brokers.limits[COUNTED]
    off = used - it.fit.slopes @ brokers.traffic - it.base - sum_by_broker(it.own, hosts, n)
    changed_ms = np.where(known, np.append(past.changed_ms, view.now_ms)[news.at], view.now_ms)
    changed_ms[find_changed(it.bundles.was, hosts, n)] = view.now_ms
    believable = news.new & ~terms.bursting
    calm = believable & (view.now_ms - changed_ms >= _CALM_MS)
    found = _find_excess(brokers, off, it.noise, calm, terms)
    spells, passing = note_spells(past.spells, found, view.now_ms)
    believable &= ~passing
    # The filter: each broker's sum is off by this much, and so is each part, by its variance.
    variance = it.loose * it.spread[:, None] * it.weights**2
    # Needs change: as an average does, they follow by this part from a report to the next.
    part = 1 - 0.5 ** (np.where(known, news.elapsed_ms, 0) / (1000 * terms.own_half_life))
    part = np.minimum(part, _MOST_FOLLOWED)
    of_base = np.where(known, it.noise[:, None] * part / (1 - part), it.base_variance[:, None])
    whole = np.maximum(sum_by_broker(variance, hosts, n) + of_base, TINY)
    believed = np.maximum(whole / (whole + it.noise[:, None]), part) * believable
    gain = variance * (believed / whole)[:, hosts]
    least = -it.fit.slopes @ view.bundles.stats[:, order]
    settled = believable & known & (np.bincount(hosts, it.come, n) == 0)
    unsure = it.bundles.unsure
    bound = np.maximum(it.loose * (1 - believed[:, hosts]), _LOOSE * unsure)
    return Needs(
        keys=keys,
        brokers=brokers.names,
        host=np.where(believable[hosts], hosts, it.bundles.was),
        own=np.maximum(it.own + gain * off[:, hosts], least),
        unsure=np.where(it.come, unsure * (1 - gain), unsure),
        loose=np.where(believable[hosts], bound, it.loose),
        base=it.base + of_base / whole * believed * off,
        moments=it.moments,
        slopes=it.fit.slopes,
        spread=it.spread,
        noise=follow_noise(it.noise, off[:, settled]),
        idle=it.idle,
        untold=it.fit.untold,
        reported_ms=np.maximum(brokers.reported_ms, news.before_ms),
        changed_ms=changed_ms,
        spells=spells,
    )


def _find_news(past: Needs, brokers: Brokers) -> _News:
    row_of = {name: row for row, name in enumerate(past.brokers)}
    at = np.array([row_of.get(name, -1) for name in brokers.names], np.int64)
    known = at >= 0
    before_ms = np.where(known, np.append(past.reported_ms, 0)[at], 0)
    elapsed_ms = brokers.reported_ms - before_ms
    return _News(at, known, before_ms, elapsed_ms > 0, elapsed_ms)


def _expect(past: Needs, view: View, by_key: ByKey, news: _News, half_life: float) -> _Expected:
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
    return _Expected(
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


def _find_excess(brokers: Brokers, off: Floats, noise: Floats, calm: Bools, terms: Terms) -> Excess:
    """How far brokers' (4, n) reports are off, by the resource where that is most."""
    limits = brokers.limits[COUNTED]
    scale = np.where(limits > 0, terms.weight[:, None] / np.maximum(limits, TINY), 0.0)
    rows, each = np.argmax(np.abs(off * scale), axis=0), np.arange(len(calm))
    return Excess(
        keys=hash_brokers(brokers.names),
        off=(off * scale)[rows, each],
        deviation=(np.sqrt(noise)[:, None] * scale)[rows, each],
        calm=calm,
        full=(brokers.resources[COUNTED] / 100 * terms.weight[:, None]).max(axis=0) > terms.full,
    )
