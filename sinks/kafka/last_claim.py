"""Reads the claims made so far from the topic of generations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sinks.errors import KafkaUnavailable
from sinks.kafka.clients import TIMEOUT_SECONDS, UNKNOWN_TOPIC, failure, settings
from sinks.kafka.readable import MALFORMED
from trimtab.store.rebuild import HIGHEST
from trimtab.wire.keys import GENERATIONS

log = structlog.get_logger()

_LONGEST: Final = 200

_DOING: Final = "reading the claims so far"

_TAIL: Final = 100
"""Offsets before the end to read first: every record of this version names a generation."""


class _Named(msgspec.Struct):
    """A record of the topic; those of earlier versions name no generation."""

    generation: int = 0


_record = msgspec.json.Decoder(_Named)


def highest_generation(bootstrap: str, client: Mapping[str, str]) -> int:
    """The highest generation of all claims that Kafka has committed; 0 if it has none.

    The end of the topic counts too: earlier versions number a claim by its offset. Raises
    KafkaUnavailable and Misconfigured.
    """
    reader = {
        "group.id": "trimtab-claim",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        # A claim that was fenced before it committed was never made.
        "isolation.level": "read_committed",
        # The only event after the mark of a transaction's end.
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
    }
    consumer = Consumer(settings(bootstrap, client, **reader))
    here = TopicPartition(GENERATIONS, 0)
    try:
        low, high = consumer.get_watermark_offsets(here, timeout=TIMEOUT_SECONDS)
        named = max(_named(consumer, bootstrap, max(low, high - _TAIL)), default=None)
        if not named:
            # An earlier version was active last, or the whole tail was aborted.
            named = max(_named(consumer, bootstrap, low), default=None)
        return 0 if named is None else max(high, named)
    except KafkaException as error:
        raise _failure(bootstrap, error.args[0]) from error
    finally:
        consumer.close()


def _named(consumer: Consumer, bootstrap: str, start: int) -> Iterator[int]:
    """The generations named by records, from an offset to the topic's end."""
    consumer.assign([TopicPartition(GENERATIONS, 0, start)])
    while True:
        message = consumer.poll(TIMEOUT_SECONDS)
        if message is None:
            raise KafkaUnavailable(f"Kafka at {bootstrap}, {_DOING}: no answer")
        error = message.error()
        if error is None:
            yield _generation_in(message.value(), message.offset() or 0)
        elif error.code() == KafkaError._PARTITION_EOF:
            return
        else:
            raise _failure(bootstrap, error)


def _generation_in(value: bytes | None, offset: int) -> int:
    """The generation that a record names; 0 for a record that no job has written.

    A record that no job wrote must neither stop a claim nor use the numbers up. If it was a damaged
    claim, Redis knows its number.
    """
    try:
        generation = _record.decode(value or b"{}").generation
        if generation < HIGHEST:
            return generation
        reason = f"generation is {generation}, must be below {HIGHEST}"
    except MALFORMED as error:
        reason = str(error)[:_LONGEST]
    log.warning(
        "a record that no job wrote is skipped", topic=GENERATIONS, offset=offset, reason=reason
    )
    return 0


def _failure(bootstrap: str, error: KafkaError) -> Exception:
    failed = failure(bootstrap, _DOING, error)
    return KafkaUnavailable(str(failed)) if error.code() in UNKNOWN_TOPIC else failed
