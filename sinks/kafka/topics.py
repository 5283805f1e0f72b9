"""The topics trimtab reads and writes: made if missing, and judged if they are there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._metadata import ClusterMetadata, TopicMetadata
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from sinks.kafka.clients import LARGEST_RECORD, TIMEOUT_SECONDS, failure, metadata, settings
from sinks.kafka.topic_rules import (
    PARTITIONS,
    POLICY,
    Finding,
    Found,
    Topic,
    choose_replication,
    judge,
)
from trimtab.wire import keys

_APPEND_TIME: Final = {"message.timestamp.type": "LogAppendTime"}
_COMPACTED: Final = {POLICY: "compact"}
_DAY_MS: Final = 24 * 3600 * 1000
_WEEK_MS: Final = str(7 * _DAY_MS)


TOPICS: Final = (
    # Brokers' clocks are not trusted: averages and silence go by the time Kafka got the report.
    Topic(keys.LOAD_REPORTS, 4, _APPEND_TIME, {"max.message.bytes": str(1 << 20)}),
    # What operators said while no job ran stands nowhere else.
    Topic(keys.CONTROL, 1, _APPEND_TIME, keeps_ms=_DAY_MS),
    # A replay of recorded batches needs the changes themselves: they stay a week uncompacted.
    # Deleted by time, they would be missing where a store that lost them too is rebuilt.
    Topic(
        keys.OWNERSHIP,
        1,
        {**_APPEND_TIME, **_COMPACTED},
        {"min.compaction.lag.ms": _WEEK_MS},
        vital=frozenset({POLICY}),
    ),
    Topic(keys.COMMANDS, 1),
    # A replay runs batches in the order in which they stand here.
    Topic(keys.ROUNDS, 1, config={"max.message.bytes": str(LARGEST_RECORD)}, single=True),
    Topic(keys.DEAD_LETTERS, 1),
    # By time, as what is replayed from it: an export is of no use without the records after it.
    Topic(keys.STATE, 1),
    # A claim is numbered by those before it: where they are on another partition, or gone, the same
    # number would be given out again.
    Topic(keys.GENERATIONS, 1, _COMPACTED, single=True, vital=frozenset({POLICY, PARTITIONS})),
)
"""Few partitions: in Spark each costs a task a batch, and one takes 100,000 records a second."""


def ensure_topics(
    bootstrap: str,
    client: Mapping[str, str] = MappingProxyType({}),
    topics: Sequence[Topic] = TOPICS,
) -> tuple[Finding, ...]:
    """Create what is missing; what is wrong with what was there. Safe to repeat.

    Raises KafkaUnavailable within seconds, and Misconfigured where a topic may not be made.
    """
    admin = AdminClient(settings(bootstrap, client))
    try:
        there = metadata(admin, bootstrap)
        _create(
            admin, [topic for topic in topics if topic.name not in there.topics], len(there.brokers)
        )
        return _judge(admin, topics, there)
    except KafkaException as error:
        raise failure(bootstrap, "looking after topics", error.args[0], admin) from error


def examine_topics(
    bootstrap: str, client: Mapping[str, str] = MappingProxyType({})
) -> tuple[Finding, ...]:
    """What is wrong with the topics that are there; makes none. Raises as `ensure_topics` does."""
    admin = AdminClient(settings(bootstrap, client))
    try:
        return _judge(admin, TOPICS, metadata(admin, bootstrap))
    except KafkaException as error:
        raise failure(bootstrap, "looking at topics", error.args[0], admin) from error


def _create(admin: AdminClient, topics: Sequence[Topic], brokers: int) -> None:
    if not topics:
        return
    replicas, safety = choose_replication(brokers)
    wanted = [
        NewTopic(
            topic.name,
            topic.partitions,
            replication_factor=replicas,
            config={**safety, **topic.needs, **topic.config},
        )
        for topic in topics
    ]
    for made in admin.create_topics(wanted, operation_timeout=TIMEOUT_SECONDS).values():
        try:
            made.result()
        except KafkaException as error:
            # Two jobs may start at once.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _judge(
    admin: AdminClient, topics: Sequence[Topic], there: ClusterMetadata
) -> tuple[Finding, ...]:
    existing = [topic for topic in topics if topic.name in there.topics]
    return tuple(
        finding
        for topic, config in zip(existing, _configs(admin, existing), strict=True)
        for finding in judge(topic, _found(there.topics[topic.name], config), len(there.brokers))
    )


def _found(topic: TopicMetadata, config: Mapping[str, str]) -> Found:
    partitions = topic.partitions.values()
    replicas = min((len(partition.replicas) for partition in partitions), default=0)
    return Found(len(partitions), replicas, config)


def _configs(admin: AdminClient, topics: Sequence[Topic]) -> list[dict[str, str]]:
    if not topics:
        return []
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics]
    answers = admin.describe_configs(resources, request_timeout=TIMEOUT_SECONDS)
    found = {
        resource.name: {name: str(entry.value) for name, entry in answer.result().items()}
        for resource, answer in answers.items()
    }
    return [found[topic.name] for topic in topics]
