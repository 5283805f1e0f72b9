"""Bundles that their broker does not report for a while, and that it still has.

A report may lack some of its broker's bundles, and the next one has them again. Meanwhile they are
in no view, and cannot move; but their broker carries them. So for as long as their share is kept
(`trimtab.load_model.estimating.sampling`) they count where they were last reported, unless a plan
sent them elsewhere: then they are in transit (`trimtab.load_model.in_transit`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.estimating.estimates import Estimates, Keys, Samples
from trimtab.load_model.estimating.rows import are_among, find_keys, locate_keys
from trimtab.load_model.estimating.sampling import AWAY_MS
from trimtab.load_model.in_transit import Sent
from trimtab.load_model.resources.excess import hash_brokers
from trimtab.names import identities
from trimtab.view import Brokers


class Unreported(NamedTuple):
    """k bundles that their brokers do not report."""

    keys: Keys
    where: Ints
    """(k,) row of the broker in the view."""
    size: Floats
    """(k,) share of the fleet's traffic."""


def find_young(known: Estimates, keys: Keys, hosts: Ints, brokers: Brokers) -> Bools:
    """(m,) reported bundles whose counters may not count yet: those that have just come to their
    broker, by its (m,) row ``hosts``, and those of a broker that counts nothing at all."""
    at, here = locate_keys(known, keys)
    was = known.host[at] if len(known.keys) else np.zeros_like(keys)
    came = here & (was != 0) & (was != hash_brokers(brokers.names)[hosts])
    nothing: Bools = (brokers.traffic == 0).all(axis=0)
    young: Bools = came | nothing[hosts]
    return young


def note_hosts(
    known: Estimates, samples: Samples, hosts: Ints, brokers: Sequence[str]
) -> Estimates:
    """The estimates with the broker of each sample that counted: (m,) ``hosts`` are its rows in
    ``brokers``."""
    at = locate_keys(known, samples.keys)[0]
    counted = known.at_ms[at] == samples.at_ms
    now = np.where(counted, hash_brokers(brokers)[hosts], known.host[at])
    if np.array_equal(known.host[at], now):
        return known
    host = known.host.copy()
    host[at] = now
    return replace(known, host=host)


def find_unreported(
    known: Estimates, keys: Keys, brokers: Sequence[str], sent: Sent, now_ms: int
) -> Unreported:
    """The bundles that count where they were; ``keys`` are those of the reported bundles."""
    if len(known.keys) == len(keys):
        rows = at = np.zeros(0, np.int64)
    else:
        horizon = now_ms - AWAY_MS
        rows = np.flatnonzero((known.at_ms >= horizon) & ~are_among(known.keys, keys))
        moved = [bundle for bundle, (_, at) in sent.items() if at >= horizon] if len(rows) else []
        if moved:
            rows = rows[~np.isin(known.keys[rows], identities(moved))]
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
