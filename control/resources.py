"""What each resource adds to the usage of brokers, by their newest load reports.

Rounds record usage alone, and at 10,000 brokers the reports of a minute are 280 MB: no request can
read them. So a thread follows them while somebody asks, and keeps five pairs of numbers a broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from threading import Event, Lock, Thread
from typing import Any, Final

import msgspec
import numpy as np
from confluent_kafka import Consumer, KafkaException, TopicPartition

from sinks.kafka.clients import TIMEOUT_SECONDS, settings
from trimtab.load import COUNTED, percentages
from trimtab.settings import WeightSettings
from trimtab.wire.keys import LOAD_REPORTS
from trimtab.wire.reports.load_report import UNKNOWN_RESOURCE, Resource

NAMES: Final = ("cpu", "directMemory", "bandwidthIn", "bandwidthOut")
"""The resources that count, in the order of `trimtab.load.COUNTED`."""
_IDLE_S: Final = 60.0
"""How long it goes on after the last question. Shorter: it starts again and again."""
_BEFORE_MS: Final = 70_000
"""How far back it begins: agents report each minute at the latest."""
_AT_ONCE: Final = 500
_WAIT_S: Final = 0.5


def _unknown() -> Resource:
    return UNKNOWN_RESOURCE


class _Report(msgspec.Struct, rename="camel", gc=False):
    """The part of a load report that is kept."""

    cpu: Resource = msgspec.field(default_factory=_unknown)
    memory: Resource = msgspec.field(default_factory=_unknown)
    direct_memory: Resource = msgspec.field(default_factory=_unknown)
    bandwidth_in: Resource = msgspec.field(default_factory=_unknown)
    bandwidth_out: Resource = msgspec.field(default_factory=_unknown)

    def columns(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(2, 5) usage and limit."""
        every = (self.cpu, self.memory, self.direct_memory, self.bandwidth_in, self.bandwidth_out)
        return np.array([[each.usage for each in every], [each.limit for each in every]])


_DECODER: Final = msgspec.json.Decoder(_Report)


class ResourceFeed:
    """Any number of threads may ask. Nothing is connected before the first does."""

    def __init__(
        self,
        bootstrap: str,
        client: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bootstrap, self._client, self._clock = bootstrap, client, clock
        self._lock, self._ending = Lock(), Event()
        self._asked = 0.0
        self._thread: Thread | None = None
        self._newest: dict[str, _Report] = {}
        """By the reports' key, cluster/broker."""

    def read(
        self, cluster: str, brokers: Iterable[str], weights: WeightSettings
    ) -> dict[str, dict[str, float]]:
        """What is known by now: of each broker the share of each resource, times its weight, as
        fractions; the highest of them is the usage. Returns at once: the first time with nothing.
        """
        self._asked = self._clock()
        with self._lock:
            if not self._ending.is_set() and (self._thread is None or not self._thread.is_alive()):
                self._thread = Thread(target=self._follow, name="load reports", daemon=True)
                self._thread.start()
        found = {broker: self._newest.get(f"{cluster}/{broker}") for broker in brokers}
        return {broker: _shares(each, weights) for broker, each in found.items() if each}

    def close(self) -> None:
        """End the thread and its connection."""
        with self._lock:
            self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _follow(self) -> None:
        # While Kafka is away the page shows no resources, and a later question starts this again.
        with suppress(KafkaException), closing(self._connect()) as consumer:
            while not self._ending.is_set() and self._clock() - self._asked < _IDLE_S:
                for message in consumer.consume(_AT_ONCE, timeout=_WAIT_S):
                    if message.error() is None:
                        # confluent-kafka's stubs leave these untyped.
                        self._take(message.key(), message.value())
        self._newest.clear()

    def _connect(self) -> Consumer:
        own: dict[str, Any] = {"group.id": "trimtab-resources", "enable.auto.commit": False}
        own |= {"auto.offset.reset": "latest"}
        consumer = Consumer(settings(self._bootstrap, self._client, **own))
        found = consumer.list_topics(LOAD_REPORTS, timeout=TIMEOUT_SECONDS).topics[LOAD_REPORTS]
        since = time.time_ns() // 1_000_000 - _BEFORE_MS
        wanted = [TopicPartition(LOAD_REPORTS, each, since) for each in found.partitions]
        consumer.assign(consumer.offsets_for_times(wanted, timeout=TIMEOUT_SECONDS))
        return consumer

    def _take(self, key: Any, value: Any) -> None:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            self._newest[(key or b"").decode()] = _DECODER.decode(value or b"")


def _shares(report: _Report, weights: WeightSettings) -> dict[str, float]:
    percent = percentages(*report.columns())[COUNTED] / 100
    weight = (weights.cpu, weights.direct_memory, weights.bandwidth_in, weights.bandwidth_out)
    return {
        name: round(float(share) * each, 4)
        for name, share, each in zip(NAMES, percent, weight, strict=True)
    }
