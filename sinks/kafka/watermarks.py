"""Reads the first and last offsets of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from sinks.kafka.clients import TIMEOUT_SECONDS, failure, metadata, settings


def watermarks(
    bootstrap: str, topics: Iterable[str], client: Mapping[str, str]
) -> dict[tuple[str, int], tuple[int, int]]:
    """Topic and partition to its first offset, and the offset that its next record gets.

    Leaves out topics that do not exist. Raises KafkaUnavailable and Misconfigured.
    """
    there = metadata(AdminClient(settings(bootstrap, client)), bootstrap).topics
    consumer = Consumer(settings(bootstrap, client, **{"group.id": "trimtab-start"}))
    try:
        found = {
            (topic, number): consumer.get_watermark_offsets(
                TopicPartition(topic, number), timeout=TIMEOUT_SECONDS
            )
            for topic in topics
            if topic in there
            for number in there[topic].partitions
        }
    except KafkaException as error:
        raise failure(bootstrap, "looking at its topics", error.args[0]) from error
    finally:
        consumer.close()
    return found
