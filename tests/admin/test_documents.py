"""What the README tells to type is what the programs take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from admin import cli, state_diagram
from admin.demo.processes import METRICS_PORT
from streaming.config import JobConfig, load_config
from trimtab.ownership import TRANSITIONS

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def test_the_settings_file_is_accepted(tmp_path: Path) -> None:
    shown = re.search(r"```toml\n(.*?)```", README, re.DOTALL)
    assert shown
    file = tmp_path / "trimtab.toml"
    file.write_text(shown[1])
    config = load_config(file)
    assert config.kafka.bootstrap == "kafka-1:9092,kafka-2:9092"
    assert config.round_settings().round.observe_only


def test_the_metrics_port_is_the_one_named() -> None:
    assert f"127.0.0.1:{METRICS_PORT}/metrics" in README
    assert JobConfig.model_fields["metrics_port"].default == METRICS_PORT


@pytest.mark.parametrize(
    "command", sorted(set(re.findall(r"^trimtab (\w+) --", README, re.MULTILINE)))
)
def test_every_command_exists(command: str) -> None:
    assert CliRunner().invoke(cli.app, [command, "--help"]).exit_code == 0


def test_the_state_diagram_is_the_tables() -> None:
    text = (Path(__file__).parents[2] / "docs/ownership.md").read_text("utf-8")
    assert state_diagram.write_diagram(text) == text


def test_every_row_of_the_table_is_in_the_diagram() -> None:
    drawn = state_diagram.diagram()
    for state, row in TRANSITIONS.items():
        for event, effect in row.items():
            assert re.search(rf"{state} --> {effect.state}: .*\b{event}\b", drawn)
