"""What `trimtab-agent` refuses to start with, and the exit code that tells a supervisor so."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from agent import main


@pytest.fixture(autouse=True)
def _logging_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "log_to_stderr", lambda: None)


def started(*options: str) -> Result:
    program = typer.Typer()
    program.command()(main.run)
    return CliRunner().invoke(program, ["--cluster", "c", "--broker", "b:1", *options])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--cluster", "c{"], "is not cluster/broker", id="a name"),
        pytest.param(["--redis", "http://x"], "not redis://host:port/db", id="an address"),
        pytest.param(["--state", "/nowhere/state"], "its folder exists", id="a file's folder"),
    ],
)
def test_wrong_options_are_named_and_give_2(options: list[str], said: str) -> None:
    result = started(*options)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_a_file_that_is_not_an_agents_gives_2(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not SQLite, and long enough to be read as a header of one\n")
    result = started("--state", str(tmp_path / "state"))
    assert (result.exit_code, "move it away" in result.stderr) == (2, True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_a_metrics_port_that_is_taken_on_its_host_gives_1(host: str) -> None:
    """It is no wrong usage: the same command works once the port is free."""
    with socket.create_server((host, 0)) as taken:
        port = str(taken.getsockname()[1])
        result = started("--metrics-host", host, "--metrics-port", port)
    assert (result.exit_code, "choose another" in result.stderr) == (1, True)
