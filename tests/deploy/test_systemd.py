"""The units start what there is, and the job tells systemd what they wait for."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from admin.cli import build_app
from streaming import supervisor
from streaming.shutdown import FENCED, STUCK, UNREACHABLE, USAGE
from streaming.watchdog import LOOK_SECONDS

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
INSTALLED = "/opt/trimtab/bin"


def settings_of(unit: Path) -> dict[str, list[str]]:
    """Each setting's values; lines that end in a backslash go on."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text("utf-8").replace("\\\n", " ").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value.strip())
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text("utf-8").replace(INSTALLED, sysconfig.get_path("scripts")))
    done = subprocess.run(
        [analyze, "verify", "--recursive-errors=no", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_types_a_command_that_exists(unit: Path) -> None:
    [line] = settings_of(unit)["ExecStart"]
    program, name, *arguments = shlex.split(line)
    assert program == f"{INSTALLED}/trimtab"
    command = get_command(build_app())
    with command.make_context("trimtab", [name]) as context:
        found = command.get_command(context, name)  # type: ignore[attr-defined] # it is a group
    known = {option for parameter in found.params for option in parameter.opts}
    assert {word for word in arguments if word.startswith("--")} <= known


def test_the_job_is_started_again_unless_that_cannot_help() -> None:
    """As the table of exit codes says; one that is fenced stands by from then on."""
    unit = settings_of(ROOT / "deploy/systemd/trimtab-job.service")
    prevented = {int(code) for value in unit["RestartPreventExitStatus"] for code in value.split()}
    assert unit["Restart"] == ["on-failure"]
    assert USAGE in prevented
    assert not prevented & {FENCED, UNREACHABLE, STUCK}
    assert "--standby" in unit["ExecStart"][0]


def test_systemd_is_more_patient_than_the_job_looks_often() -> None:
    [seconds] = settings_of(ROOT / "deploy/systemd/trimtab-job.service")["WatchdogSec"]
    assert float(seconds) >= 30 * LOOK_SECONDS


@pytest.fixture(params=["a path", "abstract"])
def told(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    """Where systemd listens."""
    name = str(tmp_path / "notify")
    address = name if request.param == "a path" else f"\0{name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        monkeypatch.setenv("NOTIFY_SOCKET", address.replace("\0", "@"))
        yield listening


@pytest.mark.parametrize(
    ("tell", "message"),
    [
        (lambda: supervisor.tell_ready("active"), b"READY=1\nSTATUS=active"),
        (supervisor.tell_alive, b"WATCHDOG=1"),
        (supervisor.tell_stopping, b"STOPPING=1"),
    ],
)
def test_systemd_hears_how_the_job_is(
    told: socket.socket, tell: Callable[[], None], message: bytes
) -> None:
    tell()
    assert told.recv(100) == message


@pytest.mark.usefixtures("told")
def test_a_listener_that_does_not_read_holds_nothing_up() -> None:
    for _ in range(5_000):
        supervisor.tell_alive()


@pytest.mark.parametrize("address", ["", "/nowhere/notify"])
def test_without_a_listener_nothing_is_said(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    supervisor.tell_alive()
