"""A job that cannot work says why, with an exit code of its own, and starts nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from streaming.ending import UNREACHABLE, USAGE
from tests.support.jobs import QUICK, run_to_its_end, write_settings

pytestmark = pytest.mark.e2e

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def _jars() -> None:
    jars.fetch()


def test_every_wrong_setting_is_told_at_once(tmp_path: Path) -> None:
    wrong = {
        **QUICK,
        "round.interval": -1.0,
        "round.shedding": "random",
        "avg.low_hits": 10**30,
        "avg.lowhits": 3,
        "unload.max_share": "half",
    }
    file = write_settings(tmp_path, NOBODY, f"redis://{NOBODY}", wrong)
    text = file.read_text().replace("trigger_seconds = 0.2", "trigger_seconds = -1\ntypo = 1")
    file.write_text(text.replace("sample_interval = 1.0", "half_life = 0.0"))
    ended = run_to_its_end("--config", str(file))
    assert ended.returncode == USAGE, ended.stderr
    for name in (
        "trigger_seconds",
        "typo",
        "intake.half_life",
        "settings.round.interval",
        "settings.round.shedding",
        "settings.avg.low_hits",
        "settings.avg.lowhits",
        "settings.unload.max_share",
    ):
        assert f"  {name}: " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("kafka = 5", id="a table that is none"),
        pytest.param("intake = 5", id="intake that is no table"),
        pytest.param("settings = []", id="settings that are no table"),
        pytest.param("[settings]\nround = 5", id="a group that is no table"),
        pytest.param("x = [", id="not TOML"),
        pytest.param("trigger_seconds = nan", id="no number"),
    ],
)
def test_a_file_of_another_shape_is_a_wrong_setting(tmp_path: Path, text: str) -> None:
    file = tmp_path / "trimtab.toml"
    file.write_text(text)
    ended = run_to_its_end("--config", str(file))
    assert (ended.returncode, "Traceback" in ended.stderr) == (USAGE, False), ended.stderr


def test_a_file_that_is_not_there_is_a_wrong_setting(tmp_path: Path) -> None:
    ended = run_to_its_end("--config", str(tmp_path / "none.toml"))
    assert ended.returncode == USAGE
    assert "none.toml" in ended.stderr


def test_without_kafka_its_address_is_told(tmp_path: Path) -> None:
    file = write_settings(tmp_path, NOBODY, f"redis://{NOBODY}")
    ended = run_to_its_end("--config", str(file))
    assert ended.returncode == UNREACHABLE, ended.stderr
    assert f"Kafka at {NOBODY}" in ended.stderr
    assert list(tmp_path.iterdir()) == [file]


def test_without_redis_its_address_is_told_and_no_password(
    kafka: KafkaServer, tmp_path: Path
) -> None:
    port = free_port()
    file = write_settings(tmp_path, kafka.bootstrap, f"redis://:hushhush@127.0.0.1:{port}/0")
    ended = run_to_its_end("--config", str(file))
    assert ended.returncode == UNREACHABLE, ended.stderr
    assert f"Redis at 127.0.0.1:{port}" in ended.stderr
    assert "hushhush" not in ended.stderr + ended.stdout
    assert list(tmp_path.iterdir()) == [file]
