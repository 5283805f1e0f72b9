"""The topics that trimtab reads and writes: creates missing ones and checks existing ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

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
    # Brokers' clocks are not trusted: averages and silence use the time Kafka got the report.
    Topic(keys.LOAD_REPORTS, 4, _APPEND_TIME, {"max.message.bytes": str(1 << 20)}),
    # Operators' intents sent while no job ran are stored nowhere else.
    Topic(keys.CONTROL, 1, _APPEND_TIME, keeps_ms=_DAY_MS),
    # A replay of recorded batches needs every change: they stay uncompacted for a week.
    # If deleted by time, they would be missing when a store that lost them too is rebuilt.
    Topic(
        keys.OWNERSHIP,
        1,
        {**_APPEND_TIME, **_COMPACTED},
        {"min.compaction.lag.ms": _WEEK_MS},
        vital=frozenset({POLICY}),
    ),
    Topic(keys.COMMANDS, 1),
    # A replay runs batches in this topic's order.
    Topic(keys.ROUNDS, 1, config={"max.message.bytes": str(LARGEST_RECORD)}, single=True),
    Topic(keys.DEAD_LETTERS, 1),
    # Deleted by time, like the records replayed on it: an export is useless without those after it.
    Topic(keys.STATE, 1),
    # A claim is numbered by those before it: if they are on another partition, or gone, the same
    # number would be used again.
    Topic(keys.GENERATIONS, 1, _COMPACTED, single=True, vital=frozenset({POLICY, PARTITIONS})),
)
"""Few partitions: each costs Spark a fetch per batch, and one handles 100,000 records a second."""


class Ensured(NamedTuple):
    """The topics after `create_missing`: names, and what is wrong with those that were there."""

    created: tuple[str, ...]
    existing: tuple[str, ...]
    findings: tuple[Finding, ...]


def ensure_topics(
    bootstrap: str,
    client: Mapping[str, str] = MappingProxyType({}),
    topics: Sequence[Topic] = TOPICS,
) -> tuple[Finding, ...]:
    """Call `create_missing`; returns only the findings."""
    return create_missing(bootstrap, client, topics).findings


def create_missing(
    bootstrap: str,
    client: Mapping[str, str] = MappingProxyType({}),
    topics: Sequence[Topic] = TOPICS,
) -> Ensured:
    """Create missing topics, check existing ones. Safe to repeat.

    Raises KafkaUnavailable within seconds, and Misconfigured if we may not create a topic.
    """
    admin = AdminClient(settings(bootstrap, client))
    try:
        there = metadata(admin, bootstrap)
        missing = [topic for topic in topics if topic.name not in there.topics]
        created = _create(admin, missing, len(there.brokers))
        existing = tuple(topic.name for topic in topics if topic.name not in created)
        return Ensured(created, existing, _judge(admin, topics, there))
    except KafkaException as error:
        raise failure(bootstrap, "checking its topics", error.args[0], admin) from error


def examine_topics(bootstrap: str, client: Mapping[str, str] = MappingProxyType({})) -> Ensured:
    """Check existing topics; creates none. Raises as `create_missing` does."""
    admin = AdminClient(settings(bootstrap, client))
    try:
        there = metadata(admin, bootstrap)
        existing = tuple(topic.name for topic in TOPICS if topic.name in there.topics)
        return Ensured((), existing, _judge(admin, TOPICS, there))
    except KafkaException as error:
        raise failure(bootstrap, "checking its topics", error.args[0], admin) from error


def _create(admin: AdminClient, topics: Sequence[Topic], brokers: int) -> tuple[str, ...]:
    """Create the topics; returns the names of those that no other process created meanwhile."""
    if not topics:
        return ()
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
    created = []
    answers = admin.create_topics(wanted, operation_timeout=TIMEOUT_SECONDS)
    for name, answer in answers.items():
        try:
            answer.result()
            created.append(name)
        except KafkaException as error:
            # Two jobs may start at once.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    return tuple(created)


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
