"""What a demo starts: its committed settings hold together, and a password stays out of sight."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from admin.demo import processes
from admin.demo.feed import newest_snapshot
from deploy.stack import Stack
from simulation.closed_loop import ClosedLoop, Pace
from simulation.load_model import load_model
from simulation.profile import InvalidProfile
from streaming.config import load_config
from trimtab.settings import Settings

JOB = Path(str(files("deploy").joinpath("demo_job.toml")))
FLEET = Path(str(files("deploy").joinpath("demo_fleet.toml")))


def test_the_committed_settings_keep_the_strategy_and_its_target() -> None:
    settings, defaults = load_config(JOB).round_settings(), Settings()
    assert settings.round.shedding == defaults.round.shedding == "trimtab"
    assert settings.planner.target == defaults.planner.target
    assert settings.round.interval == 5.0


@pytest.mark.parametrize("seed", [1, 11, 27, 42])
def test_the_committed_fleet_comes_to_rest_under_the_committed_settings(seed: int) -> None:
    """By the range that the job sees, noise and all, from the fourth round on and for good; one
    round above the goal is noise, as in the demo's verdict."""
    config = load_config(JOB)
    model = load_model(processes.fleet_profile(FLEET, {"seed": seed}))
    pace = Pace(processes.REPORT_SECONDS, config.intake_settings())
    loop = ClosedLoop(model, config.round_settings(), pace)
    ranges = [step.plan.summary["usage_range"] for step in loop.steps(20)]
    assert ranges[0] > 0.6
    assert sum(range_ >= processes.GOAL / 100 for range_ in ranges[3:]) <= 1


def test_a_smaller_fleet_has_no_namespace_without_a_bundle() -> None:
    profile = processes.fleet_profile(FLEET, {"brokers": 4, "bundles": 20, "seed": None})
    assert (profile.brokers, profile.bundles, profile.namespaces) == (4, 20, 20)
    assert len(load_model(profile).bundles) == 20


def test_a_fleet_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidProfile, match="bundles must be at least brokers"):
        processes.fleet_profile(FLEET, {"brokers": 12, "bundles": 3})


def test_a_password_is_in_the_environment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIMTAB_KAFKA__OPTIONS", '{"kafka.sasl.jaas.config": "production"}')
    monkeypatch.setattr("deploy.jars.connector_jars", lambda: [])
    url = "redis://:hunter2@127.0.0.1:1/0"
    stack = cast(Stack, SimpleNamespace(kafka_bootstrap="127.0.0.1:2", redis_url=url))
    profile = processes.fleet_profile(FLEET, {})
    for process in (
        processes.job(tmp_path, stack, 9780),
        processes.fleet(tmp_path, stack, profile, 0),
    ):
        assert "hunter2" not in " ".join(process.command)
        assert process.environment is not None
        assert process.environment["TRIMTAB_REDIS_URL"] == url
        assert "TRIMTAB_KAFKA__OPTIONS" not in process.environment
        assert process.environment["PATH"] == os.environ["PATH"]


def test_a_second_demo_in_the_same_folder_is_refused_and_the_first_keeps_its_files(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "demo"
    with processes.clean_folder(folder):
        (folder / "job.log").write_text("mine")
        with (
            pytest.raises(processes.DemoFailed, match="another demo"),
            processes.clean_folder(folder),
        ):
            pass
        assert (folder / "job.log").read_text() == "mine"
    with processes.clean_folder(folder):
        assert list(folder.iterdir()) == []


def test_the_newest_whole_snapshot_is_found_among_log_lines(tmp_path: Path) -> None:
    log = tmp_path / "fleet.log"
    assert newest_snapshot(log) is None
    whole = (
        '{"at":%d,"brokers":{"b:1":{"usage":0.5,"bundles":2,"seeded":true}},'
        '"moves":3,"commands":{},"reports":9,"lostReports":0}\n'
    )
    rows = [whole % 1, whole % 2, "agent waits broker=b:1\n", (whole % 3)[:40]]
    log.write_text("".join(rows))
    found = newest_snapshot(log)
    assert found is not None
    assert (found.at, found.moves) == (2, 3)
