"""A thread that carries the ownership journals from Redis to Kafka while the job runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final

import structlog

from sinks.errors import SinkError
from sinks.exposition import Exposition
from sinks.redis.journal_relay import PAGE, JournalRelay
from trimtab.metrics import job as metrics

log = structlog.get_logger()

_PAUSE_SECONDS: Final = 0.1
"""Time between two reads of the journals: roughly how late a round sees ownership changes."""
_LONGEST_PAUSE: Final = 100
"""Most looks that a cluster skips after an error: ten seconds or more."""


@dataclass(slots=True)
class _Trouble:
    """Why a cluster's journal was not relayed, and how many looks it skips."""

    cause: type[Exception]
    pause: int = 1
    left: int = 1


class RelayThread:
    """Relays the journals of ``clusters()`` that have entries; one that fails waits longer each
    time, while the others are relayed."""

    def __init__(
        self, relay: JournalRelay, clusters: Callable[[], Iterable[str]], shown: Exposition
    ) -> None:
        self._relay = relay
        self._clusters = clusters
        self._shown = shown
        self._troubles: dict[str, _Trouble] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="journal-relay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the present page, then stop; the next job relays the remaining entries."""
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Relay a page of each cluster's journal."""
        clusters = tuple(self._clusters())
        waiting = self._find_waiting(clusters)
        for cluster in clusters:
            if self._ended.is_set():
                return
            trouble = self._troubles.get(cluster)
            if trouble is None and cluster not in waiting:
                continue
            if trouble is not None and trouble.left > 0:
                trouble.left -= 1
                continue
            try:
                self._carry(cluster)
            # Any error: the thread must keep relaying.
            except Exception as error:
                self._put_off(cluster, error)
            else:
                if self._troubles.pop(cluster, None) is not None:
                    log.info("the journal is copied to Kafka again", cluster=cluster)

    def _run(self) -> None:
        while not self._ended.wait(_PAUSE_SECONDS):
            self.look()

    def _find_waiting(self, clusters: Sequence[str]) -> Set[str]:
        try:
            return set(self._relay.find_waiting(clusters))
        except SinkError:
            # Each cluster meets it in turn, and waits for itself.
            return set(clusters)

    def _carry(self, cluster: str) -> None:
        carried = self._relay.relay(cluster)
        self._shown.count(metrics.RELAYED_CHANGES, cluster, by=carried)
        if carried < PAGE:
            self._shown.count(metrics.REFILLED_BUNDLES, cluster, by=self._relay.refill(cluster))

    def _put_off(self, cluster: str, error: Exception) -> None:
        self._shown.count(metrics.RELAY_FAILURES, cluster)
        before = self._troubles.get(cluster)
        if before is None or before.cause is not type(error):
            log.warning(
                "the journal cannot be copied to Kafka now",
                cluster=cluster,
                cause=f"{error}",
                error=type(error),
            )
        pause = 1 if before is None else min(2 * before.pause, _LONGEST_PAUSE)
        self._troubles[cluster] = _Trouble(type(error), pause, pause)
