"""Which of the bundles loaded here holds a topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from trimtab.model import HashRange, parse_bundle
from trimtab.store.lookup import parse_topic
from trimtab.store.ring import clamped_position


@lru_cache(maxsize=1 << 16)
def place_of(topic: str) -> tuple[str, int]:
    """A topic's namespace, and its position on the ring; raises InvalidName."""
    name, namespace = parse_topic(topic)
    return namespace, clamped_position(name)


class Places:
    """A fixed set of bundles; a change of the set is a new value, so any thread may read."""

    def __init__(self, bundles: Iterable[str] = ()) -> None:
        self.bundles = frozenset(bundles)
        self._ranges: defaultdict[str, list[tuple[HashRange, str]]] = defaultdict(list)
        for bundle in self.bundles:
            namespace, span = parse_bundle(bundle)
            self._ranges[namespace].append((span, bundle))

    def bundle_of(self, topic: str) -> str | None:
        """The bundle, None if it is not loaded; raises InvalidName."""
        namespace, where = place_of(topic)
        for (low, high), bundle in self._ranges.get(namespace, ()):
            if low <= where < high:
                return bundle
        return None
