"""Bundles that their broker does not report for a while, and that it still has.

A report may lack some of its broker's bundles, and the next one has them again. Meanwhile they are
in no view, and cannot move; but their broker carries them. So for as long as their share is kept
(`trimtab.load_model.estimating.sampling`) they count where they were last reported, unless a plan
sent them elsewhere: then they are in transit (`trimtab.load_model.in_transit`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.load_model.estimating.estimates import Estimates, Keys
from trimtab.load_model.estimating.rows import are_among, find_keys
from trimtab.load_model.estimating.sampling import AWAY_MS
from trimtab.load_model.resources.excess import hash_brokers
from trimtab.names import identities


class Unreported(NamedTuple):
    """k bundles that their brokers do not report."""

    keys: Keys
    where: Ints
    """(k,) row of the broker in the view."""
    size: Floats
    """(k,) share of the fleet's traffic."""


def note_hosts(known: Estimates, keys: Keys, hosts: Ints, brokers: Sequence[str]) -> Estimates:
    """The estimates with the broker of each reported bundle: (m,) ``hosts`` are its rows in
    ``brokers``; ``keys`` (m,) ascend."""
    now = hash_brokers(brokers)[hosts]
    if len(keys) == len(known.keys):
        return known if np.array_equal(known.host, now) else replace(known, host=now)
    host = known.host.copy()
    host[np.searchsorted(known.keys, keys)] = now
    return replace(known, host=host)


def find_unreported(
    known: Estimates, keys: Keys, brokers: Sequence[str], sent: Collection[str], now_ms: int
) -> Unreported:
    """The bundles that count where they were; ``keys`` are those of the reported bundles, ``sent``
    the names of those that plans moved of late."""
    if len(known.keys) == len(keys):
        rows = at = np.zeros(0, np.int64)
    else:
        absent = (known.at_ms >= now_ms - AWAY_MS) & ~are_among(known.keys, keys)
        rows = np.flatnonzero(absent)
        if len(rows) and sent:
            rows = rows[~np.isin(known.keys[rows], identities([*sent]))]
        at = _find_rows(known.host[rows], brokers)
        rows, at = rows[at >= 0], at[at >= 0]
    return Unreported(known.keys[rows], at, known.current[rows])


def _find_rows(hosts: Keys, brokers: Sequence[str]) -> Ints:
    """(k,) the rows of these brokers; -1 for one that is not there."""
    hashes = hash_brokers(brokers)
    order = np.argsort(hashes)
    at, here = find_keys(hosts, hashes[order])
    rows: Ints = np.where(here, order[at], -1) if len(order) else np.full(len(hosts), -1)
    return rows
