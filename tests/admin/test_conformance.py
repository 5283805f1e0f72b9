"""The kit passes the project's own broker, and finds each guard that is taken out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from admin import cli
from admin.conformance.rules import RULES
from admin.conformance.run import play, started
from deploy.redis_server import RedisServer
from tests.admin.broken_brokers import FAULTS

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
    done = CliRunner().invoke(cli.app, ["conformance", command, "--redis", redis_server.url])
    assert (done.exit_code, done.stdout) == (code, "")
    assert says in done.stderr
    assert done.stderr.count("the end of ") <= 1
    assert ("note: {port} stays as it is; filled in are {redis}" in done.stderr) == (
        "{port}" in command
    )
