"""The columns of a view, gathered from the snapshots of its brokers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import repeat
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from trimtab.arrays import CACHE, CACHE_STEP, Counts, Ints
from trimtab.intake.snapshot import Snapshot
from trimtab.names import PackedNames, ranges_of
from trimtab.view import Brokers, Bundles, namespaces_of

T = TypeVar("T", bound=np.generic)

_MOST: Final = 2**31 - 1


@dataclass(slots=True)
class Rows:
    """The bundles of a view; ``at`` is each row's place in the concatenated snapshots."""

    at: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    intended: list[int] = field(default_factory=list)
    movable: list[bool] = field(default_factory=list)

    def append(self, place: int, owner: int, name: str, intended: int, movable: bool) -> None:
        self.at.append(place)
        self.names.append(name)
        self.owner.append(owner)
        self.intended.append(intended)
        self.movable.append(movable)

    def extend(self, place: int, owner: int, names: Sequence[str]) -> None:
        """Add movable bundles that stay where they are; their places follow one another."""
        size = len(names)
        self.at.extend(range(place, place + size))
        self.names.extend(names)
        self.owner.extend(repeat(owner, size))
        self.intended.extend(repeat(owner, size))
        self.movable.extend(repeat(True, size))


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


def bundles_of(brokers: Sequence[Snapshot], rows: Rows) -> Bundles:
    """Columns of the bundles in ``rows``."""
    # If no bundle is left out, there is nothing to select and no column of places to keep.
    left_out = len(rows.at) < sum(len(s.shown) for s in brokers)
    at = np.array(rows.at, np.int64) if left_out else None
    shown = _gather([s.shown[np.newaxis] for s in brokers], at, np.zeros((1, 0), np.bool_))[0]
    namespace, namespaces = namespaces_of(rows.names)
    ranges = _gather([ranges_of(s.names) for s in brokers], at, np.zeros((2, 0), np.uint32))
    none = np.zeros((4, 0))
    return Bundles(
        names=PackedNames(namespaces, namespace, ranges),
        namespace=namespace,
        namespaces=namespaces,
        owner=np.array(rows.owner, np.int64),
        short=_gather([s.short for s in brokers], at, none),
        long=_gather([s.long for s in brokers], at, none),
        reported=cache(lambda: _gather([s.stats for s in brokers], at, none)),
        counts=_gather([_counts(s) for s in brokers], at, none.astype(np.int32)),
        movable=np.array(rows.movable, np.bool_) & shown,
    )


def _gather(parts: Sequence[NDArray[T]], at: Ints | None, none: NDArray[T]) -> NDArray[T]:
    """The columns of all snapshots side by side, or those ``at`` the given places."""
    whole = np.hstack([none, *parts])
    return whole if at is None else whole[:, at]


def _counts(snapshot: Snapshot) -> Counts:
    counts = snapshot.counts.copy()
    counts[CACHE] //= CACHE_STEP
    return np.minimum(counts, _MOST).astype(np.int32)
