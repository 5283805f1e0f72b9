"""A job and brokers that carry out an intent while it is being sent: operator ② without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec
from pydantic import SecretStr
from redis import Redis

from control.plane import ControlPlane
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.pages import batch_records
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topics import ensure_topics
from sinks.redis.answers.outcomes import Outcomes
from streaming.config import JobConfig, KafkaConfig
from tests.agent.support import A, B, Site
from tests.contracts.asking import journal
from tests.support.clusters_by_rows import rounds_in
from tests.support.opening import SureStore, let_in, server_ms
from tests.support.plans import plans_in
from tests.support.reports import arrival, report
from trimtab.cluster.job_settings import to_record
from trimtab.cluster.operator import Cluster
from trimtab.intake.fold import fold
from trimtab.intake.snapshot import IntakeSettings
from trimtab.migration.migration import Migration
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.store.requests import BatchId, transitions
from trimtab.wire.columns import pack
from trimtab.wire.intent import Intent
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.keys import LOAD_REPORTS
from trimtab.wire.lookup import ServiceUrls
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode
from trimtab.wire.rounds import BatchRecord
from trimtab.wire.rows import Row, Tag

SETTINGS = DEFAULTS.changed({"round.interval": 1.0, "round.shedding": "overload"})
"""No broker is overloaded: what moves or splits, an operator asked for."""
_TURNS = 4
"""More than any intent's bundles need from the request to the service."""


class PromptJob(ControlPlane):
    """Records a round of ``brokers``, which own nothing, and serves one caller after another."""

    def __init__(
        self, settings: JobConfig, client: Redis, cluster: str, brokers: Iterable[str]
    ) -> None:
        super().__init__(settings)
        let_in(client, cluster, 1)
        self.sites = {broker: Site(client, cluster, broker) for broker in brokers}
        self._client, self.cluster_name = client, cluster
        self._sure, self._outcomes = SureStore(client), Outcomes(client)
        self._out = Publisher(settings.kafka.bootstrap)
        self._read, self._batch = 0, 0
        self._now = server_ms(client)
        for broker in self.sites:
            self.urls.write(cluster, broker, ServiceUrls(pulsar=f"pulsar://{broker}"))
        self._operator = Cluster(cluster, {}, {}, Memory(), SETTINGS)
        self._hear()
        self._turn()

    def send(self, intent: Intent) -> None:
        super().send(intent)
        self._take(
            [
                Row(
                    self.cluster_name,
                    Tag.INTENT,
                    "trimtab.control/0/1",
                    msgspec.json.encode(intent),
                    self._now,
                )
            ]
        )
        for _ in range(_TURNS):
            self._turn()

    def report(self, topics: Mapping[str, int]) -> None:
        """Have the brokers report on Kafka how many topics their bundles have."""
        for broker, site in self.sites.items():
            stats = {each: BundleStats(topics=topics[each]) for each in site.holdings.bundles()}
            said = LocalBrokerData(cpu=Resource(10.0, 100.0), last_stats=stats, bundles=[*stats])
            record = Outgoing(LOAD_REPORTS, f"{self.cluster_name}/{broker}", encode(said))
            self._out.publish([record])

    def _hear(self) -> None:
        """What the brokers have."""
        rows = []
        for broker, site in self.sites.items():
            rates = dict.fromkeys(site.holdings.bundles(), 1.0)
            said = arrival(1, report(rates), seconds=self._now / 1000)
            known = pack(fold(None, broker, [said], IntakeSettings())[0])
            rows.append(Row(self.cluster_name, Tag.SNAPSHOT, broker, known, self._now, accepted=1))
        self._take(rows)

    def _turn(self) -> None:
        """A round; the brokers do what they are told; the job reads of it."""
        self._now = self._operator.memory.due_ms
        self._write(self._operator.wake(self._now)[0])
        for site in self.sites.values():
            site.obey()
        self._hear()
        found = journal(self._client, self.cluster_name)
        new, self._read = found[self._read :], len(found)
        self._take(
            Row(
                self.cluster_name,
                Tag.CHANGE,
                "trimtab.ownership/0/1",
                msgspec.json.encode(each),
                self._now,
            )
            for each in new
        )

    def _take(self, rows: Iterable[Row]) -> None:
        self._write(self._operator.take(rows, self._now)[0])

    def _write(self, rows: Iterable[Row]) -> None:
        rows, self._batch = [*rows], self._batch + 1
        rounds = rounds_in(rows)
        for record in rounds:
            asked = transitions(record, BatchId("q", self._batch))
            self._sure.apply_batch(
                self.cluster_name, asked, generation=1, query_id="q", batch=self._batch
            )
        self._outcomes.write(
            msgspec.json.decode(row.payload, type=IntentOutcome)
            for row in rows
            if row.tag == Tag.OUTCOME
        )
        plans = plans_in(rows)
        self.plans.write(plans, self._now)
        migrations = [
            msgspec.json.decode(row.payload, type=Migration)
            for row in rows
            if row.tag == Tag.MIGRATION
        ]
        if migrations:
            self.migrations.write(self.cluster_name, 1, migrations)
        told = to_record(IntakeSettings(), SETTINGS)
        batch = BatchRecord(
            query=self.cluster_name,
            batch=self._batch,
            generation=1,
            at=self._now,
            offsets={},
            rounds=tuple(rounds),
            plans=tuple(plans),
            migrations=tuple(migrations),
            settings=told,
        )
        self._out.publish(list(batch_records(batch)))


@contextmanager
def run_prompt_job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PromptJob]:
    """Two brokers of a cluster of the test's own, which own nothing yet."""
    ensure_topics(kafka.bootstrap)
    settings = JobConfig(
        kafka=KafkaConfig(bootstrap=kafka.bootstrap), redis_url=SecretStr(redis_server.url)
    )
    client = Redis.from_url(redis_server.url, protocol=2)
    with client, PromptJob(settings, client, f"prompt-{time.time_ns()}", (A, B)) as prompt:
        yield prompt
