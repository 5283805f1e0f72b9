"""Reads a demo's figures: the fleet's own output lines, and the job's rounds from Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.cimpl import OFFSET_BEGINNING

from simulation.fleet import FleetSnapshot
from sinks.kafka.clients import settings
from trimtab.wire import keys
from trimtab.wire.pieces import Joiner
from trimtab.wire.rounds import BatchRecord, RoundRecord

_TAIL: Final = 256 * 1024
"""Bytes to search at the end of the fleet's log: a line of 1000 brokers fits."""


def newest_snapshot(log: Path) -> FleetSnapshot | None:
    """The last complete snapshot line of the fleet's log; its other lines are log messages."""
    if not log.exists():
        return None
    with log.open("rb") as opened:
        opened.seek(max(0, log.stat().st_size - _TAIL))
        lines = opened.read().split(b"\n")
    # The text after the last line break is still being written.
    for line in reversed(lines[:-1]):
        if line.startswith(b'{"at"'):
            return msgspec.json.decode(line, type=FleetSnapshot)
    return None


class RoundReader:
    """Reads trimtab.rounds from its beginning."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(
            settings(bootstrap, {}, **{"group.id": "trimtab-demo", "enable.auto.commit": False})
        )
        self._joiner = Joiner()
        self._consumer.assign([TopicPartition(keys.ROUNDS, 0, OFFSET_BEGINNING)])

    def read(self, seconds: float) -> Iterator[RoundRecord]:
        """The rounds since the last call; waits up to ``seconds`` for the first."""
        for message in self._consumer.consume(num_messages=100, timeout=seconds):
            if message.error() is None:
                yield from self._rounds(message)

    def _rounds(self, message: Message) -> Iterable[RoundRecord]:
        # confluent-kafka's stubs leave these untyped.
        key: Any = message.key()
        value: Any = message.value()
        headers: Any = message.headers() or []
        whole = self._joiner.take(key or b"", value or b"", headers, message.offset() or 0)
        return () if whole is None else msgspec.json.decode(whole.value, type=BatchRecord).rounds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()
