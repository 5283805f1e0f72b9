"""Kafka, for faults that do not concern it: topics of one partition in memory, which never fail."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

from agent.reports.outbox import Message, Outbox
from sinks.errors import Fenced
from sinks.kafka.publisher import Outgoing, Publisher
from sources.records import Record
from trimtab.wire.keys import LOAD_REPORTS


class Topics(Publisher):
    """Takes the place of a publisher to Kafka and of the readers of its topics. Any thread may call
    it."""

    def __init__(self) -> None:  # no librdkafka
        self._records: defaultdict[str, list[Record]] = defaultdict(list)
        self._changed = threading.Lock()

    def publish(self, records: Iterable[Outgoing]) -> None:
        with self._changed:
            for topic, key, value, headers, _ in records:
                log = self._records[topic]
                at = time.time_ns() // 1_000_000
                log.append(Record(topic, 0, len(log), at, key.encode(), value, headers))

    def all(self, topic: str, start: int = 0, end: int | None = None) -> Sequence[Record]:
        """The records from offset ``start`` up to but without ``end``."""
        return self._records[topic][start:end]

    def end(self, topic: str) -> int:
        """The offset that the next record will have."""
        return len(self._records[topic])


class Post(Outbox):
    """Takes agents' reports straight to the topics."""

    def __init__(self, topics: Topics) -> None:  # no thread
        self._topics = topics

    def put(self, message: Message) -> None:
        report = Outgoing(LOAD_REPORTS, message.key.decode(), message.value, tuple(message.headers))
        self._topics.publish([report])
        message.arrived()


class Claims:
    """Gives out generations as the topic of claims does: the newest fences all before."""

    def __init__(self) -> None:
        self.newest = 0

    def claim(self, above: int = 0) -> Claim:
        self.newest = 1 + max(above, self.newest)
        return Claim(self, self.newest)


class Claim:
    """A `streaming.leader.leadership.Claim`."""

    def __init__(self, claims: Claims, generation: int) -> None:
        self._claims, self.generation = claims, generation

    def assert_held(self) -> None:
        if self._claims.newest > self.generation:
            raise Fenced(f"generation {self._claims.newest} was claimed")

    def bid_farewell(self) -> None:
        self.assert_held()

    def close(self) -> None:
        """Nothing to close."""
