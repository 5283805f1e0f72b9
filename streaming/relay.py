"""A thread that carries the ownership journal from Redis to Kafka while the job runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from sinks.errors import SinkError
from sinks.journal_relay import JournalRelay
from streaming.exposition import Exposition
from trimtab import metrics

log = structlog.get_logger()

_PAUSE_SECONDS: Final = 0.1
"""Between two looks at the journal: a round knows of ownership about so late."""
_LONGEST_PAUSE_SECONDS: Final = 10.0


class RelayThread:
    """Relays the journals of ``clusters()``; waits longer and longer while a side is away."""

    def __init__(
        self, relay: JournalRelay, clusters: Callable[[], Iterable[str]], shown: Exposition
    ) -> None:
        self._relay = relay
        self._clusters = clusters
        self._shown = shown
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="journal-relay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends after what it is carrying; entries left over are relayed by the next job."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        pause = _PAUSE_SECONDS
        while not self._ended.wait(pause):
            try:
                for cluster in self._clusters():
                    self._shown.count(metrics.RELAYED, cluster, by=self._relay.relay(cluster))
                pause = _PAUSE_SECONDS
            except SinkError as error:
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                log.warning("the journal waits", cause=str(error), seconds=pause)
