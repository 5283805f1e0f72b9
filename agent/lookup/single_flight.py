"""One asks, the others wait for its answer, as in ExtensibleLoadManagerImpl.dedupeLookupRequest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[K, Future[V]] = {}

    def run(self, key: K, work: Callable[[], V]) -> V:
        """What ``work`` returns or raises, in this thread or in one that is at it for ``key``."""
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
        # Before the answer is handed out: who asks after that gets a newer one.
        with self._lock:
            del self._flights[key]
