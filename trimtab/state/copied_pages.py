"""Pages of state, with copies that are cheaper to read.

To read a page from Spark's state costs two processes ten times as much as to read a file: the state
server finds it, and sends it as a text. So a page that is written is also kept nearby, and its
digest with whatever names the page. A copy counts only if it has that digest: one that is missing,
of another attempt or damaged costs time and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping
from typing import Final

_DIGEST_BYTES: Final = 16


class CopiedPages:
    """Pages by name; who reads one must know the digest that it was written with."""

    def __init__(
        self, pages: MutableMapping[str, bytes], copies: MutableMapping[str, bytes] | None = None
    ) -> None:
        """``copies``: without them each page is read from ``pages``."""
        self._pages = pages
        self._copies = {} if copies is None else copies

    def read(self, name: str, digest: bytes) -> bytes:
        """The page; an empty ``digest`` is that of a page that earlier versions wrote. Raises
        KeyError where there is none."""
        copy = self._copies.get(name) if digest else None
        return copy if copy is not None and _digest(copy) == digest else self._pages[name]

    def write(self, name: str, page: bytes, before: bytes = b"") -> bytes:
        """Write the page and return its digest; if that is as ``before``, it is there already."""
        digest = _digest(page)
        if digest != before:
            self._pages[name] = self._copies[name] = page
        return digest

    def delete(self, name: str) -> None:
        """Delete the page and its copy; raises KeyError where there is none."""
        del self._pages[name]
        self._copies.pop(name, None)


def _digest(page: bytes) -> bytes:
    return hashlib.sha256(page).digest()[:_DIGEST_BYTES]
