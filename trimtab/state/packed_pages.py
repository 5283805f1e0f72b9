"""Packed values by name, kept in pages: what is written together lies together.

A message to Spark's state server costs as much as a report, so a message for each snapshot would
double the cost of a large fleet's batch. Brokers report at intervals: those of one batch also
reported together before, so few pages have all of their snapshots. Set in the order of the reports,
they lie in that order, and all but the first and the last page are read for brokers of one batch.
The ownership records of a namespace are far smaller than a message is worth, and at a start a batch
changes those of thousands of namespaces.

save():
  what was set goes to new pages, and its place in the old ones counts no more
  a page of which a quarter or less counts moves along, so that little is kept for nothing
  a page that is no larger than what moves already moves along too, if both fit a page, so that
    there are few small pages, and each snapshot moves few times
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Final

from trimtab.state.copied_pages import CopiedPages
from trimtab.wire.columns import pack, unpack

PAGE: Final = 1 << 17
"""Bytes. Larger: more is read for one value; smaller: more messages."""

SNAPSHOTS: Final = "snapshots"
LATEST: Final = "latest"
NAMESPACES: Final = "namespaces"
"""The pages of brokers' snapshots, of their latest figures, and of namespaces' records."""

_SPARSE: Final = 4
"""A page moves once no more than one in so many of its values counts."""


@dataclass(slots=True)
class Page:
    """What the index has of a page."""

    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each of its values that counts, by name."""
    written: int = 0
    """How many values it has."""
    digest: bytes = b""
    """Of the whole page; earlier versions had none."""

    @property
    def size(self) -> int:
        """Bytes of those that count."""
        return sum(self.sizes.values())


class PackedPages(MutableMapping[str, bytes]):
    """Name to packed value; what is changed is stored by `save`. Nothing is read before it is asked
    for."""

    def __init__(
        self,
        pages: MutableMapping[str, bytes],
        index: str = SNAPSHOTS,
        before: MutableMapping[str, bytes] | None = None,
        copies: MutableMapping[str, bytes] | None = None,
    ) -> None:
        """``index``: the name of the page that lists the others, which are called after it and
        numbered. ``pages`` may have others too, whose names begin otherwise. ``before``: where
        earlier versions kept the values; they move here once one is asked for. ``copies``: of the
        pages, except the index."""
        self._pages, self._index, self._before = pages, index, before
        self._copied = CopiedPages(pages, copies)
        self._read: dict[str, Mapping[str, bytes]] = {}
        self._set: dict[str, bytes] = {}
        self._changed = False

    @cached_property
    def _listed(self) -> dict[str, Page]:
        packed = self._pages.get(self._index)
        if packed is not None:
            self._before = None
            return unpack(packed, dict[str, Page])
        if self._before:
            self._set, self._changed = dict(self._before.items()), True
        return {}

    @cached_property
    def _where(self) -> dict[str, str]:
        return {name: at for at, page in self._listed.items() for name in page.sizes}

    def __getitem__(self, name: str) -> bytes:
        at = self._where.get(name)
        return self._set[name] if at is None else self._page(at)[name]

    def __setitem__(self, name: str, payload: bytes) -> None:
        self._take_out(name)
        self._set[name] = payload
        self._changed = True

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._take_out(name)
        self._set.pop(name, None)
        self._changed = True

    def __contains__(self, name: object) -> bool:
        return name in self._where or name in self._set

    def __iter__(self) -> Iterator[str]:
        yield from self._where
        yield from self._set

    def __len__(self) -> int:
        return len(self._where) + len(self._set)

    def save(self) -> None:
        """Store what has changed."""
        if not self._changed:
            return
        emptied = {at for at, page in self._listed.items() if not page.sizes}
        moved = self._find_moved()
        moving = self._set | {name: self[name] for at in moved for name in self._listed[at].sizes}
        for at in emptied.union(moved):
            del self._listed[at]
        free = (at for at in map(f"{self._index}/{{}}".format, count()) if at not in self._listed)
        for content, at in zip(_cut(moving), free, strict=False):
            digest = self._copied.write(at, pack(content))
            self._read[at] = content
            sizes = {name: len(content[name]) for name in content}
            self._listed[at] = Page(sizes, len(content), digest)
            self._where |= dict.fromkeys(content, at)
        for at in emptied.union(moved) - self._listed.keys():
            self._copied.delete(at)
        self._pages[self._index] = pack(self._listed)
        if self._before:
            self._before.clear()
        self._set, self._changed, self._before = {}, False, None

    def _find_moved(self) -> list[str]:
        """The pages of which what counts is written again."""
        moved, size = list[str](), sum(map(len, self._set.values()))
        pages = ((page.size, at) for at, page in self._listed.items() if page.sizes)
        for more, at in sorted(pages):
            sparse = len(self._listed[at].sizes) * _SPARSE <= self._listed[at].written
            if sparse or (more <= size and more + size <= PAGE):
                moved.append(at)
                size += more
        return moved

    def _page(self, at: str) -> Mapping[str, bytes]:
        if at not in self._read:
            page = self._copied.read(at, self._listed[at].digest)
            self._read[at] = unpack(page, dict[str, bytes])
        return self._read[at]

    def _take_out(self, name: str) -> None:
        at = self._where.pop(name, None)
        if at is not None:
            del self._listed[at].sizes[name]


def _cut(values: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    """The values in their order, by the page; a larger one has a page to itself."""
    page, size = dict[str, bytes](), 0
    for name, payload in values.items():
        if page and size + len(payload) > PAGE:
            yield page
            page, size = {}, 0
        page[name] = payload
        size += len(payload)
    if page:
        yield page
