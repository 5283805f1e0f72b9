"""Dividing a bundle: the broker's topics tell where, the store makes the children.

find the place; where there is none the bundle stays as it is, and the store is told so
ask the store for the children: from then on the bundle is no more
tell the broker, and serve the children
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trimtab.model import HashRange, parse_bundle
from trimtab.settings import SplitSettings
from trimtab.splitting import DIVIDERS
from trimtab.splitting.request import CannotSplit, Flaw, SplitRequest, children
from trimtab.wire.command import Division


def children_of(
    bundle: str, division: Division, topics: Mapping[int, Sequence[float]]
) -> tuple[str, ...]:
    """What a bundle is divided into, ascending; raises CannotSplit."""
    namespace, span = parse_bundle(bundle)
    request = SplitRequest(
        bundle=span,
        positions=np.array(list(topics), dtype=np.int64),
        traffic=np.array(list(topics.values()), dtype=np.float64).reshape(-1, 4).T,
    )
    limits = SplitSettings(
        max_rate=division.max_rate,
        max_throughput=division.max_throughput,
        difference=division.difference,
    )
    cuts = DIVIDERS[division.algorithm](request, limits)
    if not cuts:
        raise CannotSplit(span, Flaw.NO_POSITION)
    return tuple(f"{namespace}/{part}" for part in children(span, cuts))


def within(bundle: str, other: str) -> bool:
    """Whether ``other`` is a part of ``bundle``."""
    namespace, whole = parse_bundle(bundle)
    of, part = parse_bundle(other)
    return of == namespace and _covers(whole, part)


def _covers(whole: HashRange, part: HashRange) -> bool:
    return whole.low <= part.low and part.high <= whole.high
