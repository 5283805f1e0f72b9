"""The bundles of a view, with what was known of them before its reports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.rows import find_keys
from trimtab.load_model.resources.needs import Needs


class KnownBundles(NamedTuple):
    """What was known of the bundles of the view, by row of ``keys``."""

    own: Floats
    unsure: Floats
    loose: Floats
    was: Ints
    """(m,) row of the broker that it was on, in this view; -1 if there was none."""


def recall_bundles(past: Needs, keys: Keys, usual: Floats, rows: Ints) -> KnownBundles:
    """The bundles of ``keys``, new ones as usual; (n,) ``rows`` are brokers' rows in the past."""
    now_at = np.full(len(past.brokers) + 1, -1)
    now_at[rows] = np.arange(len(rows))
    # The last place is that of no broker.
    now_at[-1] = -1
    if np.array_equal(past.keys, keys):
        return KnownBundles(past.own, past.unsure, past.loose, now_at[past.host])
    m = len(keys)
    own, was = usual.copy(), np.full(m, -1)
    unsure, loose = np.ones((4, m)), np.ones((4, m))
    at, here = find_keys(keys, past.keys)
    at = at[here]
    own[:, here], unsure[:, here] = past.own[:, at], past.unsure[:, at]
    loose[:, here], was[here] = past.loose[:, at], now_at[past.host[at]]
    return KnownBundles(own, unsure, loose, was)


def loosened(bundles: KnownBundles, hosts: Ints, held: Ints) -> Floats:
    """(4, m) how much less the sum binds each bundle since others have left its broker."""
    gone = (bundles.was >= 0) & (bundles.was != hosts)
    if not gone.any():
        return np.zeros((4, 1))
    lost = sum_by_broker(bundles.unsure[:, gone], bundles.was[gone], len(held))
    loosened: Floats = (lost / np.maximum(held, 1))[:, hosts]
    return loosened


def find_changed(was: Ints, hosts: Ints, n: int) -> Bools:
    """(n,) whether bundles came to a broker since its last report, or went."""
    moved = was != hosts
    changed = np.bincount(hosts[moved], minlength=n) > 0
    changed[was[moved & (was >= 0)]] = True
    return changed


def sum_by_broker(columns: Floats, hosts: Ints, n: int) -> Floats:
    """(r, n) sums of (r, m) columns by broker."""
    return np.array([np.bincount(hosts, column, n) for column in columns], np.float64)
