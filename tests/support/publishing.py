"""Where a test has no Kafka."""

from __future__ import annotations

from collections.abc import Iterable

from sinks.kafka.publisher import Outgoing, Publisher


class Nowhere(Publisher):
    """Nothing may be published to it."""

    def __init__(self) -> None:
        pass

    def publish(self, records: Iterable[Outgoing]) -> None:
        raise AssertionError(list(records))
