"""Short names for bundles: b0 is the first of the equal ranges of the namespace t/b."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from trimtab.store.ring import equal_edges

_BUNDLE = re.compile(r"t/[a-z]+/0x[0-9a-f]{8}_0x[0-9a-f]{8}")


class Names:
    """Both ways; what is split or merged later is added."""

    def __init__(self, shorts: Iterable[str]) -> None:
        """Each namespace is as large as the highest number that it has needs."""
        self._short: dict[str, str] = {}
        self._real: dict[str, str] = {}
        counts: dict[str, int] = {}
        for short in shorts:
            letter, number = short[0], int(short[1:])
            counts[letter] = max(counts.get(letter, 0), number + 1)
        for letter, count in counts.items():
            for number, (low, high) in enumerate(pairwise(equal_edges(count))):
                self._add(f"t/{letter}/0x{low:08x}_0x{high:08x}", f"{letter}{number}")
        self._counts = counts

    def legend(self) -> list[str]:
        """What the names that a story begins with stand for."""
        return [
            f"{letter}0 is {self._real[f'{letter}0']}, the first of {count} equal ranges"
            if count > 1
            else f"{letter}0 is {self._real[f'{letter}0']}"
            for letter, count in self._counts.items()
        ]

    def real(self, short: str) -> str:
        """The bundle's own name; a broker's is the same."""
        return self._real.get(short, short)

    def short(self, text: str) -> str:
        """A sentence with the short names in place of the bundles' own."""
        return _BUNDLE.sub(lambda found: self._short.get(found[0], found[0]), text)

    def note_split(self, whole: str, parts: Sequence[str]) -> None:
        for number, part in enumerate(parts):
            self._add(part, f"{self._short[whole]}.{number}")

    def note_merge(self, parts: Sequence[str], whole: str) -> None:
        self._add(whole, "+".join(self._short[part] for part in parts))

    def _add(self, real: str, short: str) -> None:
        self._short.setdefault(real, short)
        self._real[short] = real
