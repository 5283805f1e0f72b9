"""Split a value too large for one Kafka record into several: slices in order, under the same key.

A header on each gives the generation of the job, the slice's number and how many there are. A job
that dies between two leaves the first ones; the job that repeats the batch starts again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

HEADER: Final = "trimtab-piece"

PIECE: Final = 1 << 19
"""Maximum bytes of a slice: a record stays well below a topic's default limit."""

_PLACE: Final = re.compile(rb"(\d{1,19})/(\d{1,9})/(\d{1,9})")

Headers = Sequence[tuple[str, bytes | None]]


class Whole(NamedTuple):
    """A complete value, and the offset of its first record."""

    value: bytes
    offset: int


def slices(value: bytes) -> Iterator[bytes]:
    """Cut ``value`` into slices of at most PIECE bytes; at least one."""
    for start in range(0, max(len(value), 1), PIECE):
        yield value[start : start + PIECE]


def pieces(value: bytes, generation: int) -> Iterator[tuple[bytes, tuple[tuple[str, bytes], ...]]]:
    """The records' values with their headers; a value that fits is one record without a header."""
    parts = list(slices(value))
    for number, part in enumerate(parts):
        header = f"{generation}/{number}/{len(parts)}".encode()
        yield part, ((HEADER, header),) if len(parts) > 1 else ()


@dataclass(slots=True)
class _Begun:
    of: int
    offset: int
    parts: list[bytes]


@dataclass(slots=True)
class Joiner:
    """Puts the slices together again; give it a partition's records in their order."""

    _begun: dict[tuple[bytes, bytes], _Begun] = field(default_factory=dict)

    def take(self, key: bytes, value: bytes, headers: Headers, offset: int) -> Whole | None:
        """The value that this record completes, if any."""
        header = next((each for name, each in headers if name == HEADER), None)
        if header is None:
            return Whole(value, offset)
        if (placed := _PLACE.fullmatch(header)) is None:
            return None
        generation, number, of = placed[1], int(placed[2]), int(placed[3])
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
