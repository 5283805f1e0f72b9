"""A finding as text."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.auditing.rules import ViolationKind
from trimtab.model import Epoch
from trimtab.wire.ownership import Change, Record


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule. ``bundle`` is a namespace if INCOMPLETE."""

    kind: ViolationKind
    cluster: str
    bundle: str
    detail: str
    story: tuple[Change, ...] = ()
    """The last changes of the bundle, ascending; then the one that does not fit, if any."""

    def __str__(self) -> str:
        head = f"{self.kind}: {self.cluster} {self.bundle}: {self.detail}"
        return "\n".join([head, *(f"  {_text_of(change)}" for change in self.story)])


def format_record(record: Record) -> str:
    """A record as ``5.7 Releasing a:8080 -> b:8080``."""
    names = " -> ".join(name for name in (record.owner, record.destination) if name)
    return " ".join(filter(None, (format_epoch(record.epoch), record.state, names)))


def format_epoch(epoch: Epoch) -> str:
    """An epoch as ``5.7``."""
    return f"{epoch.generation}.{epoch.counter}"


def _text_of(change: Change) -> str:
    record = change.record
    return f"{change.event}: {format_record(record)} at {record.since} by {record.by or 'nobody'}"
