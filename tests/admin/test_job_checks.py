"""The doctor finds what is wrong with a job's settings and its checkpoint, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from admin import cli
from admin.job_checks import check_checkpoint, check_environment, check_settings, check_size
from deploy.finding import Finding, good
from deploy.ports import free_port
from streaming.config import JobConfig, SparkConfig
from streaming.sizing import Size


def checked(checkpoint: Path | str) -> Finding:
    [finding] = check_checkpoint(JobConfig(checkpoint=str(checkpoint)))
    assert finding.ok or finding.next_command
    return finding


def test_every_problem_of_a_settings_file_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "trimtab.toml"
    path.write_text('trigger_seconds = -1\n[settings.round]\nshedding = "avgg"\n')
    settings, findings = check_settings(path)
    assert settings is None
    assert [(each.ok, each.next_command) for each in findings] == [(False, f"edit {path}")] * 2
    assert "trigger_seconds" in findings[0].detail
    assert "settings.round.shedding" in findings[1].detail


def test_a_finding_names_the_table_where_a_setting_belongs(tmp_path: Path) -> None:
    """Its brackets are no markup."""
    path = tmp_path / "trimtab.toml"
    path.write_text("max_moves = 3\n")
    done = CliRunner().invoke(
        cli.build_app(["doctor"]), ["doctor", "--config", str(path)], env={"COLUMNS": "200"}
    )
    assert (done.exit_code, "belongs under [settings.round]" in done.stdout) == (6, True)


def test_a_wrong_value_of_the_environment_is_not_looked_for_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trimtab.toml"
    path.write_text("")
    monkeypatch.setenv("TRIMTAB_METRICS_PORT", "x")
    _, [found] = check_settings(path)
    assert found.next_command == "unset TRIMTAB_METRICS_PORT"


def test_a_variable_that_is_no_setting_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trimtab.toml"
    path.write_text("")
    monkeypatch.setenv("TRIMTAB_IMAGE", "x")
    settings, findings = check_settings(path)
    assert settings is not None
    assert findings == [good("settings", f"{path} is valid, TRIMTAB_IMAGE is no setting")]


def test_a_misspelt_variable_is_found_without_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMTAB_KAFKA_BOOTSTRAP", "kafka:9092")
    monkeypatch.setenv("TRIMTAB_IMAGE", "x")
    [found] = check_environment()
    assert "did you mean TRIMTAB_KAFKA__BOOTSTRAP?" in found.detail
    assert (found.ok, found.next_command) == (False, "unset TRIMTAB_KAFKA_BOOTSTRAP")


def test_a_checkpoint_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    finding = checked(tmp_path / "a" / "b")
    assert (finding.ok, finding.detail) == (True, f"{tmp_path}/a/b is made by the job")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is not a folder" in checked(tmp_path / "file" / "checkpoint").detail


def test_a_checkpoint_that_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests may run as a user who may write everywhere.
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "may not be written" in checked(tmp_path).detail


def test_a_checkpoint_of_another_query(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text("no metadata")
    finding = checked(tmp_path)
    assert "not one to go on from" in finding.detail
    assert finding.next_command == f"mv {tmp_path} {tmp_path}.old"


def test_a_checkpoint_elsewhere_is_left_to_the_job() -> None:
    assert checked("s3a://bucket/checkpoint").ok


def test_a_fleet_for_which_this_machine_is_too_small_is_a_finding() -> None:
    assert check_size(JobConfig()).ok
    size = Size(brokers=1_000_000, bundles=100_000_000)
    found = check_size(JobConfig(size=size))
    assert not found.ok
    assert "`size`" in found.detail
    # A heap that the settings name is the operator's own decision.
    assert check_size(JobConfig(size=size, spark=SparkConfig(driver_memory="2g"))).ok


def test_the_doctor_uses_the_addresses_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def examine(**given: object) -> list[Finding]:
        asked.update(given)
        return []

    monkeypatch.setattr("deploy.doctor.examine", examine)
    path = tmp_path / "trimtab.toml"
    port = free_port()
    path.write_text(
        f'checkpoint = "{tmp_path}/c"\nredis_url = "redis://r:1"\nredis_replicas = 1\n'
        f'metrics_port = {port}\n[kafka]\nbootstrap = "k:1"\n[kafka.client]\n"client.id" = "me"\n'
    )
    result = CliRunner().invoke(cli.build_app(["doctor"]), ["doctor", "--config", str(path)])
    assert result.exit_code == 0, result.output
    assert asked == {
        "run_dir": tmp_path / "c",
        "kafka": "k:1",
        "redis": "redis://r:1",
        "redis_replicas": 1,
        "kafka_client": JobConfig().kafka.client | {"client.id": "me"},
    }
    assert f"127.0.0.1:{port} is free" in result.stdout
