"""Compact names of very many bundles: a namespace row and a range; strings are built on demand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import compress
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from trimtab.model import HashRange, InvalidName, parse_bundle

Ranges = NDArray[np.uint32]

_DIGITS: Final = np.concatenate((np.arange(-19, -11), np.arange(-8, 0)))
"""Positions of the hexadecimal digits of a range, from the end of a bundle's name."""

_FACTORS: Final = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
"""The multipliers of MurmurHash3's finaliser."""

_PLACES: Final = 16 ** np.arange(7, -1, -1, dtype=np.int64)
"""The value of each of eight hexadecimal digits, highest first."""


class PackedNames(Sequence[str]):
    """The names of m bundles: ``namespace`` (m,) rows of ``namespaces``, ``ranges`` (2, m) low and
    high ends."""

    def __init__(
        self, namespaces: tuple[str, ...], namespace: NDArray[np.int32], ranges: Ranges
    ) -> None:
        self._namespaces, self._namespace, self._ranges = namespaces, namespace, ranges
        self._built: dict[int, str] = {}
        """Row to name, of those asked for: a round asks several times for a moved bundle."""

    def __len__(self) -> int:
        return len(self._namespace)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        if isinstance(at, slice):
            return tuple(map(self.__getitem__, range(len(self))[at]))
        built = self._built.get(at)
        if built is None:
            low, high = self._ranges[:, at].tolist()
            built = f"{self._namespaces[self._namespace[at]]}/{HashRange(low, high)}"
            self._built[at] = built
        return built

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
        """The rows of the ``wanted`` names that are present, ascending."""
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

    def ranges_at(self, rows: NDArray[np.int64]) -> Ranges:
        """(2, k) the ranges of the names in these rows."""
        return self._ranges[:, rows]

    def identities(self) -> NDArray[np.uint64]:
        """See `identities`, the function."""
        spaces = _digests("\n".join(self._namespaces))
        return _mixed(spaces[self._namespace], self._ranges.astype(np.uint64))

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
    """(2, k) the ranges of k valid bundle names, given one per line."""
    if not names:
        return np.zeros((2, 0), dtype=np.uint32)
    text = np.frombuffer(f"{names}\n".encode(), dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    digits = text[ends[:, np.newaxis] + _DIGITS].astype(np.int64)
    digits -= np.where(digits >= ord("a"), ord("a") - 10, ord("0"))
    ranges: Ranges = (digits.reshape(-1, 2, 8) @ _PLACES).T.astype(np.uint32)
    return ranges


def ranges_at(names: Sequence[str], rows: NDArray[np.int64]) -> Ranges:
    """(2, k) the ranges of the names in these rows."""
    if isinstance(names, PackedNames):
        return names.ranges_at(rows)
    spans = [parse_bundle(names[row])[1] for row in rows.tolist()]
    return np.array(spans, dtype=np.uint32).reshape(-1, 2).T


def rows_of(names: Sequence[str], wanted: Collection[str]) -> list[int]:
    """The rows of the ``wanted`` names that are in ``names``, ascending."""
    if not wanted:
        return []
    if isinstance(names, PackedNames):
        return names.rows_of(wanted)
    return [row for row, name in enumerate(names) if name in wanted]


def rows_by_name(names: Sequence[str], wanted: Collection[str]) -> dict[str, int]:
    """The same, each by its name."""
    return {names[row]: row for row in rows_of(names, wanted)}


def identities(names: Sequence[str]) -> NDArray[np.uint64]:
    """(m,) a 64-bit hash of each bundle's name: in a fleet of a million, two are equal with a
    probability of 3e-8."""
    if isinstance(names, PackedNames):
        return names.identities()
    parsed = [parse_bundle(name) for name in names]
    ranges = np.array([span for _, span in parsed], dtype=np.uint64).reshape(-1, 2).T
    return _mixed(np.array([_digest(space) for space, _ in parsed], np.uint64), ranges)


def _mixed(spaces: NDArray[np.uint64], ranges: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread each bit of the ranges over all bits (the finaliser of MurmurHash3)."""
    mixed = spaces ^ (ranges[0] << np.uint64(32) | ranges[1])
    for factor in _FACTORS:
        mixed = (mixed ^ mixed >> np.uint64(33)) * factor
    spread: NDArray[np.uint64] = mixed ^ mixed >> np.uint64(33)
    return spread


@lru_cache(maxsize=2)
def _digests(namespaces: str) -> NDArray[np.uint64]:
    """(k,) of the ``namespaces``, one per line; a cluster mostly has those of its last round."""
    digests = np.array([_digest(namespace) for namespace in namespaces.split("\n")], np.uint64)
    digests.flags.writeable = False
    return digests


@lru_cache(maxsize=1 << 16)
def _digest(namespace: str) -> int:
    return int.from_bytes(blake2b(namespace.encode(), digest_size=8).digest())


def kept(names: Sequence[str], mask: NDArray[np.bool_]) -> Sequence[str]:
    """The names of the rows in ``mask``."""
    if isinstance(names, PackedNames):
        return names.kept(mask)
    return tuple(compress(names, mask.tolist()))
