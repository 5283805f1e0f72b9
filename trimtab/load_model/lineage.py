"""Bundles that no longer exist because they were split or merged.

Like bundles in transit, no broker reports them; but other bundles now have their load, which would
be counted twice. Until the counters of these count, they keep together the share that was known.
What was known of a split bundle's leap holds for its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.leap_record import LeapRecord
from trimtab.load_model.estimating.rows import (
    are_among,
    begin_rows,
    join_rows,
    locate_keys,
    take_rows,
)
from trimtab.model import HashRange, parse_bundle, within
from trimtab.names import identities

_MOST: Final = 1_000
"""New bundles in one round above which the fleet itself counts as new, without ancestors."""
_TINY: Final = 1e-9
"""Floor of traffic that is divided by."""
_PARTS: Final = 8
"""Neighbours that are tried as children of one split. Lower: splits into more are not recognised;
higher: more names to look up."""


def hand_down_shares(
    past: Estimates, names: Sequence[str], samples: Samples, order: Ints
) -> Estimates:
    """``past`` without the bundles that new bundles were split from or merged from. What they had
    is kept by those of the new ones whose counters do not count yet.

    ``samples`` belong to the rows ``order`` of ``names``.
    """
    if not len(past.keys) or np.array_equal(past.keys, samples.keys):
        return past
    new = np.flatnonzero(~locate_keys(past, samples.keys)[1])
    if not 0 < len(new) <= _MOST:
        return past
    heirs = [names[row] for row in order[new].tolist()]
    relatives = [*_relatives(heirs)]
    gone = identities(relatives)
    at, known = locate_keys(past, gone)
    known &= ~are_among(gone, samples.keys)
    if not known.any():
        return past
    carried = _share_of(past, samples, new)
    waiting, spans = np.zeros(len(new)), _Spans(heirs)
    for ancestor in np.flatnonzero(known).tolist():
        level = float(past.current[at[ancestor]])
        waiting += _left_to(level, spans.related(relatives[ancestor]), carried)
    left = np.ones(len(past.keys), np.bool_)
    left[at[known]] = False
    kept = take_rows(past, np.flatnonzero(left))
    rows = new[waiting > 0]
    if not len(rows):
        return kept
    begun = begin_rows(samples.keys[rows], samples.at_ms[rows])
    return join_rows(kept, replace(begun, level=waiting[waiting > 0]))


def _share_of(past: Estimates, samples: Samples, new: Ints) -> Floats:
    """(k,) shares of the ``new`` bundles, by the traffic of those that were known."""
    at, here = locate_keys(past, samples.keys)
    known = float(past.current[at[here]].sum())
    traffic = float(samples.traffic[here].sum())
    shares: Floats = samples.traffic[new] * known / max(traffic, _TINY)
    return shares


def _left_to(level: float, heirs: Bools, carried: Floats) -> Floats:
    """(k,) what is left of an ancestor's ``level`` to each of its ``heirs`` that carry nothing yet:
    equal parts, as nothing tells them apart."""
    silent = heirs & (carried == 0)
    left = max(level - float(carried[heirs].sum()), 0.0)
    return np.where(silent, left / max(int(np.count_nonzero(silent)), 1), 0.0)


class _Spans:
    """The namespaces and ranges of (k,) bundles, parsed once."""

    def __init__(self, bundles: Sequence[str]) -> None:
        parsed = [parse_bundle(each) for each in bundles]
        self._spaces: dict[str, int] = {}
        self._space = np.array([self._spaces.setdefault(s, len(self._spaces)) for s, _ in parsed])
        self._low, self._high = np.array([span for _, span in parsed], np.int64).T

    def related(self, ancestor: str) -> Bools:
        """(k,) which of them were split from it, or merged from it and others."""
        space, (low, high) = parse_bundle(ancestor)
        within_it = (self._low >= low) & (self._high <= high)
        around_it = (self._low <= low) & (self._high >= high)
        related: Bools = (self._space == self._spaces.get(space, -1)) & (within_it | around_it)
        return related


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
