"""The rules for topics, and checks of existing topics against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

PARTITIONS: Final = "partitions"
REPLICAS: Final = "replicas"
POLICY: Final = "cleanup.policy"
RETENTION: Final = "retention.ms"
IN_SYNC: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"

_HOUR_MS: Final = 3_600_000
_REPLICAS: Final = 3
_IN_SYNC: Final = 2
"""Replicas in sync: an acknowledged record is on two machines."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A required topic. ``needs``: settings the job depends on; ``config``: others at creation."""

    name: str
    partitions: int
    needs: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    single: bool = False
    """Whether it must have exactly one partition."""
    keeps_ms: int = _HOUR_MS
    """Shortest retention if it deletes by time: the job may be down that long."""
    vital: frozenset[str] = frozenset()
    """Settings that ownership depends on: the job does not start if one is wrong."""


@dataclass(frozen=True, slots=True)
class Found:
    """An existing topic."""

    partitions: int
    replicas: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """A setting of an existing topic that would break the job, or lose its records."""

    topic: str
    setting: str
    found: str
    wanted: str
    at_least: bool = False
    vital: bool = False
    """Whether the job refuses to start with it."""

    def __str__(self) -> str:
        wanted = f"at least {self.wanted}" if self.at_least else self.wanted
        return f"{self.topic}: {self.setting} is {self.found}, must be {wanted}"

    def remedy(self, bootstrap: str) -> str:
        """The command that fixes it."""
        if self.setting == PARTITIONS:
            # Safe: Redis remembers a generation above those of the deleted claims.
            return f"kafka-topics.sh --bootstrap-server {bootstrap} --delete --topic {self.topic}"
        if self.setting == REPLICAS:
            return (
                f"kafka-reassign-partitions.sh --bootstrap-server {bootstrap} --execute "
                "--reassignment-json-file FILE"
            )
        return (
            f"kafka-configs.sh --bootstrap-server {bootstrap} --alter --entity-type topics "
            f"--entity-name {self.topic} --add-config {self.setting}={self.wanted}"
        )


def judge(topic: Topic, found: Found, brokers: int) -> list[Finding]:
    """Find what is wrong with a topic, on a Kafka with ``brokers`` brokers."""
    return [*_needed(topic, found), *_kept(topic, found), *_replicated(topic, found, brokers)]


def choose_replication(brokers: int) -> tuple[int, Mapping[str, str]]:
    """A new topic's replica count, and its settings about replicas."""
    if brokers == 1:
        # The operator's default, which may count brokers that are down at present.
        return -1, {}
    return min(_REPLICAS, brokers), {IN_SYNC: str(_IN_SYNC)}


def _needed(topic: Topic, found: Found) -> Iterator[Finding]:
    for setting, wanted in topic.needs.items():
        if found.config[setting] != wanted:
            vital = setting in topic.vital
            yield Finding(topic.name, setting, found.config[setting], wanted, vital=vital)
    if topic.single and found.partitions != 1:
        vital = PARTITIONS in topic.vital
        yield Finding(topic.name, PARTITIONS, str(found.partitions), "1", vital=vital)


def _kept(topic: Topic, found: Found) -> Iterator[Finding]:
    if POLICY in topic.needs:
        return
    if "compact" in found.config[POLICY]:
        # Each record counts: a newer one with its key does not replace it.
        yield Finding(topic.name, POLICY, found.config[POLICY], "delete")
    retention = int(found.config[RETENTION])
    if 0 <= retention < topic.keeps_ms:
        yield Finding(topic.name, RETENTION, str(retention), str(topic.keeps_ms), at_least=True)


def _replicated(topic: Topic, found: Found, brokers: int) -> Iterator[Finding]:
    """Check replication; with a single broker it is the operator's choice."""
    if brokers == 1:
        return
    wanted = min(_REPLICAS, brokers)
    if found.replicas < wanted:
        yield Finding(topic.name, REPLICAS, str(found.replicas), str(wanted), at_least=True)
    if int(found.config[IN_SYNC]) < _IN_SYNC:
        yield Finding(topic.name, IN_SYNC, found.config[IN_SYNC], str(_IN_SYNC), at_least=True)
    if topic.vital and found.config[UNCLEAN] != "false":
        yield Finding(topic.name, UNCLEAN, found.config[UNCLEAN], "false")
