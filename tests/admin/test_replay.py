"""`trimtab replay` against a real Kafka that has lost what came before an export."""

from __future__ import annotations

import time
from collections.abc import Iterator
from io import StringIO

import msgspec
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from rich.console import Console
from typer.testing import CliRunner, Result

from admin import cli
from admin.commands.tools.replay import _totals, bound_of, show
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.replay.difference import Difference
from simulation.replay.span import Bound, Span
from simulation.replay.verdict import ReplayVerdict
from sinks.kafka.publisher import Outgoing
from tests.support.commands import published
from tests.support.plain_job import PlainJob
from tests.support.recorded_batches import held
from trimtab.explaining.words import iso
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.command import Command
from trimtab.wire.rounds import BatchRecord, RoundRecord, ShadowRecord, ShadowSide

pytestmark = pytest.mark.e2e

CLUSTER = "replayed"
SETTINGS = Settings.parse(
    {
        "round.shedding": "avg",
        "round.placement": "avg",
        "round.interval": 2.0,
        "round.grace_period": 1.0,
        "round.move_deadline": 5.0,
        "avg.low_hits": 1,
        "avg.high_hits": 1,
        "unload.min_rate": 1.0,
        "replay.export_interval": 8.0,
    }
)
LAST = 24


@pytest.fixture(scope="module")
def job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PlainJob]:
    """One that ran for 25 batches a second apart, started with other settings on its way."""
    with PlainJob(kafka.bootstrap, redis_server.url, CLUSTER, SETTINGS, "q-replayed") as ran:
        at = time.time_ns() // 1_000_000
        for number in range(LAST + 1):
            ran.report_all(-number)
            if number == 2:
                ran.claim_all()
            if number == 17:
                ran.start(SETTINGS.changed({"unload.max_share": 0.4}))
            ran.batch(at + 1000 * number)
        yield ran


def replay(kafka: KafkaServer, *arguments: str) -> Result:
    return CliRunner().invoke(
        cli.build_app(["replay"]), ["replay", "--kafka", kafka.bootstrap, *arguments]
    )


def recorded(job: PlainJob) -> list[BatchRecord]:
    return [batch for batch in job.topics.batches() if batch.query == job.query]


def test_it_exported_now_and_then_and_said_what_it_was_started_with(job: PlainJob) -> None:
    exported = [batch.batch for batch in recorded(job) if batch.exported == (CLUSTER,)]
    assert exported == [0, 8, 16, 24]
    said = [batch.batch for batch in recorded(job) if batch.settings is not None]
    assert said == [0, 8, 16, 17, 24]


def test_all_of_it(job: PlainJob, kafka: KafkaServer) -> None:
    result = replay(kafka, "--from", "0", "--to", str(LAST), "--query", job.query)
    assert result.exit_code == 0, result.output
    assert "the query's first batch" in result.stdout


def test_a_span_by_time_starts_from_the_export_before_it(job: PlainJob, kafka: KafkaServer) -> None:
    batches = recorded(job)
    since, until = (iso(batch.at) for batch in (batches[12], batches[-1]))
    forget(kafka, batches[8])
    result = replay(kafka, "--from", since, "--to", until, "--cluster", CLUSTER)
    assert result.exit_code == 0, result.output
    assert f"what was held of {CLUSTER} after batch 8" in result.stdout
    held = [each for batch in batches[12:] for each in batch.rounds]
    assert f"{len(held)} the same, 0 not" in result.stdout
    issued = [command for command in commands(job) if int(command.id.split("/")[2]) >= 12]
    assert issued
    assert f"{len(issued)} the same, byte for byte, 0 not" in result.stdout


def test_a_span_whose_reports_are_gone_cannot_be_replayed(
    job: PlainJob, kafka: KafkaServer
) -> None:
    forget(kafka, recorded(job)[8])
    result = replay(kafka, "--from", "5", "--to", str(LAST), "--query", job.query)
    assert result.exit_code == 2
    assert "no longer has what was at" in result.stderr
    assert "ask for a later span" in result.stderr


def test_another_strategy_stands_beside_it(job: PlainJob, kafka: KafkaServer) -> None:
    result = replay(
        kafka, "--from", "12", "--to", str(LAST), "--strategy", "overload", "--query", job.query
    )
    assert result.exit_code == 0, result.output
    moves = sum(len(each.moves) for batch in recorded(job)[9:] for each in batch.rounds)
    assert f"{CLUSTER}, avg: {moves} moves" in result.stdout
    assert f"{CLUSTER}, overload: " in result.stdout


def test_each_comparison_has_sums_of_its_own() -> None:
    """They start again where the job's strategy changes."""

    def side(strategy: str, moves: int) -> ShadowSide:
        return ShadowSide(
            strategy=strategy,
            placement="",
            range=0.2,
            moves=0,
            bounces=0,
            mean_range=0.2,
            total_moves=moves,
            total_bounces=0,
        )

    def record(at: int, since: int, strategy: str, moves: int) -> RoundRecord:
        compared = ShadowRecord(
            since=since, rounds=1, champion=side(strategy, moves), challenger=side("threshold", 0)
        )
        return msgspec.structs.replace(held(CLUSTER), at=at, shadow=compared)

    alone = [*_totals([record(1, 1, "trimtab", 3), record(2, 1, "trimtab", 47)])]
    assert alone[0] == f"{CLUSTER}, trimtab: 47 moves, 0 of them bounces, mean range 20.0 %"
    both = [*_totals([record(2, 1, "trimtab", 47), record(3, 3_600_000, "avg", 1)])]
    assert [line.split(" moves")[0] for line in both] == [
        f"{CLUSTER} from 1970-01-01T00:00:00, trimtab: 47",
        f"{CLUSTER} from 1970-01-01T00:00:00, threshold: 0",
        f"{CLUSTER} from 1970-01-01T01:00:00, avg: 1",
        f"{CLUSTER} from 1970-01-01T01:00:00, threshold: 0",
    ]


def test_another_command_than_the_one_that_was_issued_is_told_with_both_sides(
    job: PlainJob, kafka: KafkaServer
) -> None:
    """The last test here of what the job left behind: what it publishes stays."""
    good = commands(job)[-1]
    forged = msgspec.structs.replace(good, reason="another")
    key = f"{good.cluster}/{good.broker}"
    job.publisher.publish([Outgoing(keys.COMMANDS, key, msgspec.json.encode(forged))])
    result = replay(kafka, "--from", "20", "--to", str(LAST), "--query", job.query)
    assert result.exit_code == 1
    first, one, other = result.stdout.splitlines()[-3:]
    assert first == f"first difference: batch {good.id.split('/')[2]}, {good.id}"
    assert one == shown("recorded", forged)
    assert other == shown("replayed", good)


def shown(side: str, command: Command) -> str:
    return f"  {side} {msgspec.json.encode(command).decode()}"


def test_a_recording_of_a_version_that_remembered_otherwise_is_told_as_one() -> None:
    verdict = ReplayVerdict(Span("q", 3, 4, (0, 2), None))
    verdict.unlike = [
        Difference(3, "e, round 1, stateHash", "0", "1"),
        Difference(4, "e, round 2, gone[0]", "a", "nothing"),
    ]
    with StringIO() as shown:
        show(Console(file=shown), verdict)
        last = shown.getvalue().splitlines()[-1]
    assert last.startswith(
        "1 of 2 rounds that differ decided the same, and only what they remember"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--from", "soon", "--to", "3"], "neither the number of a batch", id="time"),
        pytest.param(["--from", "1"], "--to", id="no end"),
        pytest.param(["--from", "3", "--to", "1"], "--from is after --to", id="exchanged"),
        pytest.param(["--from", "1", "--to", "2", "--strategy", "x"], "no such", id="strategy"),
    ],
)
def test_wrong_usage_gives_2(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(cli.build_app(["replay"]), ["replay", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("12", Bound(12, is_number=True)),
        ("1970-01-01T00:00:01.5Z", Bound(1500)),
        ("1970-01-01T01:00:00+01:00", Bound(0)),
        ("1970-01-02", Bound(86_400_000)),
    ],
)
def test_a_bound_is_a_batch_or_a_time_in_utc(text: str, bound: Bound) -> None:
    assert bound_of(text) == bound


def commands(job: PlainJob) -> list[Command]:
    """Those of the job that Kafka has."""
    told = published(job.topics.all(keys.COMMANDS))
    return [command for command in told if command.id.startswith(f"{CLUSTER}/{job.query}/")]


def forget(kafka: KafkaServer, batch: BatchRecord) -> None:
    """As retention does: drop every report up to the batch, that batch's included."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    ends = [
        TopicPartition(keys.LOAD_REPORTS, int(partition), end)
        for partition, (_, end) in batch.offsets[keys.LOAD_REPORTS].items()
    ]
    for done in admin.delete_records(ends).values():
        done.result()
