"""Reads the newest record of every bundle from the journal topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic
from types import MappingProxyType

from confluent_kafka import Consumer, KafkaException, TopicPartition

from sinks.errors import KafkaUnavailable
from sinks.kafka.clients import TIMEOUT_SECONDS, failure, settings
from sinks.kafka.readable import MALFORMED
from trimtab.model import Epoch
from trimtab.store.rebuild import is_believable
from trimtab.wire.keys import OWNERSHIP
from trimtab.wire.ownership import Change, Record, decode_change

_PAGE = 1000

_SLICE_SECONDS = 0.1
"""How long the client waits for a whole page: brokers are idle meanwhile."""


def newest_records(
    bootstrap: str,
    cluster: str,
    client: Mapping[str, str] = MappingProxyType({}),
    generation: int = 0,
) -> dict[str, Record]:
    """Bundle to its journalled record with the highest epoch, as of this call.

    ``generation`` is the caller's: a record that `trimtab.store.rebuild.is_believable` rejects for
    it counts only if the topic has no other for its bundle. Raises KafkaUnavailable and
    Misconfigured.
    """

    def rank(record: Record) -> tuple[bool, Epoch]:
        return is_believable(record.epoch, generation), record.epoch

    newest: dict[str, Record] = {}
    for change in _changes(bootstrap, client, f"{cluster}/".encode()):
        known = newest.get(change.bundle)
        if change.cluster == cluster and (known is None or rank(change.record) > rank(known)):
            newest[change.bundle] = change.record
    return newest


def _changes(bootstrap: str, client: Mapping[str, str], prefix: bytes) -> Iterator[Change]:
    """Changes whose key has the prefix, from all partitions, in no order: after partitions were
    added, one bundle's changes are in two. The job sends unreadable ones to the dead letters."""
    reader = {"group.id": "trimtab-rebuild", "enable.auto.commit": False}
    consumer = Consumer(settings(bootstrap, client, **reader))
    try:
        for partition in _partitions(consumer, bootstrap):
            for value in _values(consumer, bootstrap, partition, prefix):
                with suppress(*MALFORMED):
                    yield decode_change(value)
    except KafkaException as error:
        raise failure(bootstrap, f"reading {OWNERSHIP}", error.args[0]) from error
    finally:
        consumer.close()


def _partitions(consumer: Consumer, bootstrap: str) -> list[int]:
    """The topic's partitions; raises if there are none, as Kafka does not know the topic (yet)."""
    found = consumer.list_topics(OWNERSHIP, timeout=TIMEOUT_SECONDS).topics[OWNERSHIP]
    if not found.partitions:
        raise KafkaUnavailable(f"Kafka at {bootstrap} has no topic {OWNERSHIP}: {found.error}")
    return sorted(found.partitions)


def _values(consumer: Consumer, bootstrap: str, partition: int, prefix: bytes) -> Iterator[bytes]:
    """The values of one partition, up to its end as of this call."""
    here = TopicPartition(OWNERSHIP, partition)
    low, high = consumer.get_watermark_offsets(here, timeout=TIMEOUT_SECONDS)
    here.offset = position = low
    consumer.assign([here])
    deadline = monotonic() + TIMEOUT_SECONDS
    while position < high:
        messages = consumer.consume(_PAGE, _SLICE_SECONDS)
        for message in messages:
            error = message.error()
            if error is not None:
                raise failure(bootstrap, f"reading {OWNERSHIP}", error)
            value = message.value()
            if value is not None and (message.key() or b"").startswith(prefix):
                yield value
        # Records that compaction removed have offsets but are never delivered.
        before, position = position, consumer.position([here])[0].offset
        if messages or position > before:
            deadline = monotonic() + TIMEOUT_SECONDS
        elif monotonic() > deadline:
            raise KafkaUnavailable(
                f"Kafka at {bootstrap} has nothing of {OWNERSHIP}/{partition} to {high}"
            )
