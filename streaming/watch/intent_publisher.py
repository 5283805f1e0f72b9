"""The driver's own intents: numbered, in order, and kept while Kafka is unavailable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import structlog

from sinks.kafka.publisher import Outgoing
from trimtab.doubt import Doubt
from trimtab.migration.migration import Counts, Migration
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.keys import CONTROL

log = structlog.get_logger()

_NAMES: Final = 1000
"""Most brokers in one intent: with the longest names it stays below a topic's record limit."""
_NAMED: Final = 5
"""Most brokers that a log line names: a job that starts finds the leases of the whole fleet."""


class IntentPublisher:
    """Any thread may call it, but only one ``publish``. An intent sent again keeps its id."""

    def __init__(
        self, publish: Callable[[Sequence[Outgoing]], None], generation: Callable[[], int]
    ) -> None:
        self._send = publish
        self._generation = generation
        self._lock = threading.Lock()
        self._number = 0
        self._waiting: list[Intent] = []
        self._doubts: dict[tuple[str, str], Doubt] = {}

    def lost(self, cluster: str, brokers: Sequence[str], late: Sequence[str]) -> None:
        """Announce brokers whose leases expired; ``late`` ones are named once, with the first."""
        # The first broker's intents name all late ones, so that the next decision knows them all.
        pages = [tuple(late[at : at + _NAMES]) for at in range(0, max(len(late), 1), _NAMES)]
        told = [(broker, page) for broker in brokers[:1] for page in pages]
        told += [(broker, ()) for broker in brokers[1:]]
        for number, (broker, page) in enumerate(told, 1):
            self._broker(IntentKind.BROKER_LOST, cluster, broker, page, number)
        if brokers:
            _tell("leases have ended", cluster, brokers)

    def joined(self, cluster: str, brokers: Sequence[str]) -> None:
        """Announce brokers that hold leases which they did not hold before."""
        for broker in brokers:
            self._broker(IntentKind.BROKER_JOINED, cluster, broker)
        if brokers:
            _tell("leases have begun", cluster, brokers)

    def _broker(
        self, kind: IntentKind, cluster: str, broker: str, late: tuple[str, ...] = (), page: int = 0
    ) -> None:
        with self._lock:
            said = Intent(id=self._next(), kind=kind, cluster=cluster, broker=broker, brokers=late)
            self._add(msgspec.structs.replace(said, page=page))

    def doubt(self, cluster: str, cause: str, level: Doubt) -> None:
        """Announce each change once, and always the first doubt: a predecessor may have had one."""
        with self._lock:
            if self._doubts.get((cluster, cause)) is level:
                return
            self._doubts[cluster, cause] = level
            self._add(
                Intent(
                    id=self._next(), kind=IntentKind.DOUBT, cluster=cluster, name=cause, level=level
                )
            )
        log.info(f"ownership is {level.value}", cluster=cluster, cause=cause)

    def migration(
        self, cluster: str, migration: Migration, counts: tuple[Counts, ...], unseen: int
    ) -> None:
        """Announce how far a migration's topics had come while it was as it is given."""
        with self._lock:
            self._add(
                Intent(
                    id=self._next(),
                    kind=IntentKind.MIGRATION_PROGRESS,
                    cluster=cluster,
                    migration=migration.id,
                    state=migration.state,
                    wave=migration.wave,
                    counts=counts,
                    unseen=unseen,
                )
            )

    def publish(self) -> None:
        """Send the waiting intents; on KafkaUnavailable and Misconfigured keeps them and raises."""
        with self._lock:
            intents = list(self._waiting)
        if intents:
            self._send([Outgoing(CONTROL, i.cluster, msgspec.json.encode(i)) for i in intents])
            with self._lock:
                del self._waiting[: len(intents)]

    def _next(self) -> str:
        self._number += 1
        return f"watcher/{self._generation()}/{self._number}"

    def _add(self, intent: Intent) -> None:
        self._waiting.append(
            msgspec.structs.replace(
                intent,
                at=time.time_ns() // 1_000_000,
                by="watcher",
                generation=self._generation(),
            )
        )


def _tell(event: str, cluster: str, brokers: Sequence[str]) -> None:
    log.info(event, cluster=cluster, number=len(brokers), first=brokers[:_NAMED])
