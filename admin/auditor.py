"""Reads a cluster's journal and commands, and its records in Redis, for the auditor.

Kafka has the journal as far as it was relayed; the rest is still in a Redis stream.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from heapq import merge
from types import MappingProxyType
from typing import Any, Final, Self

import msgspec
import redis

from admin.topic_tail import TopicTail
from sinks.kafka.readable import MALFORMED
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import translate_errors
from sinks.redis.server.survey import history_of
from trimtab.auditing.auditor import GRACE_MS, Audit, Violation
from trimtab.ownership import Event
from trimtab.store.requests import is_of_a_broker
from trimtab.wire import keys
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change, Record

PAUSE_SECONDS: Final = 10.0
"""Time between two reads with --follow."""

_PAGE: Final = 1000

_change = msgspec.json.Decoder(Change)
_command = msgspec.json.Decoder(Command)


class Auditor:
    """Audits every cluster of one Kafka, or only ``cluster``; ``client``: its Redis, to compare.
    ``options`` are librdkafka's.

    Its methods raise KafkaUnavailable, StoreUnavailable and Misconfigured.
    """

    def __init__(
        self,
        bootstrap: str,
        client: redis.Redis | None = None,
        cluster: str | None = None,
        grace_ms: int = GRACE_MS,
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.audit = Audit(grace_ms)
        self.changes = self.commands = 0
        self.unreadable = 0
        """Count of entries that are neither changes nor commands, which the job writes to dead
        letters, and of unreadable records in Redis."""
        self._damaged: set[tuple[str, str]] = set()
        """Cluster and bundle of each such record."""
        self.others: set[str] = set()
        """Clusters of which there are entries, and that are not audited."""
        self.closed: set[str] = set()
        """Clusters that were closed at the last check, and were not compared."""
        self._client = client
        self._cluster = cluster
        self._journal = TopicTail(bootstrap, keys.OWNERSHIP, options)
        self._commands = TopicTail(bootstrap, keys.COMMANDS, options)

    def check(self) -> list[Violation]:
        """Read to the present end; returns the violations found since the last call."""
        self._read_topics()
        if self._client is None:
            # The relay may have stopped: entries after the journal's clock may be on their way.
            return self.audit.settle(self.audit.clock)
        return self._compared(self._client)

    def _compared(self, client: redis.Redis) -> list[Violation]:
        """Read Redis in an order that gives no false alarms while a job runs.

        A script writes a record and its stream entry in one step; the relay deletes an entry only
        once the topic has it. So if a record is read before the stream, and the stream before the
        topic's end, its entry is in one of them: if not, it was never journalled. And a record read
        after the topic and the stream is at least as new as their entries: if not, the store has
        lost it. So the order is topic, records, stream, topic. All changes made before the clock
        was read have been seen by then. The bundles that a full journal left out are in a set, and
        come from there to the stream: the set is read before the stream, and the records that it
        names count as journalled.
        """
        now = _milliseconds(client)
        found: list[Violation] = []
        pictures: dict[str, dict[str, Record]] = {}
        self.closed = set()
        clusters = {self._cluster} if self._cluster else self.audit.clusters
        for cluster in sorted(clusters):
            opened = _opened(client, cluster)
            records, damaged = OwnershipStore(client).readable_records(cluster)
            if opened is None or _opened(client, cluster) != opened:
                # It may have lost records that the job is about to restore.
                self.closed.add(cluster)
            else:
                pictures[cluster] = records
                new = {(cluster, bundle) for bundle in damaged} - self._damaged
                self._damaged |= new
                self.unreadable += len(new)
                self.audit.see_open(cluster, opened[1])
                found += self.audit.behind(cluster, records)
                self._read_left_out(client, cluster, records)
            self._read_stream(client, cluster)
        self._read_topics()
        for cluster, records in pictures.items():
            found += self.audit.unjournalled(cluster, records)
        return found + self.audit.settle(self.audit.clock if self.closed else now)

    def _read_topics(self) -> None:
        for entry in merge(
            self._journal.fresh(), self._commands.fresh(), key=lambda entry: entry.at
        ):
            if entry.topic == keys.OWNERSHIP:
                # The change before a tombstone says what was removed.
                if entry.value is not None:
                    self._take_change(entry.value)
            else:
                self._take_command(entry.value)

    def _read_stream(self, client: redis.Redis, cluster: str) -> None:
        last = "-"
        while True:
            with translate_errors(client):
                # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
                entries: Any = client.xrange(keys.journal_key(cluster), min=last, count=_PAGE)
            for _, fields in entries:
                self._take_change(fields.get(b"change"))
            if len(entries) < _PAGE:
                return
            last = f"({entries[-1][0].decode()}"

    def _read_left_out(
        self, client: redis.Redis, cluster: str, records: Mapping[str, Record]
    ) -> None:
        with translate_errors(client):
            names = {
                name.decode(errors="replace")
                for name in client.sscan_iter(keys.unjournalled_key(cluster), count=_PAGE)
            }
        for bundle in sorted(names & records.keys()):
            record = records[bundle]
            self.audit.see_change(
                Change(cluster=cluster, bundle=bundle, event=Event.RESTORE, record=record)
            )

    def _take_change(self, value: bytes | None) -> None:
        try:
            change = _change.decode(value or b"")
        except MALFORMED:
            self.unreadable += 1
            return
        if self._cluster in {None, change.cluster}:
            self.changes += 1
            self.audit.see_change(change)
        else:
            self.others.add(change.cluster)

    def _take_command(self, value: bytes | None) -> None:
        try:
            command = _command.decode(value or b"")
        except MALFORMED:
            self.unreadable += 1
            return
        if self._cluster in {None, command.cluster}:
            self.commands += 1
            # A round looks after what brokers give one another, and the journal shows that.
            if not is_of_a_broker(command.id):
                self.audit.see_command(command)
        else:
            self.others.add(command.cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()
        self._commands.close()


def follow(auditor: Auditor) -> Iterator[Violation]:
    """Yield each violation once, without end."""
    shown = set()
    while True:
        for violation in auditor.check():
            name = (violation.kind, violation.cluster, violation.bundle, violation.detail)
            if name not in shown:
                shown.add(name)
                yield violation
        time.sleep(PAUSE_SECONDS)


def _milliseconds(client: redis.Redis) -> int:
    with translate_errors(client):
        answer: Any = client.time()
    seconds, micros = answer
    return int(seconds) * 1000 + int(micros) // 1000


def _opened(client: redis.Redis, cluster: str) -> tuple[str, int] | None:
    """The history of the data, and the generation that may write; None while it is closed."""
    with translate_errors(client), client.pipeline(transaction=False) as asked:
        asked.info("replication")
        asked.hmget(keys.open_key(cluster), "replid", "generation")
        answer: Any = asked.execute()
    server, (history, generation) = answer
    if history is None or history != history_of(server):
        return None
    return history.decode(), int(generation)
