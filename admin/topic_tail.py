"""Reads a topic from its beginning, each time up to its present end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from simulation.replay.recorded import Missing, RecordedTopics
from sinks.errors import KafkaUnavailable, Misconfigured
from sources.records import Record as Entry


class TopicTail:
    """Reads a topic from its beginning, each time up to its present end."""

    def __init__(self, bootstrap: str, topic: str, options: Mapping[str, str]) -> None:
        self._topic = topic
        self._topics = RecordedTopics(bootstrap, options)
        self._next: dict[int, int] = {}

    def fresh(self) -> Iterator[Entry]:
        """The records since the last call."""
        partitions = self._topics.partitions(self._topic)
        if not partitions:
            raise Misconfigured(f"there is no topic {self._topic}")
        for partition in sorted(partitions):
            low, high = self._topics.ends(self._topic, partition)
            start = max(low, self._next.get(partition, low))
            try:
                yield from self._topics.between(self._topic, partition, start, high)
            except Missing as error:
                raise KafkaUnavailable(str(error)) from error
            self._next[partition] = high

    def close(self) -> None:
        self._topics.close()
