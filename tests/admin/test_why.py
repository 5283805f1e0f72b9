"""`trimtab why` against what a job left in a real Redis, and against a replay from a real Kafka."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner, Result

from admin import cli
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.redis_server import RedisServer
from sinks.redis.answers.explanations import Explanations
from tests.support.commands import in_streams, published
from tests.support.plain_job import PlainJob
from tests.support.reports import bundle
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.rounds import RoundRecord

pytestmark = pytest.mark.e2e

CLUSTER = "asked"
SETTINGS = Settings.parse(
    {
        "round.shedding": "avg",
        "round.placement": "avg",
        "round.interval": 2.0,
        "round.grace_period": 60.0,
        "avg.low_hits": 8,
        "avg.high_hits": 2,
        "unload.min_rate": 1.0,
        "unload.max_share": 0.4,
        "replay.export_interval": 4.0,
    }
)


@pytest.fixture(scope="module")
def job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PlainJob]:
    """One that ran for ten batches a second apart and explained its rounds."""
    with PlainJob(kafka.bootstrap, redis_server.url, CLUSTER, SETTINGS, "q-asked") as ran:
        ran.replay.explains = True
        ran._writer.explanations = Explanations(ran.client)
        at = time.time_ns() // 1_000_000
        for number in range(10):
            ran.report_all(number / 10)
            if number == 2:
                ran.claim_all()
            ran.batch(at + 1000 * number)
        yield ran


@pytest.fixture(scope="module")
def moved(job: PlainJob) -> RoundRecord:
    """The first round that moved anything; what it moved rests in the others."""
    batches = [batch for batch in job.topics.batches() if batch.query == job.query]
    return next(held for batch in batches for held in batch.rounds if held.moves)


def why(redis_server: RedisServer, *arguments: str) -> Result:
    place = ["--cluster", CLUSTER, "--redis", redis_server.url]
    return CliRunner().invoke(cli.build_app(["why"]), ["why", *arguments, *place])


def test_a_command_says_in_figures_what_its_plan_does(job: PlainJob, moved: RoundRecord) -> None:
    plan = f"{CLUSTER}/{moved.round}"
    issued = [each for each in published(job.topics.all(keys.COMMANDS)) if each.plan == plan]
    assert sorted(each.id for each in in_streams(job.client, CLUSTER) if each in issued) == sorted(
        each.id for each in issued
    )
    said = {move.bundle: move.why for move in moved.moves}
    assert {each.bundle: each.why for each in issued} == said
    assert all(text.startswith("source 85.") for text in said.values())


def test_a_bundle_that_moved(redis_server: RedisServer, moved: RoundRecord) -> None:
    move = moved.moves[0]
    result = why(redis_server, move.bundle, "--round", str(moved.round))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{move.bundle} in {CLUSTER}, round {moved.round} of 20")
    assert lines[1] == "moved from hot:1 to cold:1: high-pair (avg)"
    assert "hot:1 at 85." in lines[2]
    source, destination, range_ = move.why.split(", ")
    assert f"expected usage of hot:1: {source.removeprefix('source ')}" in lines
    assert f"expected usage of cold:1: {destination.removeprefix('destination ')}" in lines
    assert f"{range_.replace('range', 'range of expected usage:')}" in lines
    assert any(line.startswith("otherwise with avg.") for line in lines)
    assert any(line.split() == ["cold:1", *line.split()[1:3], "chosen"] for line in lines)


def test_a_broker_is_in_every_round_s_record(redis_server: RedisServer, moved: RoundRecord) -> None:
    result = why(redis_server, "hot:1", "--round", str(moved.round))
    assert result.exit_code == 0, result.output
    assert "gives: high-pair" in result.stdout
    assert f"it gives {len(moved.moves)} bundles and gets 0" in result.stdout
    newest = json.loads(why(redis_server, "hot:1", "-o", "json").stdout)
    assert newest["v"] == 1
    assert newest["explanation"]["round"] == newest["rounds"][0] > moved.round
    assert moved.round in newest["rounds"]


def test_whom_no_round_told_of_is_sent_to_a_replay(
    redis_server: RedisServer, moved: RoundRecord
) -> None:
    result = why(redis_server, bundle(13, 16))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"Next: trimtab why {bundle(13, 16)} --cluster {CLUSTER} --round" in result.stderr
    result = why(redis_server, moved.moves[-1].bundle, "--round", "1")
    assert result.exit_code == 1
    assert f"round 1 kept nothing of {moved.moves[-1].bundle}; round " in result.stderr


def test_a_replay_answers_as_the_job_did(
    kafka: KafkaServer, redis_server: RedisServer, moved: RoundRecord
) -> None:
    """The state hash, and with it every figure, comes out the same."""
    for subject in (moved.moves[0].bundle, "hot:1"):
        asked = (subject, "--round", str(moved.round), "-o", "json")
        stored = json.loads(why(redis_server, *asked).stdout)
        result = why(redis_server, *asked, "--replay", "--kafka", kafka.bootstrap)
        assert result.exit_code == 0, result.output
        again = json.loads(result.stdout)
        assert again["asRecorded"]
        assert again["explanation"] == stored["explanation"]


def test_a_replay_tries_what_would_change_the_answer(
    kafka: KafkaServer, redis_server: RedisServer, moved: RoundRecord
) -> None:
    asked = (moved.moves[0].bundle, "--round", str(moved.round))
    result = why(redis_server, *asked, "--replay", "--kafka", kafka.bootstrap)
    assert result.exit_code == 0, result.output
    assert "tried: stayed, " in result.stdout


def test_a_replay_explains_whom_no_round_told_of(
    kafka: KafkaServer, redis_server: RedisServer, moved: RoundRecord
) -> None:
    asked = (bundle(13, 16), "--round", str(moved.round), "--replay", "--kafka", kafka.bootstrap)
    result = why(redis_server, *asked)
    assert result.exit_code == 0, result.output
    assert "stayed: " in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--replay"], "--replay needs --round", id="which round"),
        pytest.param(
            ["--replay", "--round", "900"], "round 900 of asked is not recorded", id="not recorded"
        ),
    ],
)
def test_what_cannot_be_replayed_gives_2(
    kafka: KafkaServer, redis_server: RedisServer, job: PlainJob, arguments: list[str], said: str
) -> None:
    assert job.number
    result = why(redis_server, "hot:1", *arguments, "--kafka", kafka.bootstrap)
    assert result.exit_code == 2
    assert said in result.stderr


def test_an_unknown_cluster(redis_server: RedisServer) -> None:
    result = CliRunner().invoke(
        cli.build_app(["why"]),
        ["why", "hot:1", "--cluster", "nowhere", "--redis", redis_server.url],
    )
    assert result.exit_code == 1
    assert "nothing is kept of any round of nowhere" in result.stderr


def test_a_redis_that_is_not_there_gives_5() -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    result = CliRunner().invoke(
        cli.build_app(["why"]), ["why", "hot:1", "--cluster", "c", "--redis", url]
    )
    assert result.exit_code == 5
    assert result.stdout == ""
