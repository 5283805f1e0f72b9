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
from dataclasses import dataclass, field
from typing import Final

from trimtab.state.copied_pages import CopiedPages
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
    digests: dict[str, bytes] = field(default_factory=dict)
    """Of these pages, by name; earlier versions had none."""


class MemoryStore:
    """The memory of one cluster at a time: load it, then save it."""

    def __init__(
        self, pages: MutableMapping[str, bytes], copies: MutableMapping[str, bytes] | None = None
    ) -> None:
        """``pages`` may have others too, whose names begin otherwise. ``copies``: of all but the
        first page."""
        self._pages, self._copied = pages, CopiedPages(pages, copies)
        self._head = Head(b"")

    def load(self) -> tuple[Memory, bool]:
        """The memory, and whether `recall` reads the rest of it."""
        stored = self._pages.get(_REST)
        self._head = unpack(stored, Head) if stored else Head(b"")
        if not stored:
            return Memory(), False
        more = self._read(_REST, self._head.more)
        return unpack(self._head.memory + more, Memory), True

    def recall(self) -> Learnt:
        """What the rounds of the loaded memory have learnt."""
        learnt = self._read(_LEARNT, self._head.learnt)
        return unpack(learnt, Learnt) if learnt else Learnt()

    def save(self, memory: Memory, learnt: bytes | None) -> None:
        """Store the memory; ``learnt`` is what a round has just learnt, packed, or None."""
        packed, head = pack(set_apart(memory)[0]), self._head
        count, digests = head.learnt, dict(head.digests)
        if learnt is not None:
            count = self._write(_LEARNT, compress(learnt), count, digests)
        more = self._write(_REST, packed[PAGE:], head.more, digests)
        self._head = Head(packed[:PAGE], more, count, digests)
        self._pages[_REST] = pack(self._head)

    def _read(self, part: str, count: int) -> bytes:
        # One by one: an iterator's answer holds many at once.
        names = (f"{part}/{number}" for number in range(count))
        digests = self._head.digests
        return b"".join(self._copied.read(name, digests.get(name, b"")) for name in names)

    def _write(self, part: str, value: bytes, before: int, digests: dict[str, bytes]) -> int:
        """Write the pages that changed, and delete those of the ``before`` that are no more;
        returns how many there are."""
        starts = range(0, len(value), PAGE)
        names = [f"{part}/{number}" for number in range(max(before, len(starts)))]
        for name, start in zip(names, starts, strict=False):
            page = value[start : start + PAGE]
            digests[name] = self._copied.write(name, page, digests.get(name, b""))
        for name in names[len(starts) :]:
            self._copied.delete(name)
            digests.pop(name, None)
        return len(starts)
