"""Decodes records that others wrote one by one: an unreadable one does not affect the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from trimtab.wire.ownership import Record

ALL = "*"
"""Listed as unreadable for a whole text in which no record could be found."""


class Readable(NamedTuple):
    """Bundle to record, and the names of bundles whose record is unreadable; where a name is not
    text, the repr of its bytes."""

    records: dict[str, Record]
    unreadable: tuple[str, ...] = ()


class _Assertion(msgspec.Struct, frozen=True):
    """`trimtab.wire.assertion.Assertion` with undecoded records."""

    records: dict[str, msgspec.Raw]


_record = msgspec.json.Decoder(Record)
_assertion = msgspec.json.Decoder(_Assertion)

MALFORMED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors from decoding a text of unknown origin."""


def readable_record(text: bytes) -> Record | None:
    """Decode one record; None if it cannot be read."""
    try:
        return _record.decode(text)
    except MALFORMED:
        return None


def readable(texts: Iterable[tuple[bytes, bytes]]) -> Readable:
    """Decode pairs of a bundle's name and its record as JSON."""
    records: dict[str, Record] = {}
    unreadable: list[str] = []
    for name, text in texts:
        try:
            bundle = name.decode()
        except UnicodeDecodeError:
            unreadable.append(repr(name))
            continue
        try:
            records[bundle] = _record.decode(text)
        except MALFORMED:
            unreadable.append(bundle)
    return Readable(records, tuple(unreadable))


def readable_assertion(text: bytes) -> Readable:
    """Decode a broker's assertion."""
    try:
        said = _assertion.decode(text)
    except MALFORMED:
        return Readable({}, (ALL,))
    return readable((name.encode(), bytes(raw)) for name, raw in said.records.items())
