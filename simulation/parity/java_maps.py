"""The iteration order of Java's hash maps, which breaks ties and orders sums in Pulsar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trimtab.view import is_monitoring

_Bin = list[tuple[int, str]]


def java_hash(text: str) -> int:
    """``String.hashCode()`` as an unsigned 32-bit number."""
    h = 0
    data = text.encode("utf-16-be")
    for high, low in zip(data[::2], data[1::2], strict=True):
        h = (31 * h + (high << 8 | low)) & 0xFFFFFFFF
    return h


def _spread(key: str) -> int:
    h = java_hash(key)
    return h ^ (h >> 16)


class HashMap:
    """The key order of ``java.util.HashMap`` (bins are never trees here)."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._bins: list[_Bin] = [[] for _ in range(16)]
        for key in keys:
            self.put(key)

    def put(self, key: str) -> None:
        h = self._hash(key)
        chain = self._bins[h & (len(self._bins) - 1)]
        if (h, key) not in chain:
            chain.append((h, key))
            while self._full():
                self._bins = self._doubled()

    def retain(self, keys: Iterable[str]) -> None:
        """Remove all but ``keys``; the table keeps its size, as Java's does."""
        kept = set(keys)
        self._bins = [[entry for entry in chain if entry[1] in kept] for chain in self._bins]

    def __iter__(self) -> Iterator[str]:
        return (key for chain in self._bins for _, key in chain)

    def __len__(self) -> int:
        return sum(map(len, self._bins))

    def _hash(self, key: str) -> int:
        return _spread(key)

    def _full(self) -> bool:
        return len(self) > len(self._bins) * 3 // 4

    def _doubled(self) -> list[_Bin]:
        mask = len(self._bins) * 2 - 1
        bins: list[_Bin] = [[] for _ in range(mask + 1)]
        for chain in self._bins:
            for h, key in chain:
                bins[h & mask].append((h, key))
        return bins


class ConcurrentHashMap(HashMap):
    """``java.util.concurrent.ConcurrentHashMap`` filled by one thread."""

    def _hash(self, key: str) -> int:
        return _spread(key) & 0x7FFFFFFF

    def _full(self) -> bool:
        return len(self) >= len(self._bins) - (len(self._bins) >> 2)

    def _doubled(self) -> list[_Bin]:
        size = len(self._bins)
        bins: list[_Bin] = [[] for _ in range(size * 2)]
        for index, chain in enumerate(self._bins):
            if chain:
                bins[index], bins[index + size] = _split(chain, size)
        return bins


def _split(chain: _Bin, bit: int) -> tuple[_Bin, _Bin]:
    """Split a bin: the last run to one side keeps its order, earlier keys go in front of it."""
    last = 0
    for index in range(1, len(chain)):
        if chain[index][0] & bit != chain[index - 1][0] & bit:
            last = index
    low: _Bin = []
    high: _Bin = []
    (high if chain[last][0] & bit else low).extend(chain[last:])
    for entry in chain[:last]:
        (high if entry[0] & bit else low).insert(0, entry)
    return low, high


def shedding_order(bundles: Iterable[str]) -> list[str]:
    """Bundles in the order in which the shedders see them, from LoadData's map."""
    return list(HashMap(bundle for bundle in bundles if not is_monitoring(bundle)))
