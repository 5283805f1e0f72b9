"""A finding in words."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.auditing.rules import ViolationKind
from trimtab.model import Epoch
from trimtab.wire.ownership import Change, Record


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken. ``bundle`` is a namespace where INCOMPLETE."""

    kind: ViolationKind
    cluster: str
    bundle: str
    detail: str
    story: tuple[Change, ...] = ()
    """The last changes of the bundle, ascending; after them one that does not fit in."""

    def __str__(self) -> str:
        head = f"{self.kind}: {self.cluster} {self.bundle}: {self.detail}"
        return "\n".join([head, *(f"  {_told(change)}" for change in self.story)])


def told_record(record: Record) -> str:
    """``5.7 Releasing a:8080 -> b:8080``."""
    names = " -> ".join(name for name in (record.owner, record.destination) if name)
    return " ".join(filter(None, (told_epoch(record.epoch), record.state, names)))


def told_epoch(epoch: Epoch) -> str:
    """``5.7``."""
    return f"{epoch.generation}.{epoch.counter}"


def _told(change: Change) -> str:
    record = change.record
    return f"{change.event}: {told_record(record)} at {record.since} by {record.by or 'nobody'}"
