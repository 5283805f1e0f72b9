"""A cluster's memory in Spark's state: what rounds have learnt is read only when it is needed, and
of large values only the pages that changed are written.

Spark's state server holds a whole message in its heap several times, and writes whole values: one
of a hundred megabytes in every batch ends a driver of 1 GiB.

memory   = Head: the first page of the Memory without what its rounds have learnt
memory/n = the other pages of that
learnt/n = what the rounds have learnt, compressed

What is not learnt is not compressed: then a small change of it would change every later page. Of
what rounds have learnt each changes most.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Final

from trimtab.state.memory import Learnt, Memory, set_apart
from trimtab.wire.columns import compress, pack, unpack

PAGE: Final = 1 << 20
"""Bytes. Smaller: more round trips to the state server; larger: more is written for a change."""

_REST, _LEARNT = "memory", "learnt"


@dataclass(frozen=True, slots=True)
class Head:
    """The value that every batch reads."""

    memory: bytes
    """The first page of the packed Memory."""
    more: int = 0
    """Its other pages."""
    learnt: int = 0
    """Pages of what its rounds have learnt."""


class MemoryStore:
    """The memory of one cluster at a time: load it, then save it."""

    def __init__(self, pages: MutableMapping[str, bytes]) -> None:
        """``pages`` may have others too, whose names begin otherwise."""
        self._pages = pages
        self._head = Head(b"")
        self._more = self._learnt = b""

    def load(self) -> tuple[Memory, bool]:
        """The memory, and whether `recall` reads the rest of it."""
        stored = self._pages.get(_REST)
        self._head, self._more, self._learnt = Head(b""), b"", b""
        if not stored:
            return Memory(), False
        self._head = unpack(stored, Head)
        self._more = self._read(_REST, self._head.more)
        return unpack(self._head.memory + self._more, Memory), True

    def recall(self) -> Learnt:
        """What the rounds of the loaded memory have learnt."""
        self._learnt = self._read(_LEARNT, self._head.learnt)
        return unpack(self._learnt, Learnt) if self._learnt else Learnt()

    def save(self, memory: Memory, learnt: bytes | None) -> None:
        """Store the memory; ``learnt`` is what a round has just learnt, packed, or None."""
        packed, count = pack(set_apart(memory)[0]), self._head.learnt
        if learnt is not None:
            count = self._write(_LEARNT, compress(learnt), self._learnt)
        more = self._write(_REST, packed[PAGE:], self._more)
        self._pages[_REST] = pack(Head(packed[:PAGE], more, count))

    def _read(self, part: str, count: int) -> bytes:
        # One by one: an iterator's answer holds many at once.
        return b"".join(self._pages[f"{part}/{number}"] for number in range(count))

    def _write(self, part: str, value: bytes, before: bytes) -> int:
        """Write the pages that differ from ``before``; returns how many there are."""
        starts = range(0, len(value), PAGE)
        for number, start in enumerate(starts):
            page = value[start : start + PAGE]
            if page != before[start : start + PAGE]:
                self._pages[f"{part}/{number}"] = page
        for number in range(len(starts), len(range(0, len(before), PAGE))):
            del self._pages[f"{part}/{number}"]
        return len(starts)
