"""Finds the clusters that report, from the ends of the topic of load reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sinks.kafka.clients import TIMEOUT_SECONDS, failure, settings
from trimtab.model import SUBJECT_PATTERN
from trimtab.wire.keys import LOAD_REPORTS

_TAIL: Final = 100
"""Offsets to read before the end of each partition."""


def reporting_clusters(
    bootstrap: str, client: Mapping[str, str] = MappingProxyType({})
) -> frozenset[str]:
    """The clusters of the newest reports; may miss clusters that report rarely.

    Raises KafkaUnavailable and Misconfigured.
    """
    reader = {
        "group.id": "trimtab-reporting",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
    }
    consumer = Consumer(settings(bootstrap, client, **reader))
    try:
        tails = list(_tails(consumer))
        consumer.assign(tails)
        subjects = (re.fullmatch(SUBJECT_PATTERN, key) for key in _keys(consumer, len(tails)))
        return frozenset(subject.group(1) for subject in subjects if subject)
    except KafkaException as error:
        raise failure(bootstrap, f"reading {LOAD_REPORTS}", error.args[0]) from error
    finally:
        consumer.close()


def _tails(consumer: Consumer) -> Iterator[TopicPartition]:
    found = consumer.list_topics(LOAD_REPORTS, timeout=TIMEOUT_SECONDS).topics[LOAD_REPORTS]
    for partition in found.partitions:
        here = TopicPartition(LOAD_REPORTS, partition)
        low, high = consumer.get_watermark_offsets(here, timeout=TIMEOUT_SECONDS)
        here.offset = max(low, high - _TAIL)
        yield here


def _keys(consumer: Consumer, partitions: int) -> Iterator[str]:
    """The keys of the records up to each partition's end."""
    while partitions and (message := consumer.poll(TIMEOUT_SECONDS)) is not None:
        error = message.error()
        if error is None:
            yield (message.key() or b"").decode(errors="replace")
        elif error.code() == KafkaError._PARTITION_EOF:
            partitions -= 1
        else:
            raise KafkaException(error)
