"""The command line: what goes to stdout, and what each exit code means."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from admin import cli
from deploy.finding import Finding, bad, good
from deploy.ports import free_port

RIGHT = good("JDK", "17.0.1 at /usr/bin/java")
WRONG = bad("jars", "2 of 40 (a.jar: missing)", "python -m deploy.jars")


def examined(*findings: Finding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.doctor.examine", lambda **_: list(findings))
    monkeypatch.setattr("admin.commands.tools.doctor.is_free", lambda _: True)


def test_a_healthy_machine_gives_0(monkeypatch: pytest.MonkeyPatch) -> None:
    examined(RIGHT, monkeypatch=monkeypatch)
    result = CliRunner().invoke(cli.build_app(["doctor"]), ["doctor"])
    assert result.exit_code == 0
    assert "17.0.1 at /usr/bin/java" in result.stdout


def test_each_finding_comes_with_its_next_command_and_gives_6(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    examined(RIGHT, WRONG, monkeypatch=monkeypatch)
    result = CliRunner().invoke(cli.build_app(["doctor"]), ["doctor"])
    assert result.exit_code == 6
    assert "jars: python -m deploy.jars" in result.stdout.splitlines()


def test_findings_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    examined(RIGHT, WRONG, monkeypatch=monkeypatch)
    result = CliRunner().invoke(cli.build_app(["doctor"]), ["doctor", "-o", "json"])
    assert result.exit_code == 6
    said = json.loads(result.stdout)
    assert said["v"] == 1
    assert [(f["name"], f["ok"]) for f in said["findings"]] == [
        ("JDK", True),
        ("jars", False),
        ("metrics port", True),
    ]
    assert said["findings"][1]["next_command"] == "python -m deploy.jars"


@pytest.mark.parametrize(("content", "code"), [(b"trimtab_generation 1.0", 0), (b"else", 6)])
def test_the_metrics_port_may_be_a_job_s_and_no_other_program_s(
    content: bytes, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.doctor.examine", lambda **_: [])
    monkeypatch.setattr("admin.commands.tools.doctor.is_free", lambda _: False)
    monkeypatch.setattr("admin.commands.tools.doctor.urlopen", lambda *_, **__: BytesIO(content))
    assert CliRunner().invoke(cli.build_app(["doctor"]), ["doctor"]).exit_code == code


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["no-such-command"], id="command"),
        pytest.param(["demo", "--no-such-option"], id="option"),
        pytest.param(["demo", "--seconds", "soon"], id="not a number"),
        pytest.param(["demo", "--seconds", "0"], id="out of bounds"),
        pytest.param([], id="nothing asked"),
    ],
)
def test_wrong_usage_gives_2_and_leaves_stdout_empty(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli.build_app(), arguments)
    assert result.exit_code == 2
    assert arguments == [] or result.stdout == ""


def test_a_fleet_that_cannot_be_gives_2_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.build_app(["demo"]), ["demo", "--brokers", "1"])
    assert result.exit_code == 2
    assert "brokers must be at least 2" in result.stderr
    assert not list(tmp_path.rglob("*.log"))


def test_a_kafka_that_is_not_there_gives_5_and_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sinks.kafka.topics.TIMEOUT_SECONDS", 0.5)
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", address)
    result = CliRunner().invoke(cli.build_app(["kafka"]), ["kafka", "create-topics"])
    assert result.exit_code == 5
    assert address in result.stderr
    assert f"Next: trimtab doctor --kafka {address}" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("pause --cluster east", id="an intent"),
        pytest.param("config show --cluster east", id="settings"),
        pytest.param("replay --from 1 --to 2", id="a replay"),
        pytest.param("why a:1 --cluster east", id="an explanation"),
        pytest.param("why a:1 --cluster east --round 1 --replay", id="a replayed explanation"),
    ],
)
def test_who_cannot_be_answered_is_told_the_next_command(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulation.replay.recorded.TIMEOUT_SECONDS", 0.1)
    absent = f"127.0.0.1:{free_port()}"
    file = tmp_path / "trimtab.toml"
    file.write_text(f'redis_url = "redis://{absent}/0"\n[kafka]\nbootstrap = "{absent}"\n')
    result = CliRunner().invoke(cli.build_app(), [*words.split(), "--config", str(file)])
    assert result.exit_code == 5, result.output
    assert result.stderr.endswith(f"\nNext: trimtab doctor --config {file}\n")
    assert absent in result.stderr


def test_without_a_file_the_next_command_names_the_addresses_but_no_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("simulation.replay.recorded.TIMEOUT_SECONDS", 0.1)
    absent = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", absent)
    monkeypatch.setenv("TRIMTAB_REDIS_URL", f"redis://:hushhush@{absent}/0")
    shown = CliRunner().invoke(cli.build_app(["config"]), ["config", "show", "--cluster", "east"])
    assert shown.exit_code == 5
    addresses = f"--kafka {absent} --redis redis://...@{absent}/0"
    assert shown.stderr.endswith(f"\nNext: trimtab doctor {addresses}\n")
    asked = CliRunner().invoke(
        cli.build_app(["why"]), ["why", "a:1", "--cluster", "east", "--redis", f"redis://{absent}"]
    )
    assert asked.stderr.endswith(f"\nNext: trimtab doctor --redis redis://{absent}\n")


def test_wrong_settings_are_told_at_once_and_give_2(tmp_path: Path) -> None:
    settings = tmp_path / "trimtab.toml"
    settings.write_text('trigger_seconds = -1\n[settings.avg]\nlow_hits = "few"\n')
    result = CliRunner().invoke(
        cli.build_app(["kafka"]), ["kafka", "create-topics", "--config", str(settings)]
    )
    assert result.exit_code == 2
    assert "trigger_seconds" in result.stderr
    assert "settings.avg.low_hits" in result.stderr


def test_ctrl_c_while_the_commands_are_imported_leaves_no_stack_trace() -> None:
    program = """
import sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == "admin.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from admin.main import main
main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (130, "")


def test_a_command_does_not_wait_for_what_others_need() -> None:
    program = (
        "import sys; from admin import cli; cli.build_app(['status']); "
        "print({'fastapi', 'kafka', 'pyspark', 'textual', 'uvicorn'} & {*sys.modules})"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "set()\n"
