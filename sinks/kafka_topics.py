"""The topics trimtab reads and writes: made if missing, and judged if they are there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from sinks.kafka import LARGEST_RECORD, TIMEOUT_SECONDS, failure, known_topics, settings
from trimtab.wire import keys

_APPEND_TIME: Final = {"message.timestamp.type": "LogAppendTime"}
_COMPACTED: Final = {"cleanup.policy": "compact"}
_WEEK_MS: Final = str(7 * 24 * 3600 * 1000)


@dataclass(frozen=True, slots=True)
class Topic:
    """``needs``: settings without which the job would be wrong; ``config``: others at creation."""

    name: str
    partitions: int
    needs: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    single: bool = False
    """It must have one partition and no more."""


TOPICS: Final = (
    # Brokers' clocks are not trusted: averages and silence go by the time Kafka got the report.
    Topic(keys.LOAD_REPORTS, 4, _APPEND_TIME, {"max.message.bytes": str(1 << 20)}),
    Topic(keys.CONTROL, 1, _APPEND_TIME),
    # A replay of recorded batches needs the changes themselves: they stay a week uncompacted.
    Topic(keys.OWNERSHIP, 1, {**_APPEND_TIME, **_COMPACTED}, {"min.compaction.lag.ms": _WEEK_MS}),
    Topic(keys.COMMANDS, 1),
    # A replay runs batches in the order in which they stand here.
    Topic(keys.ROUNDS, 1, config={"max.message.bytes": str(LARGEST_RECORD)}, single=True),
    Topic(keys.DEAD_LETTERS, 1),
    # By time, as what is replayed from it: an export is of no use without the records after it.
    Topic(keys.STATE, 1),
    # A generation is an offset: two partitions would give one out twice.
    Topic(keys.GENERATIONS, 1, _COMPACTED, single=True),
)
"""Few partitions: in Spark each costs a task a batch, and one takes 100,000 records a second."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A setting of an existing topic that would make the job wrong."""

    topic: str
    setting: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.setting} is {self.found}, must be {self.wanted}"


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
        there = known_topics(admin, bootstrap)
        _create(admin, [topic for topic in topics if topic.name not in there])
        existing = [topic for topic in topics if topic.name in there]
        widths = {topic.name: len(there[topic.name].partitions) for topic in existing}
        return tuple(
            finding
            for topic, config in zip(existing, _configs(admin, existing), strict=True)
            for finding in _judge(topic, widths[topic.name], config)
        )
    except KafkaException as error:
        raise failure(bootstrap, "looking after topics", error.args[0], admin) from error


def _create(admin: AdminClient, topics: Sequence[Topic]) -> None:
    if not topics:
        return
    wanted = [
        NewTopic(topic.name, topic.partitions, config={**topic.needs, **topic.config})
        for topic in topics
    ]
    for made in admin.create_topics(wanted, operation_timeout=TIMEOUT_SECONDS).values():
        try:
            made.result()
        except KafkaException as error:
            # Two jobs may start at once.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


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


def _judge(topic: Topic, partitions: int, config: Mapping[str, str]) -> list[Finding]:
    findings = [
        Finding(topic.name, setting, config[setting], wanted)
        for setting, wanted in topic.needs.items()
        if config[setting] != wanted
    ]
    if topic.single and partitions != 1:
        findings.append(Finding(topic.name, "partitions", str(partitions), "1"))
    return findings
