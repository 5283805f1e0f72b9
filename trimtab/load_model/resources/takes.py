"""What bundles take of several resources: where no single one rules the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.load import COUNTED, weight_of
from trimtab.load_model.resources.base_use import base_of
from trimtab.load_model.resources.known_bundles import sum_by_broker
from trimtab.load_model.resources.needs import Needs, weights_of
from trimtab.load_model.resources.slopes import PRIOR
from trimtab.names import identities
from trimtab.settings import WeightSettings
from trimtab.view import Brokers, Bundles, View

_RIVAL: Final = 0.35
"""The part of a broker's usage, or of the mean if that is more, at which another resource competes.
Lower: links that are never full count; higher: a resource competes only once it is too late."""
AT_WORST: Final = 3.0
"""Deviations that a bundle may take more than believed. Lower: unknown bundles overload brokers;
higher: nothing unknown moves."""
_APART: Final = 0.02
"""By how much of a broker two resources must stray from going together, to count as two."""


@dataclass(frozen=True, slots=True, eq=False)
class Takes:
    """r resources of n brokers and m bundles."""

    used: Floats
    """(r, n) predicted use, in the units of the limits."""
    scale: Floats
    """(r, n) usage per unit."""
    need: Floats
    """(r, m) what a bundle takes, in these units."""
    doubt: Floats
    """(r, m) standard deviation of ``need``."""
    tail: Floats
    """(r, m) what a bundle may take beyond ``need`` at worst."""
    sway: Floats
    """(2, r, m) what a bundle takes beyond ``need`` if only messages cost, or only bytes: it errs
    alike for all bundles."""
    explained: Floats
    """(r, n) usage of each resource that the traffic of the brokers' bundles explains."""
    names: Sequence[str] = ()
    """Of the bundles."""

    @property
    def usage(self) -> Floats:
        """(n,) of the busiest resource."""
        usage: Floats = self.shares.max(axis=0)
        return usage

    @property
    def shares(self) -> Floats:
        """(r, n) usage of each resource."""
        return self.used * self.scale

    def shares_with(self, more: Floats, where: Ints) -> Floats:
        """(r, n) usage of each resource if the bundles at (m,) ``where`` took (r, m) ``more``."""
        n = self.used.shape[1]
        added = np.array([np.bincount(where, column, n) for column in more])
        shares: Floats = (self.used + added) * self.scale
        return shares

    def at_least(self, shares: Floats) -> Takes:
        """The same with these (r, n) shares, of resources that count."""
        used = np.divide(shares, self.scale, out=self.used.copy(), where=self.scale > 0)
        return replace(self, used=used)

    def joined_by(self, parts: Floats) -> Takes:
        """The same with bundles on their way that no broker reports; (n,) ``parts`` of what all
        reported ones take go to each broker."""
        return replace(self, used=self.used + self.need.sum(axis=1)[:, None] * parts)

    def moved(self, bundles: Ints, source: Ints, destination: Ints) -> Takes:
        """The same after the moves, given as (k,) rows."""
        used = self.used.copy()
        for resource, need in enumerate(self.need[:, bundles]):
            np.subtract.at(used[resource], source, need)
            np.add.at(used[resource], destination, need)
        return replace(self, used=used)


def compete(brokers: Brokers, weights: WeightSettings) -> bool:
    """Whether several resources matter: another than the leading one is busy, and they do not go
    together."""
    shares = brokers.smoothed_resources[COUNTED] / 100 * weight_of(weights)[:, None]
    if shares.shape[1] <= 2:
        return False
    usage = shares.max(axis=0)
    floor = np.maximum(usage, usage.mean())
    first = int(np.argmax(shares.mean(axis=1)))
    leading = shares[first]
    for row, share in enumerate(shares):
        if row == first or not (share >= _RIVAL * floor).any():
            continue
        together = np.cov(share, leading, bias=True)
        # A resource that falls where the other rises does not go with it.
        rising = max(together[0, 1], 0.0)
        if together[0, 0] - rising**2 / max(together[1, 1], 1e-12) > _APART**2:
            return True
    return False


def spread_traffic(bundles: Bundles, traffic: Floats) -> Floats:
    """(4, m) statistics of bundles with this (m,) ``traffic``, in bytes/s, in the proportions of
    their averages."""
    parts: Floats = bundles.long / np.maximum(PRIOR @ bundles.long, 1e-12)
    return parts * traffic


def takes_of(view: View, needs: Needs, carried: Floats, weights: WeightSettings) -> Takes | None:
    """What the bundles of a view take with (4, m) traffic ``carried``, from needs that count its
    reports; None if the needs are of other bundles or brokers."""
    keys = identities(view.bundles.names)
    order = np.argsort(keys)
    if needs.brokers != view.brokers.names or not np.array_equal(needs.keys, keys[order]):
        return None
    n, limits = len(view.brokers.names), view.brokers.limits[COUNTED]
    scale = np.where(limits > 0, weight_of(weights)[:, None] / np.maximum(limits, 1e-12), 0.0)
    own, unsure = np.empty_like(needs.own), np.empty_like(needs.unsure)
    own[:, order], unsure[:, order] = needs.own, needs.unsure
    traffic = needs.slopes @ carried
    need = np.maximum(traffic + own, 0.0)
    doubt = np.sqrt(unsure * needs.spread[:, None]) * weights_of(view.bundles)
    # What only a sum tells may be another bundle's.
    doubt = np.maximum(doubt, unsure * np.maximum(own, 0.0))
    there, told = sum_by_broker(need, view.intended, n), sum_by_broker(traffic, view.intended, n)
    tail = np.maximum(AT_WORST * doubt, unsure * _excess(own, view.bundles.owner, n))
    sway, names = _sway(carried, traffic) * needs.untold, view.bundles.names
    used = there + base_of(needs, view.brokers, view.bundles.owner[order])
    return Takes(used, scale, need, doubt, tail, sway, told * scale, names)


def _sway(carried: Floats, taken: Floats) -> Floats:
    """(2, r, m) by how much bundles would take more if only messages cost, or only bytes.

    ``carried``: (4, m) their traffic; ``taken``: (r, m) what it takes as both cost.
    """
    whole = taken.sum(axis=1)[:, None]
    parts = (carried[:2].sum(axis=0), carried[2:].sum(axis=0))
    sway: Floats = np.array([whole * (part / max(float(part.sum()), 1e-12)) for part in parts])
    return sway - taken


def _excess(own: Floats, hosts: Ints, n: int) -> Floats:
    """(r, m) by how much the other bundles on a bundle's broker together are believed to take more
    than usual.

    Where loads have heavy tails, one bundle causes most of a large sum (Foss, Korshunov, Zachary
    2011): this one may be it.
    """
    unusual = own - own.mean(axis=1, keepdims=True) if own.size else own
    # Not its own part, which it is believed to take anyway.
    excess: Floats = np.maximum(sum_by_broker(unusual, hosts, n)[:, hosts] - unusual, 0.0)
    return excess
