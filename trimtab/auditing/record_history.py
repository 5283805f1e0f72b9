"""The last changes of one bundle, ordered by epoch, not by their arrival."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from trimtab.auditing.rules import may_skip
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event
from trimtab.wire.ownership import Change, Record

LENGTH: Final = 8
"""Changes kept. Fewer: a late copy of an older one is indistinguishable from a forgery."""


class HistoryPlace(Enum):
    """How a change fits into a history."""

    NEW = auto()
    COPY = auto()
    """Known already, or so old that it must have been."""
    CONFLICT = auto()
    BACKWARD = auto()
    LOST = auto()
    """The store had lost it when a later generation went on."""


class RecordHistory:
    """A bundle's changes, ascending by counter: generation and counter grow together."""

    __slots__ = ("changes", "pruned", "told", "trimmed")

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.trimmed = False
        """Whether changes were seen before those kept here."""
        self.pruned = NO_EPOCH
        """Epoch of the bundle's last record when the store removed it."""
        self.told = -1
        """Gaps up to this counter have been reported."""

    def place(self, change: Change) -> HistoryPlace:
        """Insert the change if it is new; return how it fits."""
        at = self._index(change.record.epoch.counter)
        known = self.changes[at] if at < len(self.changes) else None
        if any(_lost(change, other) for other in self.changes[max(at - 1, 0) : at + 1]):
            return HistoryPlace.LOST
        if known is not None and known.record.epoch.counter == change.record.epoch.counter:
            return HistoryPlace.COPY if _same(known, change) else HistoryPlace.CONFLICT
        if at == 0 and known is not None:
            if change.record.since > known.record.since:
                return HistoryPlace.BACKWARD
            if self.trimmed:
                return HistoryPlace.COPY
        self.changes.insert(at, change)
        return HistoryPlace.NEW

    def forget_lost(self, change: Change) -> list[Change]:
        """Remove and return the changes that the store had lost when it made this one."""
        lost = [known for known in self.changes if _lost(known, change)]
        if lost:
            self.changes = [known for known in self.changes if not _lost(known, change)]
        return lost

    def around(self, change: Change) -> Iterator[tuple[Change | None, Change]]:
        """The pairs of neighbours formed by a change just inserted."""
        at = self._index(change.record.epoch.counter)
        yield self.changes[at - 1] if at else None, change
        if at + 1 < len(self.changes):
            yield change, self.changes[at + 1]

    def trim(self) -> None:
        """Forget old changes, but not before their gaps have been reported."""
        while len(self.changes) > LENGTH and not self._is_gap(1):
            del self.changes[0]
            self.trimmed = True

    def gaps(self) -> Iterator[tuple[Change, Change]]:
        """Neighbours with a missing change between them that has not been reported."""
        for at in range(1, len(self.changes)):
            if self._is_gap(at):
                yield self.changes[at - 1], self.changes[at]

    def newest(self) -> Change:
        return self.changes[-1]

    def at(self, epoch: Epoch) -> Change | None:
        """The change with exactly this epoch."""
        known = self._from(epoch.counter)
        return known if known is not None and known.record.epoch == epoch else None

    def after(self, epoch: Epoch) -> Change | None:
        """The next known change."""
        return self._from(epoch.counter + 1)

    def before(self, epoch: Epoch) -> Change | None:
        """The change just before, if known."""
        known = self._from(epoch.counter - 1)
        found = known is not None and known.record.epoch.counter == epoch.counter - 1
        return known if found else None

    def begins_after(self, epoch: Epoch) -> bool:
        """Whether the epoch is before the kept history, so that nothing is known about it."""
        return 0 < epoch.counter < self.changes[0].record.epoch.counter

    def may_lack(self, epoch: Epoch) -> bool:
        """Whether a change with this epoch need not be here: the store lost it, or it was skipped
        before a restored record."""
        if self.at(epoch) is not None:
            return False
        standing, later = self._from(epoch.counter), self.after(epoch)
        lost = standing is not None and standing.record.epoch.generation > epoch.generation
        return lost or (later is not None and later.event is Event.RESTORE)

    def knows(self, record: Record) -> bool:
        """Whether a record is, or may have been, one of this bundle's."""
        found = self.at(record.epoch)
        if found is None:
            return self.begins_after(record.epoch) or self.may_lack(record.epoch)
        return found.record == record

    def _is_gap(self, at: int) -> bool:
        first, second = self.changes[at - 1], self.changes[at]
        counter = second.record.epoch.counter
        missing = counter - first.record.epoch.counter > 1
        return missing and counter > self.told and not may_skip(second)

    def _from(self, counter: int) -> Change | None:
        at = self._index(counter)
        return self.changes[at] if at < len(self.changes) else None

    def _index(self, counter: int) -> int:
        return bisect_left(self.changes, counter, key=lambda known: known.record.epoch.counter)


def _lost(old: Change, new: Change) -> bool:
    """Whether ``new`` shows that the store had lost ``old``: a later generation counted on from
    below it. A restored record bears the time of what it restores, or none."""
    before, after = old.record.epoch, new.record.epoch
    recounted = before.generation < after.generation and before.counter >= after.counter
    earlier = new.event is Event.RESTORE or old.record.since < new.record.since
    return recounted and earlier


def _same(known: Change, change: Change) -> bool:
    # A restored record is journalled again, unchanged.
    restored = Event.RESTORE in {known.event, change.event}
    return known.record == change.record and (restored or known.event == change.event)
