"""The rows of one batch, sorted and parsed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from trimtab.wire.intent import Intent, decode_intent
from trimtab.wire.ownership import Change, decode_change
from trimtab.wire.rows import Row, Tag, parse_rows


class Batch(NamedTuple):
    """The rows of one batch, parsed."""

    intents: list[tuple[Intent, Row]]
    """Each with its row, in the order to apply them."""
    changes: list[Change]
    reports: list[Row]
    """A row for each broker that reported, with its snapshot or its latest figures if those
    changed."""
    snapshots: dict[str, Row]
    """Those that changed, by broker."""
    letters: list[Row]
    """The dead letters of operator ①, then those of the records that do not parse."""
    has_input: bool
    """Whether there is anything but operator ①'s dead letters."""


def parse_batch(rows: Iterable[Row]) -> Batch:
    """Sort and parse a batch's rows."""
    by_tag: dict[str, list[Row]] = {tag: [] for tag in Tag}
    for row in rows:
        by_tag[row.tag].append(row)
    intents, letters = list[tuple[Intent, Row]](), by_tag[Tag.DEAD_LETTER]
    # The engine guarantees no order within a batch; LogAppendTime and the position give one.
    for row in sorted(by_tag[Tag.INTENT], key=_order):
        parsed, rejected = parse_rows([row], decode_intent)
        intents += [(intent, row) for intent in parsed]
        letters += rejected
    # A tombstone only serves compaction; the change before it says what was removed.
    written = [row for row in by_tag[Tag.CHANGE] if row.payload]
    changes, rejected = parse_rows(written, decode_change)
    reports = by_tag[Tag.SNAPSHOT] + by_tag[Tag.LATEST]
    return Batch(
        intents=intents,
        changes=changes,
        reports=reports,
        snapshots={row.subject: row for row in reports if row.payload},
        letters=letters + rejected,
        has_input=bool(reports or by_tag[Tag.INTENT] or by_tag[Tag.CHANGE]),
    )


def _order(row: Row) -> tuple[int, str, int]:
    place, offset = row.subject.rsplit("/", 1)
    return row.appended_ms, place, int(offset)
