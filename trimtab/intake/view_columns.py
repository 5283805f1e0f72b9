"""The columns of a view, gathered from the snapshots of its brokers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from trimtab.arrays import CACHE, CACHE_STEP, Bools, Counts, Ints
from trimtab.intake.snapshot import Snapshot
from trimtab.names import PackedNames, Ranges, ranges_of
from trimtab.view import Brokers, Bundles, namespaces_of

T = TypeVar("T", bound=np.generic)

_MOST: Final = 2**31 - 1
_AT_ONCE: Final = 100


@dataclass(slots=True)
class Rows:
    """The bundles of a view, in runs that differ in nothing but their place and name."""

    names: list[str] = field(default_factory=list)
    runs: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """First place in the concatenated snapshots, how many, owner, intended owner, movable."""

    def append(self, place: int, owner: int, name: str, intended: int, movable: bool) -> None:
        self.names.append(name)
        self.runs.append((place, 1, owner, intended, movable))

    def extend(self, place: int, owner: int, names: Sequence[str]) -> None:
        """Add movable bundles that stay where they are; their places follow one another."""
        self.names.extend(names)
        self.runs.append((place, len(names), owner, owner, True))

    def columns(self) -> Columns:
        """A row for each bundle."""
        table = np.array(self.runs, np.int64).reshape(-1, 5)
        sizes = table[:, 1]
        first, owner, intended, movable = np.repeat(table[:, [0, 2, 3, 4]].T, sizes, axis=1)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        # The same column, not a copy, if nothing is in flight.
        settled = bool((table[:, 2] == table[:, 3]).all())
        return Columns(first + within, owner, owner if settled else intended, movable == 1)


class Columns(NamedTuple):
    """(m,) each: the place in the concatenated snapshots, owner, intended owner, movable."""

    at: Ints
    owner: Ints
    intended: Ints
    movable: Bools


def brokers_of(brokers: Sequence[Snapshot]) -> Brokers:
    """Columns of ``brokers``; the round fills in averages and relief times."""
    nothing = np.zeros((0,))
    smoothed = np.array([s.smoothed for s in brokers]).T if brokers else nothing.reshape(9, 0)
    return Brokers(
        names=tuple(s.broker for s in brokers),
        resources=np.array([s.resources for s in brokers]).T if brokers else nothing.reshape(5, 0),
        traffic=np.array([s.traffic for s in brokers]).T if brokers else nothing.reshape(4, 0),
        smoothed_resources=smoothed[:5],
        smoothed_traffic=smoothed[5:],
        topics=np.array([s.topics for s in brokers], np.int64),
        listed=np.array([s.listed for s in brokers], np.int64),
        available=np.ones(len(brokers), np.bool_),
        averages=np.full((2, len(brokers)), np.nan),
        reported_ms=np.array([s.appended_ms for s in brokers], np.int64),
        relieved_ms=np.zeros(len(brokers), np.int64),
        versions=tuple(s.version for s in brokers),
        load_managers=tuple(s.load_manager for s in brokers),
        persistent=np.array([s.persistent for s in brokers], np.bool_),
        limits=np.array([s.limits for s in brokers]).T if brokers else nothing.reshape(5, 0),
    )


def bundles_of(brokers: Sequence[Snapshot], names: Sequence[str], rows: Columns) -> Bundles:
    """Columns of the bundles in ``rows``."""
    # If no bundle is left out, there is nothing to select and no column of places to keep.
    left_out = len(rows.at) < sum(len(s.shown) for s in brokers)
    at = rows.at if left_out else None
    shown = _gather([s.shown[np.newaxis] for s in brokers], at, np.zeros((1, 0), np.bool_))[0]
    namespace, namespaces = namespaces_of(names)
    ranges = _gather([*_ranges(brokers)], at, np.zeros((2, 0), np.uint32))
    none = np.zeros((4, 0))
    return Bundles(
        names=PackedNames(namespaces, namespace, ranges),
        namespace=namespace,
        namespaces=namespaces,
        owner=rows.owner,
        short=_gather([s.short for s in brokers], at, none),
        long=_gather([s.long for s in brokers], at, none),
        reported=cache(lambda: _gather([s.stats for s in brokers], at, none)),
        counts=_gather([_counts(s) for s in brokers], at, none.astype(np.int32)),
        movable=rows.movable & shown,
    )


def _ranges(brokers: Sequence[Snapshot]) -> Iterator[Ranges]:
    """Of many brokers at once: NumPy's calls cost more than their work on a broker's names."""
    for first in range(0, len(brokers), _AT_ONCE):
        some = (s.names for s in brokers[first : first + _AT_ONCE] if s.names)
        yield ranges_of("\n".join(some))


def _gather(parts: Sequence[NDArray[T]], at: Ints | None, none: NDArray[T]) -> NDArray[T]:
    """The columns of all snapshots side by side, or those ``at`` the given places."""
    whole = np.hstack([none, *parts])
    return whole if at is None else whole[:, at]


def _counts(snapshot: Snapshot) -> Counts:
    counts = snapshot.counts.copy()
    counts[CACHE] //= CACHE_STEP
    return np.minimum(counts, _MOST).astype(np.int32)
