"""The newest record of every bundle that the journal topic has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType

import msgspec
from confluent_kafka import Consumer, KafkaException, TopicPartition

from sinks.errors import KafkaUnavailable
from sinks.kafka import TIMEOUT_SECONDS, failure, settings
from trimtab.wire.keys import OWNERSHIP
from trimtab.wire.ownership import Change, Record

_PAGE = 1000

_change = msgspec.json.Decoder(Change)


def newest_records(
    bootstrap: str, cluster: str, client: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Record]:
    """Bundle to its journalled record with the highest epoch, as of this call.

    Raises KafkaUnavailable and Misconfigured.
    """
    newest: dict[str, Record] = {}
    for change in _changes(bootstrap, client, f"{cluster}/".encode()):
        known = newest.get(change.bundle)
        if change.cluster == cluster and (known is None or change.record.epoch > known.epoch):
            newest[change.bundle] = change.record
    return newest


def _changes(bootstrap: str, client: Mapping[str, str], prefix: bytes) -> Iterator[Change]:
    """Those whose key begins so. What cannot be read is in the dead letters by way of the job."""
    reader = {"group.id": "trimtab-rebuild", "enable.auto.commit": False}
    consumer = Consumer(settings(bootstrap, client, **reader))
    here = TopicPartition(OWNERSHIP, 0)
    try:
        low, high = consumer.get_watermark_offsets(here, timeout=TIMEOUT_SECONDS)
        here.offset = position = low
        consumer.assign([here])
        while position < high:
            messages = consumer.consume(_PAGE, TIMEOUT_SECONDS)
            for message in messages:
                error = message.error()
                if error is not None:
                    raise failure(bootstrap, f"reading {OWNERSHIP}", error)
                if (message.key() or b"").startswith(prefix):
                    with suppress(msgspec.MsgspecError):
                        yield _change.decode(message.value() or b"")
            # Compacted records have offsets but are never delivered.
            before, position = position, consumer.position([here])[0].offset
            if not messages and position == before:
                raise KafkaUnavailable(f"Kafka at {bootstrap} has nothing of {OWNERSHIP} to {high}")
    except KafkaException as error:
        raise failure(bootstrap, f"reading {OWNERSHIP}", error.args[0]) from error
    finally:
        consumer.close()
