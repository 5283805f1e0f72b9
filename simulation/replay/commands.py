"""Compares the commands that replayed rounds issue with those on trimtab.commands.

requests      from the rounds, as the job made them
outcomes      from the journal: the id of an accepted request is in the record it wrote
commands      of the accepted requests, stamped with that record, encoded as the job encodes them
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from simulation.replay.difference import Difference, difference
from simulation.replay.recorded import RecordedTopics
from simulation.replay.run import ReplayCycle
from sinks.kafka.readable import MALFORMED
from sources.records import Record
from trimtab.ownership import Event, State
from trimtab.store.requests import BatchId, is_of_a_broker, issue_commands, transitions
from trimtab.wire import keys
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change, Transition, TransitionOutcome


@dataclass(slots=True)
class Issued:
    """Counts of the requests' outcomes, and of how their commands compare."""

    requests: int = 0
    accepted: int = 0
    commands: int = 0
    """Commands that are equal on both sides, byte for byte."""
    differences: list[Difference] = field(default_factory=list)
    expired: int = 0
    """Commands that Kafka has dropped."""
    untold: list[str] = field(default_factory=list)
    """Ids of requests whose commands Kafka has but which the journal lacks."""


class _Told(msgspec.Struct):
    id: str


@dataclass(frozen=True, slots=True)
class _Asked:
    batch: int
    at: int
    request: Transition


@dataclass(slots=True)
class Commands:
    """The commands of one query's batches from ``first`` on; give it every step in order."""

    query: str
    first: int
    _asked: dict[str, _Asked] = field(default_factory=dict)
    _run: set[tuple[str, int]] = field(default_factory=set)
    """Clusters and batches whose rounds were replayed."""
    _journal_from: dict[int, int] = field(default_factory=dict)
    """Partition to an offset before any change that these batches asked for."""

    def take(self, step: ReplayCycle) -> None:
        """Note the requests of a batch."""
        batch = BatchId(step.batch.query, step.batch.batch)
        if batch.batch < self.first:
            read = step.batch.offsets.get(keys.OWNERSHIP, {})
            self._journal_from |= {int(partition): end for partition, (_, end) in read.items()}
            return
        for record in step.again.values():
            self._run.add((record.cluster, batch.batch))
            for request in transitions(record, batch):
                self._asked[request.id] = _Asked(batch.batch, step.batch.at, request)
        self._run |= {(cluster, batch.batch) for cluster in step.recorded}

    def compared(self, topics: RecordedTopics) -> Issued:
        """Compare the commands with Kafka's; raises Missing."""
        there = self._there(topics)
        changes = self._changes(topics)
        horizon = max((_horizon(topics, p) for p in topics.partitions(keys.COMMANDS)), default=0)
        found = Issued(requests=len(self._asked))
        for name, asked in self._asked.items():
            outcome = _outcome(asked.request, changes.get(name))
            found.accepted += outcome.accepted
            copies = {c.id: there.pop(c.id, []) for c in asked.request.commands}
            if name not in changes and any(copies.values()):
                found.untold.append(name)
            for command in issue_commands([asked.request], [outcome]):
                if copies[command.id] or asked.at >= horizon:
                    unlike = list(_unlike(command, copies[command.id], asked.batch))
                    found.differences += unlike
                    found.commands += not unlike
                else:
                    found.expired += 1
        for name, records in there.items():
            batch = int(name.split("/")[2])
            found.differences.append(difference(batch, name, records[0].value, None))
        found.differences.sort(key=lambda each: each.batch)
        return found

    def _there(self, topics: RecordedTopics) -> dict[str, list[Record]]:
        """The commands of these batches that Kafka has, by id."""
        told: dict[str, list[Record]] = defaultdict(list)
        decoder = msgspec.json.Decoder(_Told)
        for record in topics.all(keys.COMMANDS):
            # Only a job writes to this topic, but any client may.
            with suppress(*MALFORMED):
                name = decoder.decode(record.value or b"").id
                if self._is_ours(name):
                    told[name].append(record)
        return told

    def _is_ours(self, name: str) -> bool:
        # Brokers issue some too, from what they did: no round has them.
        cluster, query, batch, *_ = *name.split("/"), "", ""
        ours = query == self.query and batch.isdecimal() and not is_of_a_broker(name)
        return ours and (cluster, int(batch)) in self._run

    def _changes(self, topics: RecordedTopics) -> dict[str, Change]:
        """The journal's changes for the requests, by their ids."""
        found: dict[str, Change] = {}
        for change in self._journal(topics):
            asked = self._asked.get(change.record.by)
            # A merge writes its id into the neighbour's record as well.
            if asked is not None and asked.request.bundle == change.bundle:
                found.setdefault(change.record.by, change)
            if len(found) == len(self._asked):
                break
        return found

    def _journal(self, topics: RecordedTopics) -> Iterator[Change]:
        decoder = msgspec.json.Decoder(Change)
        for partition in sorted(topics.partitions(keys.OWNERSHIP)):
            low, high = topics.ends(keys.OWNERSHIP, partition)
            start = max(low, self._journal_from.get(partition, low))
            for record in topics.between(keys.OWNERSHIP, partition, start, high):
                with suppress(*MALFORMED):
                    yield decoder.decode(record.value or b"")


def _outcome(request: Transition, change: Change | None) -> TransitionOutcome:
    """The store's answer, which a repeat of the request gets too."""
    record = change.record if change else None
    fell = record is not None and record.state is State.QUARANTINED
    accepted = record is not None and (not fell or request.event is Event.QUARANTINE)
    return TransitionOutcome(id=request.id, bundle=request.bundle, accepted=accepted, record=record)


def _unlike(command: Command, copies: list[Record], batch: int) -> Iterator[Difference]:
    """Yield a difference if Kafka has another key or value, in any copy, or none."""
    key, value = f"{command.cluster}/{command.broker}".encode(), msgspec.json.encode(command)
    if not copies:
        yield difference(batch, command.id, None, value)
    for copy in copies:
        if copy.value != value:
            yield difference(batch, command.id, copy.value, value)
        elif copy.key != key:
            yield difference(batch, f"key of {command.id}", copy.key, key)


def _horizon(topics: RecordedTopics, partition: int) -> int:
    """The time before which commands may have been dropped; 0: none were."""
    low, high = topics.ends(keys.COMMANDS, partition)
    if low == 0:
        return 0
    oldest = next(topics.between(keys.COMMANDS, partition, low, high), None)
    return oldest.at if oldest else 1 << 62
