"""One thread asks, others wait for its answer (ExtensibleLoadManagerImpl.dedupeLookupRequest)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Deduplicates calls with the same key; any number of threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[K, Future[V]] = {}

    def run(self, key: K, work: Callable[[], V]) -> V:
        """Return or raise the result of ``work``, run here or already running for ``key``."""
        with self._lock:
            under_way = self._flights.get(key)
            if under_way is None:
                mine = self._flights[key] = Future()
        if under_way is not None:
            return under_way.result()
        try:
            value = work()
        except BaseException as error:
            self._land(key)
            mine.set_exception(error)
            raise
        self._land(key)
        mine.set_result(value)
        return value

    def _land(self, key: K) -> None:
        # Before the answer is returned: later callers get a newer one.
        with self._lock:
            del self._flights[key]
