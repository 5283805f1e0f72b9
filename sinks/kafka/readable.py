"""Records that others wrote, one by one: what cannot be read costs no other record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from trimtab.wire.ownership import Record

ALL = "*"
"""Stands among the unreadable for a whole text that no record could be found in."""


class Readable(NamedTuple):
    """Bundle to record, and the names of those that cannot be read: of a bundle that may be one,
    or a name that is no text as Python writes its bytes."""

    records: dict[str, Record]
    unreadable: tuple[str, ...] = ()


class _Assertion(msgspec.Struct, frozen=True):
    """`trimtab.wire.assertion.Assertion` with its records as they are."""

    records: dict[str, msgspec.Raw]


_record = msgspec.json.Decoder(Record)
_assertion = msgspec.json.Decoder(_Assertion)

MALFORMED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises of a text that anybody may have written."""


def readable(texts: Iterable[tuple[bytes, bytes]]) -> Readable:
    """Of pairs of a bundle's name and its record as JSON."""
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
    """Of what a broker said."""
    try:
        said = _assertion.decode(text)
    except MALFORMED:
        return Readable({}, (ALL,))
    return readable((name.encode(), bytes(raw)) for name, raw in said.records.items())
