"""Names of very many bundles in few bytes: a namespace's row and a range, spelt out when asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import compress
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from trimtab.model import HashRange, InvalidName, parse_bundle

Ranges = NDArray[np.uint32]

_DIGITS: Final = np.concatenate((np.arange(-19, -11), np.arange(-8, 0)))
"""Where the hexadecimal digits of a range stand, from the end of a bundle's name."""

_PLACES: Final = 16 ** np.arange(7, -1, -1, dtype=np.int64)


class PackedNames(Sequence[str]):
    """``namespace`` (m,) rows of ``namespaces``, ``ranges`` (2, m) low and high ends."""

    def __init__(
        self, namespaces: tuple[str, ...], namespace: NDArray[np.int32], ranges: Ranges
    ) -> None:
        self._namespaces, self._namespace, self._ranges = namespaces, namespace, ranges

    def __len__(self) -> int:
        return len(self._namespace)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        if isinstance(at, slice):
            return tuple(map(self.__getitem__, range(len(self))[at]))
        low, high = self._ranges[:, at].tolist()
        return f"{self._namespaces[self._namespace[at]]}/{HashRange(low, high)}"

    def __iter__(self) -> Iterator[str]:
        spaces = map(self._namespaces.__getitem__, self._namespace.tolist())
        return (
            f"{space}/{HashRange(low, high)}"
            for space, low, high in zip(spaces, *self._ranges.tolist(), strict=True)
        )

    def kept(self, mask: NDArray[np.bool_]) -> PackedNames:
        """The names of the rows in ``mask``."""
        return PackedNames(self._namespaces, self._namespace[mask], self._ranges[:, mask])

    def rows_of(self, wanted: Iterable[str]) -> list[int]:
        """The rows of those ``wanted`` names that are here, ascending."""
        row_of = {name: row for row, name in enumerate(self._namespaces)}
        keys = {
            (row_of[namespace], *span) for namespace, span in _parsed(wanted) if namespace in row_of
        }
        if not keys:
            return []
        spaces, lows, _ = np.array(sorted(keys), dtype=np.int64).T
        touched = np.zeros(len(self._namespaces), dtype=np.bool_)
        touched[spaces] = True
        rows = np.flatnonzero(touched[self._namespace])
        low = self._ranges[0, rows].astype(np.int64)
        found = np.isin(self._namespace[rows].astype(np.int64) << 32 | low, spaces << 32 | lows)
        return [row for row in rows[found].tolist() if self._key(row) in keys]

    def _key(self, row: int) -> tuple[int, int, int]:
        low, high = self._ranges[:, row].tolist()
        return int(self._namespace[row]), low, high


def _parsed(names: Iterable[str]) -> Iterator[tuple[str, HashRange]]:
    for name in names:
        try:
            yield parse_bundle(name)
        except InvalidName:
            continue


def ranges_of(names: str) -> Ranges:
    """(2, k) the ranges of k bundles' names, one a line, which were checked before."""
    if not names:
        return np.zeros((2, 0), dtype=np.uint32)
    text = np.frombuffer(f"{names}\n".encode(), dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    digits = text[ends[:, np.newaxis] + _DIGITS].astype(np.int64)
    digits -= np.where(digits >= ord("a"), ord("a") - 10, ord("0"))
    ranges: Ranges = (digits.reshape(-1, 2, 8) @ _PLACES).T.astype(np.uint32)
    return ranges


def rows_of(names: Sequence[str], wanted: Collection[str]) -> list[int]:
    """The rows of those ``wanted`` names that are in ``names``, ascending."""
    if not wanted:
        return []
    if isinstance(names, PackedNames):
        return names.rows_of(wanted)
    return [row for row, name in enumerate(names) if name in wanted]


def kept(names: Sequence[str], mask: NDArray[np.bool_]) -> Sequence[str]:
    """The names of the rows in ``mask``."""
    if isinstance(names, PackedNames):
        return names.kept(mask)
    return tuple(compress(names, mask.tolist()))
