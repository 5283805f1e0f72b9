"""Reads from Kafka, after a run, when each report was appended and each batch began."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, Message, TopicPartition

from trimtab.wire import keys
from trimtab.wire.pieces import Joiner
from trimtab.wire.rounds import BatchRecord

_TIMEOUT_SECONDS: Final = 10.0


def append_times(bootstrap: str) -> dict[str, dict[int, int]]:
    """Broker to sequence number to the report's LogAppendTime (epoch ms)."""
    times: dict[str, dict[int, int]] = defaultdict(dict)
    for message in records(bootstrap, keys.LOAD_REPORTS):
        _, broker = (message.key() or b"").decode().split("/")
        headers = dict(message.headers() or ())
        sequence = int(headers[keys.SEQUENCE_HEADER] or b"")
        times[broker][sequence] = message.timestamp()[1]
    return times


def batch_starts(bootstrap: str) -> dict[str, int]:
    """``query/batch`` to the batch timestamp (epoch ms)."""
    return {f"{batch.query}/{batch.batch}": batch.at for batch in batch_records(bootstrap)}


def batch_records(bootstrap: str) -> Iterator[BatchRecord]:
    """What the job shows about its batches."""
    joiner = Joiner()
    for message in records(bootstrap, keys.ROUNDS):
        # Any: confluent-kafka's stubs leave what these are open.
        headers: Any = message.headers() or ()
        key, value = message.key() or b"", message.value() or b""
        if whole := joiner.take(key, value, headers, message.offset() or 0):
            yield msgspec.json.decode(whole.value, type=BatchRecord)


def records(bootstrap: str, topic: str) -> Iterator[Message]:
    """All that the topic holds now, partition by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "log_level": 0})
    try:
        for partition in consumer.list_topics(topic, _TIMEOUT_SECONDS).topics[topic].partitions:
            at = TopicPartition(topic, partition)
            low, high = consumer.get_watermark_offsets(at, _TIMEOUT_SECONDS)
            consumer.assign([TopicPartition(topic, partition, low)])
            yield from _until(consumer, low, high)
    finally:
        consumer.close()


def _until(consumer: Consumer, low: int, high: int) -> Iterator[Message]:
    while low < high:
        for message in consumer.consume(1000, _TIMEOUT_SECONDS):
            if message.error() is not None:
                raise RuntimeError(str(message.error()))
            low = (message.offset() or 0) + 1
            yield message
