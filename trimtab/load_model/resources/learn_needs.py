"""Learns what bundles take of each resource from a view's reports.

own     = what traffic does not tell. A broker's report is the sum over its bundles. How far it is
          off what was expected (`trimtab.load_model.resources.expect_reports`) is divided among
          the bundles and the broker by their variances (a Kalman filter with one row for each
          broker, Kalman 1960, that keeps no covariances). A bundle that arrives has a large
          variance, and those that were there have a small one: so a move tells what the moved
          bundle takes. Nothing is learned from a broker while one of its bundles bursts, or while
          the broker is busier than usual for a while (`trimtab.load_model.resources.excess`):
          its bundles would get that part for good.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load import COUNTED
from trimtab.load_model.resources.base_use import follow_noise
from trimtab.load_model.resources.excess import Excess, hash_brokers, note_spells
from trimtab.load_model.resources.expect_reports import ByKey, expect_reports, find_news
from trimtab.load_model.resources.known_bundles import find_changed, sum_by_broker
from trimtab.load_model.resources.needs import TINY, Needs
from trimtab.view import Brokers, View

_MOST_FOLLOWED: Final = 0.5
"""The largest part of a surprise that is taken for a change after a long silence."""
_LOOSE: Final = 0.01
"""The part of its variance that a bundle's broker never binds: needs change."""
_CALM_MS: Final = 300_000
"""Time after bundles came or went until which a surprise is theirs. Shorter: a report that is older
than a move seems to be a spell; longer: a spell is missed."""


class Terms(NamedTuple):
    """What is learned, and how fast."""

    bursting: Bools
    """(n,) whether a broker has a bundle that bursts, or may."""
    weight: Floats
    """(4,) how much each resource counts."""
    near_overload: float
    """Usage that is near overload."""
    half_life: float
    """Seconds; of what traffic takes."""
    own_half_life: float
    """Of what it does not tell."""


def learn_needs(past: Needs, view: View, by_key: ByKey, terms: Terms) -> Needs:
    """The needs after a view's reports."""
    keys, order = by_key
    brokers, n = view.brokers, len(view.brokers.names)
    news = find_news(past, brokers)
    if not news.new.any() and np.array_equal(keys, past.keys) and past.brokers == brokers.names:
        return past
    known, hosts = news.known, view.bundles.owner[order]
    it = expect_reports(past, view, by_key, news, terms.half_life)
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


def _find_excess(brokers: Brokers, off: Floats, noise: Floats, calm: Bools, terms: Terms) -> Excess:
    """How far brokers' (4, n) reports are off, by the resource where that is most."""
    limits = brokers.limits[COUNTED]
    scale = np.where(limits > 0, terms.weight[:, None] / np.maximum(limits, TINY), 0.0)
    used = brokers.resources[COUNTED] / 100 * terms.weight[:, None]
    rows, each = np.argmax(np.abs(off * scale), axis=0), np.arange(len(calm))
    return Excess(
        keys=hash_brokers(brokers.names),
        off=(off * scale)[rows, each],
        deviation=(np.sqrt(noise)[:, None] * scale)[rows, each],
        calm=calm,
        near_overload=used.max(axis=0) > terms.near_overload,
    )
