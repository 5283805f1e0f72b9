"""A value too large for one Kafka record as several: its slices, in order, under the same key.

A header of each says of which generation's job it is, which slice, and of how many. A job that dies
between two leaves a beginning; whoever repeats the batch begins again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

HEADER: Final = "trimtab-piece"

PIECE: Final = 1 << 19
"""Bytes of a slice at most: a record stays well below what a topic takes by default."""

Headers = Sequence[tuple[str, bytes | None]]


class Whole(NamedTuple):
    """A value, and the offset of its first record."""

    value: bytes
    offset: int


def slices(value: bytes) -> Iterator[bytes]:
    """At least one, each PIECE bytes at most."""
    for start in range(0, max(len(value), 1), PIECE):
        yield value[start : start + PIECE]


def pieces(value: bytes, generation: int) -> Iterator[tuple[bytes, tuple[tuple[str, bytes], ...]]]:
    """The records' values with their headers; a value that fits is one record without a header."""
    parts = list(slices(value))
    for number, part in enumerate(parts):
        told = f"{generation}/{number}/{len(parts)}".encode()
        yield part, ((HEADER, told),) if len(parts) > 1 else ()


@dataclass(slots=True)
class _Begun:
    of: int
    offset: int
    parts: list[bytes]


@dataclass(slots=True)
class Joiner:
    """Makes them whole again; give it a partition's records in their order."""

    _begun: dict[tuple[bytes, bytes], _Begun] = field(default_factory=dict)

    def take(self, key: bytes, value: bytes, headers: Headers, offset: int) -> Whole | None:
        """What this record completes, if anything."""
        told = next((each for name, each in headers if name == HEADER), None)
        if told is None:
            return Whole(value, offset)
        generation, _, place = told.partition(b"/")
        number, of = (int(each) for each in place.split(b"/"))
        begun = self._begun.pop((key, generation), None)
        if number == 0:
            begun = _Begun(of, offset, [])
        if begun is None or (len(begun.parts), begun.of) != (number, of):
            return None
        begun.parts.append(value)
        if len(begun.parts) == of:
            return Whole(b"".join(begun.parts), begun.offset)
        self._begun[key, generation] = begun
        return None
