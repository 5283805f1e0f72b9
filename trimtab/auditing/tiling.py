"""Checks that the existing bundles of one namespace cover the hash ring exactly once.

Changes are taken in the order of `since`, those of one moment together: the script retires bundles
and creates their successors in one run. Restored records keep their old times, and what led to them
is lost: those of one rebuild form one moment, after all earlier changes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import groupby

from trimtab.auditing.rules import RuleBreach, ViolationKind, stands
from trimtab.model import FULL_RANGE_END, HashRange, parse_bundle
from trimtab.ownership import Event
from trimtab.wire.ownership import Change


class Tiling:
    """The bundles as of some time before the journal's end, and the changes since."""

    def __init__(self) -> None:
        self._tiles = False
        self._told = False
        self._changed_at = 0
        self._pending: list[tuple[int, Change]] = []
        """Each with its moment."""
        self._newest = -1
        self._until = -1
        self._held_until = -1
        self._known: dict[HashRange, tuple[int, bool]] = {}
        """Counter of the newest change taken, and whether the bundle exists after it."""
        self._spans: list[HashRange] = []
        self._covered = 0

    def note(self, change: Change, now: int) -> None:
        """Remember a change, seen at ``now``, that creates or ends a bundle."""
        restored = change.event is Event.RESTORE
        if not restored:
            self._newest = max(self._newest, change.record.since)
        moment = self._newest if restored else change.record.since
        self._pending.append((moment, change))
        self._told = False
        self._changed_at = max(self._changed_at, change.record.since, now)
        if restored or moment <= self._until:
            # Other changes of its moment may still arrive.
            self._held_until = max(self._held_until, now)

    def due(self, until: int) -> Iterator[list[Change]]:
        """The changes up to ``until``, one moment at a time; held back after late arrivals."""
        if until < self._held_until:
            return
        self._pending.sort(key=_moment)
        end = bisect_left(self._pending, until + 1, key=_moment)
        due, self._pending = self._pending[:end], self._pending[end:]
        self._until = max(self._until, until)
        for _, changes in groupby(due, key=_moment):
            yield [change for _, change in changes]

    def take(self, moment: list[Change]) -> Iterator[tuple[str, RuleBreach]]:
        """Bundles and what is wrong with them after all changes of a moment."""
        added = [change.bundle for change in moment if self._take(change)]
        for bundle in added:
            for other in self._overlapping(parse_bundle(bundle)[1]):
                yield bundle, RuleBreach(ViolationKind.OVERLAP, f"{other} stands as well")
        if self._covered == FULL_RANGE_END:
            self._tiles = True
        elif self._tiles and self._covered < FULL_RANGE_END:
            self._tiles = False
            holes = ", ".join(map(str, self._holes()))
            yield (
                moment[0].bundle,
                RuleBreach(ViolationKind.HOLE, f"nothing covers {holes} any longer"),
            )

    @property
    def covered(self) -> float:
        """Covered part of the ring (fraction); may exceed 1 if bundles overlap."""
        return self._covered / FULL_RANGE_END

    def is_news(self, before: int) -> bool:
        """Whether the ring is uncovered, unchanged since ``before``, and not yet reported."""
        if self._tiles or self._told or self._changed_at > before:
            return False
        self._told = True
        return True

    def _take(self, change: Change) -> bool:
        """Apply a change; return whether the bundle exists now and did not before."""
        span = parse_bundle(change.bundle)[1]
        counter, stood = self._known.get(span, (-1, False))
        if change.record.epoch.counter <= counter:
            return False
        standing = stands(change.record)
        self._known[span] = change.record.epoch.counter, standing
        if standing and not stood:
            insort(self._spans, span)
            self._covered += span.high - span.low
        elif stood and not standing:
            del self._spans[bisect_left(self._spans, span)]
            self._covered -= span.high - span.low
        return standing and not stood

    def _overlapping(self, span: HashRange) -> Iterator[HashRange]:
        """Overlapping neighbours only: earlier overlaps have been reported."""
        at = bisect_left(self._spans, span)
        if self._spans[at : at + 1] != [span]:
            # It was created and ended in one moment.
            return
        for other in self._spans[max(0, at - 1) : at + 2]:
            if other != span and other.low < span.high and span.low < other.high:
                yield other

    def _holes(self) -> Iterator[HashRange]:
        covered = 0
        for low, high in self._spans:
            if low > covered:
                yield HashRange(covered, low)
            covered = max(covered, high)
        if covered < FULL_RANGE_END:
            yield HashRange(covered, FULL_RANGE_END)


def _moment(pending: tuple[int, Change]) -> int:
    return pending[0]
