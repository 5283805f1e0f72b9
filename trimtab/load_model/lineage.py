"""Bundles that no longer exist because they were split or merged.

Like bundles in transit, no broker reports them; but other bundles now have their load, which would
be counted twice. What was known of a split bundle's leap holds for its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from trimtab.arrays import Ints
from trimtab.load_model.estimating.estimates import Estimates, Keys, Samples
from trimtab.load_model.estimating.leap_record import LeapRecord
from trimtab.load_model.estimating.rows import are_among, locate_keys, take_rows
from trimtab.model import HashRange, parse_bundle, within
from trimtab.names import identities

_MOST: Final = 1_000
"""New bundles in one round above which the fleet itself counts as new, without ancestors."""
_TINY: Final = 1e-9
"""Floor of traffic that is divided by."""
_PARTS: Final = 8
"""Neighbours that are tried as children of one split. Lower: splits into more are not recognised;
higher: more names to look up."""


def drop_ancestors(past: Estimates, names: Sequence[str], keys: Keys, order: Ints) -> Estimates:
    """Drop from ``past`` the bundles that new bundles were split from or merged from.

    ``keys`` (m,) ascend and belong to the rows ``order`` of ``names``.
    """
    if not len(past.keys) or np.array_equal(past.keys, keys):
        return past
    new = order[~locate_keys(past, keys)[1]].tolist()
    gone = identities([*_relatives([names[row] for row in new])] if len(new) <= _MOST else [])
    if not len(gone):
        return past
    at, known = locate_keys(past, gone)
    left = np.ones(len(past.keys), np.bool_)
    left[at[known & ~are_among(gone, keys)]] = False
    return take_rows(past, np.flatnonzero(left))


def hand_down_leaps(
    leaps: LeapRecord, past: Estimates, names: Sequence[str], samples: Samples, order: Ints
) -> LeapRecord:
    """The leaps with those of split bundles handed down to their children: a burst goes on in them.

    ``samples`` belong to the rows ``order`` of ``names``; ``past`` are the estimates before.
    """
    if not len(leaps.keys) or np.array_equal(past.keys, samples.keys):
        return leaps
    new = np.flatnonzero(~locate_keys(past, samples.keys)[1])
    if not 0 < len(new) <= _MOST:
        return leaps
    children = [names[row] for row in order[new].tolist()]
    relatives = [*_relatives(children)]
    known = np.isin(identities(relatives), leaps.keys)
    heirs = [
        (parent, at)
        for parent in (name for name, is_known in zip(relatives, known, strict=True) if is_known)
        for at, child in enumerate(children)
        if within(parent, child)
    ]
    parents, rows = identities([parent for parent, _ in heirs]), new[[at for _, at in heirs]]
    whole, family = np.unique(parents, return_inverse=True)
    traffic = samples.traffic[rows]
    total = np.bincount(family, traffic, len(whole))
    parts = traffic / np.maximum(total[family], _TINY)
    return leaps.hand_down(parents, samples.keys[rows], parts)


def _relatives(bundles: Sequence[str]) -> Iterator[str]:
    """The children of each bundle, and the merged range of each run of neighbours."""
    parsed = sorted(parse_bundle(name) for name in bundles)
    for at, (namespace, (low, high)) in enumerate(parsed):
        middle = low + (high - low) // 2
        if low < middle:
            yield f"{namespace}/{HashRange(low, middle)}"
            yield f"{namespace}/{HashRange(middle, high)}"
        end = high
        for other, (first, last) in parsed[at + 1 : at + _PARTS]:
            if (other, first) != (namespace, end):
                break
            end = last
            yield f"{namespace}/{HashRange(low, end)}"
