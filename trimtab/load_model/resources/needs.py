"""What each bundle takes of each resource, learned from reports where several resources compete.

need of a bundle = slopes * its traffic + own
slopes  = what traffic takes (`trimtab.load_model.resources.slopes`)
idle    = the least use of an idle broker of late: no broker takes more than that by itself, so the
          rest of what all take without traffic is their bundles'
own     = what traffic does not tell. A broker's report says the sum over its bundles, and what the
          sum is off is dealt out to them and to the broker by their variances (a Kalman filter
          with one row a broker, Kalman 1960, that keeps no covariances). A bundle that arrives is
          unsure and those that were there are not: so a move tells what the moved bundle takes.
          Nothing is learned from a broker while a bundle of it bursts, or while it is busier than
          usual for a while (`trimtab.load_model.resources.excess`): what that takes would be dealt
          out to its bundles, and stay theirs.
doubt   = the standard deviation of own: at first what the brokers' residuals differ by, divided
          over their bundles; a move makes it smaller
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load import COUNTED
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.leap_record import LeapRecord
from trimtab.load_model.resources.costs import is_idle, rise
from trimtab.load_model.resources.excess import Excess, hash_brokers, note_spells
from trimtab.load_model.resources.slopes import PRIOR, Fit, count_reports, fit_slopes
from trimtab.view import Brokers, Bundles, View

_LEAST_IDLE: Final = 0.001
"""Part of its limit that any broker uses by itself: `idle` must be able to rise from none."""
_BASE: Final = 0.03
"""Standard deviation of what a broker takes by itself, in parts of its limit. Lower: a memory that
is always in use counts as the bundles'; higher: bundles that nothing tells of take nothing."""
_LEAST_NOISE: Final = 0.003
"""Floor of a report's noise, the same way."""
_FOLLOWED: Final = 0.05
"""The least part of a surprise that is believed at once: needs change."""
_NOISE_KEPT: Final = 0.9
"""The part of the known noise that a round keeps."""
_NORMAL: Final = 2.198
"""Variance over the median square, of a normal distribution."""
_LOOSE: Final = 0.01
"""The part of its variance that a bundle's broker never binds: needs change."""
_CALM_MS: Final = 300_000
"""Time after bundles came or went until which a surprise is theirs. Shorter: a report that is older
than a move seems to be a spell; longer: a spell is missed."""
_TINY: Final = 1e-30
"""Floor of variances and means that are divided by."""


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """What is known; columns are ascending by ``keys``, resources are `trimtab.load.COUNTED` in the
    units of their limits."""

    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    brokers: tuple[str, ...] = ()
    host: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """(m,) row in ``brokers``."""
    own: Floats = field(default_factory=lambda: np.zeros((4, 0)))
    """(4, m) need that traffic does not tell."""
    unsure: Floats = field(default_factory=lambda: np.zeros((4, 0)))
    """(4, m) variance of ``own``, in parts of ``spread``."""
    loose: Floats = field(default_factory=lambda: np.zeros((4, 0)))
    """(4, m) the part of it that the bundles on its broker do not bind by their sum."""
    base: Floats = field(default_factory=lambda: np.zeros((4, 0)))
    """(4, n) what each broker takes by itself; it too is learned from what sums are off."""
    moments: Floats = field(default_factory=lambda: np.zeros((9, 9)))
    """Fading sums of the products of 1, traffic and resources of brokers."""
    slopes: Floats = field(default_factory=lambda: np.zeros((4, 4)))
    """By resource and row of traffic."""
    spread: Floats = field(default_factory=lambda: np.zeros(4))
    """(4,) variance of ``own`` between bundles."""
    noise: Floats = field(default_factory=lambda: np.zeros(4))
    """(4,) variance of a report around what is expected of it."""
    idle: Floats = field(default_factory=lambda: np.ones(4))
    """(4,) the least average use of an idle broker of late, in parts of its limit."""
    untold: float = 1.0
    """The part of the prior's standard deviation that is left on whether messages or bytes cost: 1
    where brokers carry the same mixture."""
    reported_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """(n,) the last report counted."""
    changed_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """(n,) the last time at which bundles came or went."""
    spells: LeapRecord = field(default_factory=LeapRecord)
    """Brokers that are busier than expected, or less busy."""

    def __post_init__(self) -> None:
        # State from before changes were kept has none.
        if len(self.changed_ms) != len(self.brokers):
            object.__setattr__(self, "changed_ms", np.zeros(len(self.brokers), np.int64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Needs) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("keys", "brokers", "host", "own", "unsure", "loose", "moments", "noise")
        )


class _Bundles(NamedTuple):
    """What was known of the bundles of the view, by row of ``keys``."""

    own: Floats
    unsure: Floats
    loose: Floats
    was: Ints
    """(m,) row of the broker that it was on, in this view; -1 if there was none."""


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


def learn_needs(past: Needs, view: View, by_key: ByKey, terms: Terms) -> Needs:
    """The needs after a view's reports."""
    keys, order = by_key
    brokers, n = view.brokers, len(view.brokers.names)
    row_of = {name: row for row, name in enumerate(past.brokers)}
    at = np.array([row_of.get(name, -1) for name in brokers.names], np.int64)
    known = at >= 0
    before = np.where(known, np.append(past.reported_ms, 0)[at], 0)
    news = brokers.reported_ms > before
    if not news.any() and np.array_equal(keys, past.keys) and past.brokers == brokers.names:
        return past
    elapsed_ms = brokers.reported_ms - before
    moments = count_reports(past.moments, brokers, news, elapsed_ms, terms.half_life)
    hosts, limits = view.bundles.owner[order], brokers.limits[COUNTED]
    held, usual_limits = np.bincount(hosts, minlength=n), np.median(limits, axis=1)
    base_variance = (_BASE * usual_limits) ** 2
    noise = np.maximum(past.noise, (_LEAST_NOISE * usual_limits) ** 2)
    idle = _idle(past.idle, brokers, elapsed_ms[news & (before > 0)])
    idle_use = idle * usual_limits
    busiest = int(np.argmax(brokers.smoothed_resources[COUNTED].mean(axis=1)))
    fit = fit_slopes(moments, busiest, float(idle_use[busiest]))
    usual, spread = _usual(fit, base_variance, idle_use, max(float(held.mean()), 1.0))
    weights = weights_of(view.bundles)[order]
    bundles = _carried(past, keys, usual[:, None] * weights, np.where(known, at, -1))
    come = (bundles.was != hosts) & news[hosts]
    loose = np.where(come, bundles.unsure, bundles.loose + _loosened(bundles, hosts, held))
    loose = np.minimum(loose, bundles.unsure)
    base = np.where(known, np.hstack((past.base, np.zeros((4, 1))))[:, at], 0.0)
    freed = _free(base, idle[:, None] * limits, known)
    base = base - freed
    traffic = PRIOR @ view.bundles.long[:, order]
    share = traffic / np.maximum(np.bincount(hosts, traffic, n), _TINY)[hosts]
    own = bundles.own + freed[:, hosts] * share
    news &= ~terms.bursting
    used = brokers.resources[COUNTED] / 100 * limits
    off = used - fit.slopes @ brokers.traffic - base - _sums(own, hosts, n)
    changed_ms = np.where(known, np.append(past.changed_ms, view.now_ms)[at], view.now_ms)
    changed_ms[_find_changed(bundles.was, hosts, n)] = view.now_ms
    calm = news & (view.now_ms - changed_ms >= _CALM_MS)
    found = _find_excess(brokers, off, noise, calm, terms)
    spells, passing = note_spells(past.spells, found, view.now_ms)
    news &= ~passing
    # The filter: each broker's sum is off by this much, and so is each part, by its variance.
    variance = loose * spread[:, None] * weights**2
    of_base = np.where(known, noise[:, None], base_variance[:, None])
    whole = np.maximum(_sums(variance, hosts, n) + of_base, _TINY)
    believed = np.maximum(whole / (whole + noise[:, None]), _FOLLOWED) * news
    gain = variance * (believed / whole)[:, hosts]
    least = -fit.slopes @ view.bundles.stats[:, order]
    settled = news & known & (np.bincount(hosts, come, n) == 0)
    bound = np.maximum(loose * (1 - believed[:, hosts]), _LOOSE * bundles.unsure)
    return Needs(
        keys=keys,
        brokers=brokers.names,
        host=np.where(news[hosts], hosts, bundles.was),
        own=np.maximum(own + gain * off[:, hosts], least),
        unsure=np.where(come, bundles.unsure * (1 - gain), bundles.unsure),
        loose=np.where(news[hosts], bound, loose),
        base=base + of_base / whole * believed * off,
        moments=moments,
        slopes=fit.slopes,
        spread=spread,
        noise=_noise(noise, off[:, settled]),
        idle=idle,
        untold=fit.untold,
        reported_ms=np.maximum(brokers.reported_ms, before),
        changed_ms=changed_ms,
        spells=spells,
    )


def _find_changed(was: Ints, hosts: Ints, n: int) -> Bools:
    """(n,) whether bundles came to a broker since its last report, or went."""
    moved = was != hosts
    changed = np.bincount(hosts[moved], minlength=n) > 0
    changed[was[moved & (was >= 0)]] = True
    return changed


def _find_excess(brokers: Brokers, off: Floats, noise: Floats, calm: Bools, terms: Terms) -> Excess:
    """How far brokers' (4, n) reports are off, by the resource where that is most."""
    limits = brokers.limits[COUNTED]
    scale = np.where(limits > 0, terms.weight[:, None] / np.maximum(limits, _TINY), 0.0)
    rows, each = np.argmax(np.abs(off * scale), axis=0), np.arange(len(calm))
    return Excess(
        keys=hash_brokers(brokers.names),
        off=(off * scale)[rows, each],
        deviation=(np.sqrt(noise)[:, None] * scale)[rows, each],
        calm=calm,
        full=(brokers.resources[COUNTED] / 100 * terms.weight[:, None]).max(axis=0) > terms.full,
    )


def _usual(fit: Fit, base_variance: Floats, idle: Floats, held: float) -> tuple[Floats, Floats]:
    """(4,) what a usual bundle takes without traffic, and its variance between bundles.

    ``idle``: (4,) use of an idle broker; ``held``: bundles of a broker on average.
    """
    # What all brokers have without traffic is their bundles' if what differs between them is.
    differing = fit.variance / np.maximum(fit.variance + base_variance, _TINY)
    usual: Floats = np.maximum(fit.rest * differing, fit.rest - idle) / held
    # In a balanced fleet sums differ by less than what they are the sums of.
    return usual, np.maximum(fit.variance / held, usual**2)


def _idle(past: Floats, brokers: Brokers, elapsed_ms: Ints) -> Floats:
    """(4,) the least average use of an idle broker, in parts of its limit; fades by rising."""
    risen = past * rise(float(elapsed_ms.max(initial=0)) / 1000)
    idle_now = is_idle(PRIOR @ brokers.smoothed_traffic)
    shares = brokers.smoothed_resources[COUNTED][:, idle_now].min(axis=1, initial=100.0) / 100
    idle: Floats = np.minimum(risen, np.maximum(shares, _LEAST_IDLE))
    return idle


def _free(base: Floats, idle: Floats, known: Bools) -> Floats:
    """(4, n) what the brokers' bundles take of (4, n) ``base``: an even fleet seems to take by
    itself what an idle broker shows that it does not, (4, n) ``idle``."""
    if not known.any():
        return np.zeros_like(base)
    more = np.maximum(np.median((base - idle)[:, known], axis=1), 0.0)
    freed: Floats = np.clip(base, 0.0, more[:, None])
    return freed


def _noise(past: Floats, off: Floats) -> Floats:
    """(4,) the noise after the (4, k) surprises of brokers to which nothing came."""
    if not off.size:
        return past
    seen: Floats = _NORMAL * np.median(off**2, axis=1)
    return _NOISE_KEPT * past + (1 - _NOISE_KEPT) * seen


def weights_of(bundles: Bundles) -> Floats:
    """(m,) how large each bundle's own need may be, relative to the mean.

    It grows with the square root of the traffic: a bundle with little traffic may still need much.
    """
    root = np.sqrt(PRIOR @ bundles.long)
    weights: Floats = root / max(float(root.mean()) if root.size else 0.0, _TINY)
    return weights


def _sums(columns: Floats, hosts: Ints, n: int) -> Floats:
    """(r, n) sums of (r, m) columns by broker."""
    return np.array([np.bincount(hosts, column, n) for column in columns], np.float64)


def _loosened(bundles: _Bundles, hosts: Ints, held: Ints) -> Floats:
    """(4, m) how much less the sum binds each bundle since others have left its broker."""
    gone = (bundles.was >= 0) & (bundles.was != hosts)
    if not gone.any():
        return np.zeros((4, 1))
    lost = _sums(bundles.unsure[:, gone], bundles.was[gone], len(held))
    loosened: Floats = (lost / np.maximum(held, 1))[:, hosts]
    return loosened


def _carried(past: Needs, keys: Keys, usual: Floats, rows: Ints) -> _Bundles:
    """The bundles of ``keys``, new ones as usual; (n,) ``rows`` are brokers' rows in the past."""
    now_at = np.full(len(past.brokers) + 1, -1)
    now_at[rows] = np.arange(len(rows))
    # The last place is that of no broker.
    now_at[-1] = -1
    if np.array_equal(past.keys, keys):
        return _Bundles(past.own, past.unsure, past.loose, now_at[past.host])
    m = len(keys)
    own, was = usual.copy(), np.full(m, -1)
    unsure, loose = np.ones((4, m)), np.ones((4, m))
    if len(past.keys):
        at = np.minimum(np.searchsorted(past.keys, keys), len(past.keys) - 1)
        here = past.keys[at] == keys
        at = at[here]
        own[:, here], unsure[:, here] = past.own[:, at], past.unsure[:, at]
        loose[:, here], was[here] = past.loose[:, at], now_at[past.host[at]]
    return _Bundles(own, unsure, loose, was)
