"""A recording with migrations in it, on a real Kafka: what it replays, and what commands it has."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
import pytest
from typer.testing import CliRunner

from admin import cli
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.publisher import Outgoing
from tests.support.commands import published
from tests.support.migrations import GREEN
from tests.support.plain_job import HELD, PlainJob
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts, Gate, Wave
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.command import CommandKind
from trimtab.wire.intent import Intent, IntentKind

pytestmark = pytest.mark.e2e

CLUSTER = "moving"
SETTINGS = Settings.parse({"round.interval": 2.0, "replay.export_interval": 6.0})
LAST = 14
FAILED = Counts(active=30, attempts=40, errors=9)
SAID: dict[int, tuple[IntentKind, dict[str, object]]] = {
    3: (IntentKind.MIGRATION_START, {"id": "m", "target": GREEN, "waves": [Wave(("t/a",), 0.5)]}),
    4: (IntentKind.MIGRATION_PROGRESS, {"counts": [FAILED, Counts(active=3)]}),
    6: (IntentKind.MIGRATION_RESUME, {}),
    8: (IntentKind.MIGRATION_PROGRESS, {"counts": [Counts(migrated=30), Counts(active=3)]}),
    10: (IntentKind.MIGRATION_ROLL_BACK, {}),
    12: (IntentKind.MIGRATION_PROGRESS, {"counts": [Counts(migrated=30, stays=30), Counts()]}),
}
"""Intents, by the batch that reads them."""
WAY = ["running/0", "paused/0", "running/0", "running/1", "rolling-back/1", "rolled-back/1"]


@pytest.fixture(scope="module")
def job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PlainJob]:
    with PlainJob(kafka.bootstrap, redis_server.url, CLUSTER, SETTINGS, "q-moving") as ran:
        at = time.time_ns() // 1_000_000
        for number in range(LAST + 1):
            ran.report_all()
            if number == 2:
                ran.claim_all()
                for broker in HELD:
                    ran.client.hset(keys.sessions_key(CLUSTER), broker, "1")
            if number in SAID:
                tell(ran, number, *SAID[number])
            ran.batch(at + 1000 * number)
        yield ran


def tell(job: PlainJob, number: int, kind: IntentKind, more: dict[str, object]) -> None:
    said = {"id": f"i-{number}", "cluster": CLUSTER, "kind": kind, "gate": Gate(1000), **more}
    if kind is not IntentKind.MIGRATION_START:
        said["migration"] = "m"
    else:
        said["scope"] = "cluster"
    intent = msgspec.convert(said, Intent)
    job.publisher.publish([Outgoing(keys.CONTROL, CLUSTER, msgspec.json.encode(intent))])


@pytest.mark.parametrize("first", [0, 9])
def test_a_recording_with_migrations_replays_byte_for_byte(
    job: PlainJob, kafka: KafkaServer, first: int
) -> None:
    """From the query's first batch, and from an export while it was under way."""
    batches = [each for each in job.topics.batches() if each.query == job.query]
    known = [f"{m.state}/{m.wave}" for batch in batches for m in batch.migrations]
    assert [each for i, each in enumerate(known) if known[i - 1 : i] != [each]] == WAY
    span = ["--from", str(first), "--to", str(LAST), "--query", job.query]
    result = CliRunner().invoke(
        cli.build_app(["replay"]), ["replay", "--kafka", kafka.bootstrap, *span]
    )
    assert result.exit_code == 0, result.output
    rounds = sum(len(batch.rounds) for batch in batches if batch.batch >= first)
    assert f"{rounds} the same, 0 not" in result.stdout


def test_what_brokers_are_told_of_migrations_is_copied_to_kafka(job: PlainJob) -> None:
    told = [
        each
        for each in published(job.topics.all(keys.COMMANDS))
        if each.cluster == CLUSTER and each.kind is CommandKind.TOPIC_MIGRATED
    ]
    for broker in HELD:
        mine = [each for each in told if each.broker == broker]
        assert [each.id.split("/")[1:3] for each in mine] == [each.split("/") for each in WAY]
        assert all(each.target == GREEN and each.issued_at for each in mine)
    assert MigrationState.ROLLED_BACK in {each.id.split("/")[1] for each in told}
