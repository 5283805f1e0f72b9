"""What each bundle takes of each resource, learned from reports where several resources compete.

need of a bundle = slopes * its traffic + own
slopes  = from all brokers' average reports, each resource by bytes and messages, in and out: least
          squares with no slope below 0, drawn towards today's one cost of traffic where brokers
          are alike
own     = what traffic does not tell. A broker's report says the sum over its bundles, and what the
          sum is off is dealt out to them and to the broker by their variances (a Kalman filter
          with one row a broker, Kalman 1960, that keeps no covariances). A bundle that arrives is
          unsure and those that were there are not: so a move tells what the moved bundle takes.
doubt   = the standard deviation of own: at first what the brokers' residuals differ by, divided
          over their bundles; a move makes it smaller
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load import COUNTED
from trimtab.load_model.estimates import Keys
from trimtab.view import View

MESSAGE_BYTES: Final = 1024.0
"""The cost of handling a message besides its bytes, in bytes. Lower: bundles of small messages look
too light; higher: those of large messages do."""
PRIOR: Final[NDArray[np.float64]] = np.array([MESSAGE_BYTES, MESSAGE_BYTES, 1.0, 1.0])
"""(4,) bytes that each row of traffic counts as while nothing better is known."""
_ALIKE: Final = 0.05
"""Relative deviation of traffic between brokers below which a fit says little about the slopes."""
_SWEEPS: Final = 60
"""Of coordinate descent: more only settle digits that noise makes worthless."""
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
_TRAFFIC, _USED = slice(1, 5), slice(5, 9)


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
    """(4, n) what each broker takes by itself."""
    moments: Floats = field(default_factory=lambda: np.zeros((9, 9)))
    """Fading sums of the products of 1, traffic and resources of brokers."""
    slopes: Floats = field(default_factory=lambda: np.zeros((4, 4)))
    """By resource and row of traffic."""
    spread: Floats = field(default_factory=lambda: np.zeros(4))
    """(4,) variance of ``own`` between bundles."""
    noise: Floats = field(default_factory=lambda: np.zeros(4))
    """(4,) variance of a report around what is expected of it."""
    reported_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """(n,) the last report counted."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Needs) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("keys", "brokers", "host", "own", "unsure", "loose", "moments", "noise")
        )


class _Fit(NamedTuple):
    slopes: Floats
    rest: Floats
    """(4,) use without traffic."""
    variance: Floats
    """(4,) of what is left."""


def learn_needs(past: Needs, view: View, keys: Keys, order: Ints, half_life: float) -> Needs:
    """The needs after a view's reports; ``keys`` ascend and are those of the bundles ``order``."""
    brokers = view.brokers
    names, n = brokers.names, len(brokers.names)
    limits = brokers.limits[COUNTED]
    used = brokers.resources[COUNTED] / 100 * limits
    row_of = {name: row for row, name in enumerate(past.brokers)}
    at = np.array([row_of.get(name, -1) for name in names])
    known = at >= 0
    before = np.where(known, past.reported_ms[at], 0) if past.brokers else np.zeros(n, np.int64)
    news = brokers.reported_ms > before
    if not news.any():
        return past
    moments = _count(past.moments, view, news, brokers.reported_ms - before, half_life)
    fit, typical = _fit(moments), np.median(limits, axis=1)
    hosts = view.bundles.owner[order]
    held = np.bincount(hosts, minlength=n)
    each = max(float(held.mean()), 1.0)
    tau = (_BASE * typical) ** 2
    spread = fit.variance / each
    usual = fit.rest * fit.variance / np.maximum(fit.variance + tau, 1e-30) / each
    own, unsure, loose, was = _carried(past, keys, usual)
    now_at = np.full(len(past.brokers) + 1, -1)
    now_at[at[known]] = np.flatnonzero(known)
    come = (now_at[was] != hosts) & news[hosts]
    loose = np.where(come, unsure, loose)
    loose = np.minimum(loose + _left(was, now_at, hosts, unsure, held), unsure)
    base = np.zeros((4, n))
    if past.brokers:
        base = np.where(known, past.base[:, at], 0.0)
    off = used - fit.slopes @ brokers.traffic - base - _sums(own, hosts, n)
    noise = np.maximum(past.noise, (_LEAST_NOISE * typical) ** 2)
    of_base = np.where(known, noise[:, None], tau[:, None])
    variance = loose * spread[:, None] * weights_of(view)[order]
    whole = _sums(variance, hosts, n) + of_base
    believed = np.maximum(whole / (whole + noise[:, None]), _FOLLOWED) * news
    share = variance / np.maximum(whole, 1e-30)[:, hosts]
    gain = share * believed[:, hosts]
    own = np.maximum(own + gain * off[:, hosts], -_told(fit.slopes, view, order))
    base = base + of_base / np.maximum(whole, 1e-30) * believed * off
    settled = news & known & (np.bincount(hosts, come, n) == 0)
    if settled.any():
        seen = _NORMAL * np.median(off[:, settled] ** 2, axis=1)
        noise = _NOISE_KEPT * noise + (1 - _NOISE_KEPT) * seen
    return Needs(
        keys=keys,
        brokers=names,
        host=np.where(news[hosts], hosts, _rows(was, now_at)),
        own=own,
        unsure=np.where(come, unsure * (1 - gain), unsure),
        loose=np.where(news[hosts], np.maximum(loose * (1 - believed[:, hosts]), 0.01 * unsure), loose),
        base=base,
        moments=moments,
        slopes=fit.slopes,
        spread=spread,
        noise=noise,
        reported_ms=np.maximum(brokers.reported_ms, before),
    )


def weights_of(view: View) -> Floats:
    """(m,) how much the variance of a bundle's own need is, in that of a usual one: a part of it
    follows traffic, as if a bundle were the sum of its topics."""
    traffic = PRIOR @ view.bundles.long
    weights: Floats = 0.5 + 0.5 * traffic / max(float(traffic.mean()), 1e-12)
    return weights


def _rows(was: Ints, now_at: Ints) -> Ints:
    rows: Ints = now_at[was]
    return rows


def _told(slopes: Floats, view: View, order: Ints) -> Floats:
    return slopes @ view.bundles.stats[:, order]


def _sums(columns: Floats, hosts: Ints, n: int) -> Floats:
    """(r, n) sums of (r, m) columns by broker."""
    return np.array([np.bincount(hosts, column, n) for column in columns])


def _left(was: Ints, now_at: Ints, hosts: Ints, unsure: Floats, held: Ints) -> Floats:
    """(4, m) how much less sure each bundle is for those that left its broker."""
    old = now_at[was]
    gone = (old >= 0) & (old != hosts)
    if not gone.any():
        return np.zeros((4, 1))
    lost = _sums(unsure[:, gone], old[gone], len(held))
    return (lost / np.maximum(held, 1))[:, hosts]


def _carried(past: Needs, keys: Keys, usual: Floats) -> tuple[Floats, Floats, Floats, Ints]:
    """``own``, ``unsure``, ``loose`` and ``host`` of these bundles; new ones are as usual."""
    m = len(keys)
    if np.array_equal(past.keys, keys):
        return past.own, past.unsure, past.loose, past.host
    own = np.repeat(usual[:, None], m, axis=1)
    unsure, loose, was = np.ones((4, m)), np.ones((4, m)), np.full(m, -1)
    if len(past.keys):
        at = np.minimum(np.searchsorted(past.keys, keys), len(past.keys) - 1)
        here = past.keys[at] == keys
        at = at[here]
        own[:, here], unsure[:, here] = past.own[:, at], past.unsure[:, at]
        loose[:, here], was[here] = past.loose[:, at], past.host[at]
    return own, unsure, loose, was


def _count(past: Floats, view: View, news: Bools, elapsed_ms: Ints, half_life: float) -> Floats:
    brokers = view.brokers
    counted = news & (brokers.smoothed_traffic.sum(axis=0) > 0)
    if not counted.any():
        return past
    used = brokers.smoothed_resources[COUNTED] / 100 * brokers.limits[COUNTED]
    rows = np.vstack((np.ones(len(news)), brokers.smoothed_traffic, used))[:, counted]
    kept = 0.5 ** (float(elapsed_ms[counted].min()) / (1000 * half_life))
    moments: Floats = kept * past + rows @ rows.T
    return moments


def _fit(moments: Floats) -> _Fit:
    """Least squares without slopes below 0, by coordinate descent (Franc, Hlavac, Navara 2005)."""
    if moments[0, 0] <= 0:
        return _Fit(np.zeros((4, 4)), np.zeros(4), np.zeros(4))
    mean = moments[0] / moments[0, 0]
    around = moments / moments[0, 0] - np.outer(mean, mean)
    traffic, used = np.maximum(mean[_TRAFFIC], 1e-12), mean[_USED]
    scaled = around[_TRAFFIC, _TRAFFIC] / np.outer(traffic, traffic)
    prior = np.outer(used, PRIOR * traffic / (PRIOR @ traffic))
    left = scaled + _ALIKE**2 * np.eye(4)
    right = (around[_TRAFFIC, _USED] / traffic[:, None]).T + _ALIKE**2 * prior
    slopes = prior.copy()
    for _ in range(_SWEEPS):
        for each in range(4):
            rest = right[:, each] - slopes @ left[:, each] + slopes[:, each] * left[each, each]
            slopes[:, each] = np.maximum(rest / left[each, each], 0.0)
    total = slopes.sum(axis=1)
    slopes *= np.minimum(1.0, used / np.maximum(total, 1e-30))[:, None]
    explained = (slopes @ scaled * slopes).sum(axis=1)
    both = ((around[_TRAFFIC, _USED] / traffic[:, None]).T * slopes).sum(axis=1)
    variance = np.maximum(np.diag(around)[_USED] - 2 * both + explained, 0.0)
    return _Fit(slopes / traffic, np.maximum(used - slopes.sum(axis=1), 0.0), variance)
