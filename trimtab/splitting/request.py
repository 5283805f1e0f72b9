"""A bundle to split, its topics, and the children that result from boundaries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from trimtab.arrays import Floats, Ints
from trimtab.model import HashRange
from trimtab.ownership import MOST_CHILDREN


@dataclass(frozen=True, slots=True, eq=False)
class SplitRequest:
    """One bundle with its k topics."""

    bundle: HashRange
    positions: Ints
    """(k,) positions on the ring, in any order."""
    traffic: Floats
    """(4, k) messages/s in and out, bytes/s in and out; zeros where they are not known."""
    wanted: tuple[int, ...] | None = None
    """Positions that an operator asks for."""
    forced: bool = False
    """Split at ``wanted`` however few topics there are."""


class SplitFlaw(StrEnum):
    """Why a bundle cannot be split at the given boundaries."""

    TOO_SMALL = "it is too small to be divided"
    OUTSIDE = "a boundary does not lie inside it"
    EMPTY_CHILD = "two boundaries are equal, which makes an empty child"
    TOO_MANY = "it would have more children than one request may name"
    NO_POSITION = "no position is given"
    ONE_TOPIC = "it has fewer than two topics"
    UNNEEDED = "the algorithm finds no need to split it"
    UNKNOWN = "this version does not know the algorithm"


class CannotSplit(ValueError):
    """Raised for boundaries that `children` refuses, and where none is given but one is needed."""

    def __init__(self, bundle: HashRange, flaw: SplitFlaw) -> None:
        super().__init__(f"{bundle}: {flaw}")
        self.flaw = flaw


def children(bundle: HashRange, boundaries: Iterable[int]) -> list[HashRange]:
    """The ranges between the boundaries; raises CannotSplit (Pulsar NamespaceBundleFactory)."""
    edges = sorted(boundaries)
    if bundle.high - bundle.low <= 1:
        raise CannotSplit(bundle, SplitFlaw.TOO_SMALL)
    if edges and not (bundle.low < edges[0] and edges[-1] < bundle.high):
        raise CannotSplit(bundle, SplitFlaw.OUTSIDE)
    if len(edges) >= MOST_CHILDREN:
        raise CannotSplit(bundle, SplitFlaw.TOO_MANY)
    if len(set(edges)) < len(edges):
        raise CannotSplit(bundle, SplitFlaw.EMPTY_CHILD)
    return [HashRange(*pair) for pair in pairwise((bundle.low, *edges, bundle.high))]
