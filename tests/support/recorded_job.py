"""A job that records in memory what a replay needs, and remembers what it would have answered."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from simulation.replay.batches import Replay, rounds_of
from simulation.replay.run import Readers
from sinks.kafka.pages import batch_records
from sinks.kafka.publisher import Outgoing
from sinks.kafka.state_records import state_pages
from sources.records import Record
from tests.support.kept_topics import KeptTopics
from tests.support.recorded_batches import START
from trimtab.cluster.job_settings import to_record
from trimtab.explaining.telling import of_subject
from trimtab.explaining.witness import Witness
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.settings import Settings
from trimtab.store.requests import BatchId
from trimtab.wire import keys
from trimtab.wire.explanation import Explanation, RoundExplanations
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import Change
from trimtab.wire.ownership import Record as Owned
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode
from trimtab.wire.rounds import BatchRecord
from trimtab.wire.rows import Tag

INTAKE = IntakeSettings(sample_interval=1.0)
CLUSTER = "east"


class RecordedJob:
    """Of one cluster and one query; a batch every ten seconds, whatever happens."""

    def __init__(self, topics: KeptTopics, settings: Settings, query: str = "q") -> None:
        self.topics, self.query, self.number = topics, query, 0
        self.replay = Replay(INTAKE, settings, followed={CLUSTER}, explains=True)
        self._settings = settings
        self._read = {
            topic: topics.ends(topic, 0)[1]
            for topic in (keys.LOAD_REPORTS, keys.OWNERSHIP, keys.CONTROL)
        }
        self.stored: dict[int, dict[str, Explanation]] = {}
        """By round: what went to Redis."""
        self.witnesses: dict[int, Witness] = {}
        """By round: who could have been asked anything."""

    def own(self, broker: str, *bundles: str) -> None:
        for name in bundles:
            stands = Owned(state=State.OWNED, epoch=Epoch(1, 1), owner=broker)
            change = Change(cluster=CLUSTER, bundle=name, event=Event.CLAIM, record=stands)
            self._publish(keys.OWNERSHIP, f"{CLUSTER}/{name}", msgspec.json.encode(change))

    def report(self, broker: str, rates: Mapping[str, float]) -> None:
        """Of a broker whose processor is busy with 1 % for every 10 messages/s."""
        traffic = sum(rates.values())
        data = LocalBrokerData(
            cpu=Resource(traffic / 10, 100.0),
            last_stats={
                name: BundleStats(msg_rate_in=rate, msg_throughput_in=1e4 * rate, topics=4)
                for name, rate in rates.items()
            },
            bundles=list(rates),
            msg_rate_in=traffic,
            msg_throughput_in=1e4 * traffic,
            start_timestamp=1,
        )
        self._publish(keys.LOAD_REPORTS, f"{CLUSTER}/{broker}", encode(data))

    def intend(self, kind: IntentKind, **members: object) -> None:
        said = {
            "id": f"{kind.value}-{self.number}",
            "kind": kind.value,
            "cluster": CLUSTER,
        } | members
        self._publish(keys.CONTROL, CLUSTER, msgspec.json.encode(said))

    def batch(self) -> None:
        """Read, decide, and record."""
        records: list[Record] = []
        ranges: dict[str, dict[str, tuple[int, int]]] = {}
        for topic, start in self._read.items():
            end = self.topics.ends(topic, 0)[1]
            if end > start:
                records += self.topics.every(topic, 0, start, end)
                ranges[topic] = {"0": (start, end)}
                self._read[topic] = end
        rows = self.replay.run(self.at, records)
        state = [row for row in rows if row.tag == Tag.STATE]
        done = BatchRecord(
            query=self.query,
            batch=self.number,
            generation=1,
            at=self.at,
            offsets=ranges,
            rounds=tuple(rounds_of(rows).values()),
            exported=tuple(dict.fromkeys(row.cluster for row in state)),
            settings=to_record(INTAKE, self._settings) if state or not self.number else None,
        )
        self.topics.publish(batch_records(done), self.at)
        for page in state_pages(state, BatchId(self.query, self.number), 1):
            self.topics.publish(page, self.at)
        for row in rows:
            if row.tag == Tag.WHY:
                kept = msgspec.json.decode(row.payload, type=RoundExplanations)
                self.stored[kept.round] = kept.subjects
        for record in done.rounds:
            witness = self.replay.clusters[CLUSTER].witness
            assert witness is not None
            self.witnesses[record.round] = witness
        self.number += 1

    @property
    def at(self) -> int:
        """The next batch's timestamp."""
        return START + 10_000 * self.number

    def told(self, number: int, subject: str) -> Explanation:
        """What the round itself would have said, in the bytes that Redis would have got."""
        said = of_subject(self.witnesses[number], subject)
        return msgspec.json.decode(msgspec.json.encode(said), type=Explanation)

    def readers(self) -> Readers:
        return Readers(lambda: self.topics)

    def _publish(self, topic: str, key: str, value: bytes) -> None:
        self.topics.publish([Outgoing(topic, key, value)], self.at)
