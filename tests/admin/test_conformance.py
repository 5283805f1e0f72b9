"""The kit passes the project's own broker, and finds each guard that is taken out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from redis.exceptions import NoScriptError, ResponseError
from typer.testing import CliRunner

from admin import cli
from admin.conformance import program
from admin.conformance.line import Line
from admin.conformance.program import Told
from admin.conformance.rules import RULES
from admin.conformance.run import play, started
from admin.conformance.stage import Stage
from admin.exit_codes import FAILED
from deploy.redis_server import RedisServer
from sinks.redis.server.connections import redis_client
from tests.admin.broken_brokers import FAULTS
from trimtab.wire.keys import command_stream

PYTHON = f"{sys.executable} -m"


@pytest.mark.slow
def test_the_example_broker_keeps_every_rule(redis_server: RedisServer, tmp_path: Path) -> None:
    launch = started(f"{PYTHON} admin.conformance.subject", tmp_path)
    verdicts = list(play(redis_server.url, launch))
    assert [verdict.rule for verdict in verdicts] == list(RULES)
    assert [verdict for verdict in verdicts if verdict.reason] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_guard_taken_out_breaks_its_rule(
    redis_server: RedisServer, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The broken brokers are no part of the installed packages.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    launch = started(f"{PYTHON} tests.admin.broken_brokers {name}", tmp_path)
    verdicts = {
        verdict.rule: verdict.reason
        for verdict in play(redis_server.url, launch, ["takes-lease", *FAULTS[name].rules], name)
    }
    assert verdicts.pop("takes-lease") == ""
    assert all(verdicts.values()), verdicts


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        pytest.param("/nonexistent", 1, "/nonexistent", id="no program"),
        pytest.param("'half", 2, "No closing quotation", id="no command line"),
        pytest.param("", 2, "the command is empty", id="nothing"),
        pytest.param(
            f"{sys.executable} -c 'raise SystemExit(\"no such {{port}}\")'",
            1,
            "no such {port}",
            id="a broker that ends",
        ),
    ],
)
def test_a_broker_that_does_not_start_is_told_once_with_its_cause(
    redis_server: RedisServer, command: str, code: int, says: str
) -> None:
    done = CliRunner().invoke(
        cli.build_app(["conformance"]), ["conformance", command, "--redis", redis_server.url]
    )
    assert (done.exit_code, done.stdout) == (code, "")
    assert says in done.stderr
    assert done.stderr.count("the end of ") <= 1
    assert ("note: {port} stays as it is; filled in are {redis}" in done.stderr) == (
        "{port}" in command
    )


def test_a_page_of_another_form_is_told(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "START_S", 3.0)
    (tmp_path / "served").write_text("[]")
    serves = f"{sys.executable} -m http.server --bind 127.0.0.1 --directory {tmp_path}"
    command = f"sh -c '{serves} ${{TRIMTAB_SERVED#*:}}'"
    invoked = CliRunner().invoke(
        cli.build_app(["conformance"]), ["conformance", command, "--redis", redis_server.url]
    )
    assert invoked.exit_code == FAILED
    assert "/served answers no JSON object of bundles to epochs" in invoked.output


def test_a_verdict_names_what_the_server_refused(redis_server: RedisServer) -> None:
    with Line(redis_server.url) as line, redis_client(line.url) as client:
        with pytest.raises(ResponseError, match="NOGROUP"):
            client.xreadgroup("agent", "b", {"no stream": "0"})
        assert line.refusal == ""
        with pytest.raises(NoScriptError):
            client.evalsha("0" * 40, 0)
        assert line.refusal.startswith("NOSCRIPT")
        client.eval("return {'closed', 'it is being rebuilt'}", 0)
        assert line.refusal == "closed: it is being rebuilt"
        refused = '[{"id":"x/claim","bundle":"b","accepted":false,"reason":"no-lease"}]'
        client.eval(f"return {{'applied', '{refused}'}}", 0)
        assert line.refusal == "no-lease (request x/claim)"


def test_a_consumer_group_alone_does_not_count_as_reading_commands(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """A broker may make the group before it has agreed with the store."""
    told = Told(redis=redis_server.url, cluster="groups", broker="b:1", served="127.0.0.1:1")
    with Line(redis_server.url) as line, redis_client(redis_server.url) as client:
        stage = Stage(client, told, started("true", tmp_path), line)
        stream = command_stream(told.cluster, told.broker)
        client.xgroup_create(stream, "agent", "0", mkstream=True)
        assert not stage.reads_its_stream()
        client.xreadgroup("agent", told.broker, {stream: "0"})
        assert stage.reads_its_stream()
        stage.leave()
