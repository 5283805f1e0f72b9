"""The driver's own intents: numbered, in order, and not lost while Kafka is away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
import structlog

from sinks.kafka.publisher import Outgoing
from trimtab.doubt import Doubt
from trimtab.wire.control import Intent, IntentKind
from trimtab.wire.keys import CONTROL

log = structlog.get_logger()

_NAMES: Final = 1000
"""Brokers that one intent names: with the longest names it stays below what a topic takes."""


class IntentPublisher:
    """From any thread; ``publish`` from one. An intent that is sent again has the same id."""

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
        """Their leases ran out, and others are late; those are named once, whoever is lost."""
        # The first one's intents name them all: what is decided next knows of everyone.
        pages = [tuple(late[at : at + _NAMES]) for at in range(0, max(len(late), 1), _NAMES)]
        told = [(broker, page) for broker in brokers[:1] for page in pages]
        told += [(broker, ()) for broker in brokers[1:]]
        for number, (broker, page) in enumerate(told, 1):
            self._broker(IntentKind.BROKER_LOST, cluster, broker, page, number)

    def joined(self, cluster: str, brokers: Iterable[str]) -> None:
        """They hold leases that they did not hold before."""
        for broker in brokers:
            self._broker(IntentKind.BROKER_JOINED, cluster, broker)

    def _broker(
        self, kind: IntentKind, cluster: str, broker: str, late: tuple[str, ...] = (), page: int = 0
    ) -> None:
        with self._lock:
            said = Intent(id=self._next(), kind=kind, cluster=cluster, broker=broker, brokers=late)
            self._add(msgspec.structs.replace(said, page=page))
        log.info("a broker's lease", cluster=cluster, broker=broker, said=kind.value)

    def doubt(self, cluster: str, cause: str, level: Doubt) -> None:
        """Once per change; the first is said whatever it is, for a predecessor may have doubted."""
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

    def publish(self) -> None:
        """Send what waits; raises KafkaUnavailable and Misconfigured, and keeps it."""
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
        at = time.time_ns() // 1_000_000
        self._waiting.append(msgspec.structs.replace(intent, at=at, by="watcher"))
