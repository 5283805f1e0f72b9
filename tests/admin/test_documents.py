"""What the pages tell to type is what the programs take."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
import typer
from typer.main import get_command

from admin import cli, exit_codes
from admin.demo.processes import METRICS_PORT
from admin.documents import migration_diagram, plan_diagram, state_diagram
from streaming.config import JobConfig, load_config
from streaming.sizing import Size
from tests.support.made import assert_made
from trimtab.ownership import TRANSITIONS
from trimtab.placement import PLACERS

ROOT = Path(__file__).parents[2]
README, SCENARIOS, BENCHMARKS = (
    (ROOT / name).read_text("utf-8")
    for name in ("README.md", "docs/scenarios.md", "docs/benchmarks.md")
)


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


COMMANDS: Final[Any] = get_command(cli.build_app())
PAGES: Final = [
    *sorted(ROOT.glob("*.md")),
    # The list of commands is made from them.
    *sorted({*(ROOT / "docs").rglob("*.md")} - {ROOT / "docs/commands.md"}),
    *sorted((ROOT / "examples").rglob("*.md")),
]


def _typed(command: str) -> list[str]:
    """What the pages tell to type that begins so, in blocks and in sentences, without comments."""
    typed = set[str]()
    for page in PAGES:
        text = page.read_text("utf-8").replace("\\\n", " ")
        for block in re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            typed |= set(
                re.findall(rf"^(?:\$ )?({command} \S.*?)(?: +# .*)?$", block, re.MULTILINE)
            )
        typed |= set(re.findall(rf"`({command} [a-z-][^`\n]+)`", text))
    return sorted(typed)


@pytest.mark.parametrize("line", _typed("trimtab"))
def test_every_command_and_option_exists(line: str) -> None:
    at = COMMANDS
    for word in shlex.split(re.split(r" [|<>] ?", line)[0])[1:]:
        if hasattr(at, "commands") and not word.startswith("-"):
            assert word in at.commands, f"{at.name} has no {word}"
            at = at.commands[word]
        elif word.startswith("--"):
            assert word in {name for each in at.params for name in each.opts}
    assert not hasattr(at, "commands") or line.endswith("--install-completion")


@pytest.mark.parametrize("line", _typed("make"))
def test_every_target_exists(line: str) -> None:
    target = line.split()[1]
    assert re.search(
        rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )


@pytest.mark.parametrize("line", _typed("python -m"))
def test_every_module_exists(line: str) -> None:
    assert importlib.util.find_spec(line.split()[2]) is not None


@pytest.mark.parametrize(
    ("run", "strategy", "said"),
    [
        ("scale-out", "trimtab", "it makes {moves} moves in two rounds"),
        ("scale-out evenly=true", "threshold", "make {moves} moves and leave {range} points"),
        ("scale-out", "threshold", "it makes {moves} moves and leaves {range} points"),
        ("scale-out", "avg", "AvgShedder makes {moves} and leaves {range}"),
        ("scale-out evenly=true", "avg", "AvgShedder makes {moves} and leaves {range}"),
    ],
)
def test_what_is_said_of_strategies_is_in_the_scenarios(run: str, strategy: str, said: str) -> None:
    [row] = re.findall(rf"^\| {run} \| {strategy} \| (.*)$", SCENARIOS, re.MULTILINE)
    moves, range_ = (cell.split(" ")[0] for cell in row.split(" | ")[:2])
    assert said.format(moves=moves, range=range_) in " ".join(README.split())


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ("latency.p50", "follows a report in {0:.2f} s"),
        ("latency.p99", "p99 {0:.2f} s"),
        ("ownership.gap_p50", "without service for {0:.0f} ms"),
        ("ownership.gap_p99", "p99 {0:.0f} ms"),
        ("failover.reowned", "{0:.1f} s later, half a second after its lease"),
    ],
)
def test_what_is_said_of_speed_is_in_the_benchmarks(figure: str, said: str) -> None:
    [value] = re.findall(rf"^\| `{re.escape(figure)}` \| ([\d.,]+) ", BENCHMARKS, re.MULTILINE)
    assert said.format(float(value.replace(",", ""))) in " ".join(README.split())


def test_what_is_said_of_throughput_and_memory_is_in_the_benchmarks() -> None:
    def figure(name: str) -> float:
        [value] = re.findall(rf"^\| `{re.escape(name)}` \| ([\d.,]+) ", BENCHMARKS, re.MULTILINE)
        return float(value.replace(",", ""))

    few, many = (figure(f"intake.full_{each}") // 10 * 10 for each in ("few", "many"))
    held = sum(figure(f"memory.{each}") for each in ("jvm", "driver", "workers")) / 1024
    said = " ".join(README.split())
    assert f"takes in {few:.0f} a second of 100 brokers" in said
    assert f"{many:.0f} of 2,000 brokers" in said
    assert f"driver and workers hold {held:.1f} GiB" in said


def test_the_memory_of_a_fleet_is_what_the_job_asks_for() -> None:
    """The file of settings once said 1.9 GiB where the job asked for 1.8."""
    small, large = Size(), Size(brokers=10_000, bundles=1_000_000)
    assert small == Size(brokers=1_000, bundles=100_000)
    assert (
        f"{small.whole_mib / 1024:.1f} GiB for all its processes; "
        f"10,000 brokers of 100 bundles: {large.whole_mib / 1024:.1f} GiB"
    ) in README


def test_the_exit_codes_in_the_document_are_the_tables() -> None:
    text = (ROOT / exit_codes.DOCUMENT).read_text("utf-8")
    assert_made(exit_codes.DOCUMENT, exit_codes.write_table(text))


def test_every_command_is_in_the_document_of_commands() -> None:
    text = (ROOT / "docs/cli.md").read_text("utf-8")
    rows = "".join(re.findall(r"^\| `.*$", text, re.MULTILINE))
    told = set(re.findall(r"[a-z-]+", rows))
    for name, command in vars(typer.main.get_command(cli.build_app()))["commands"].items():
        for word in (name, *vars(command).get("commands", ())):
            found = word in told or f"{word.partition('-')[0]}-" in told
            assert found, f"docs/cli.md: the row of {name} lacks {word}"


def test_every_placement_has_its_measure_in_the_document_of_lookups() -> None:
    text = (ROOT / "docs/lookup.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\w, -]+) \|", text, re.MULTILINE)
    missing = PLACERS.keys() - {name for row in rows for name in row.split(", ")}
    assert not missing, f"docs/lookup.md: the table of round.placement lacks {missing}"


def test_the_state_diagram_is_the_tables() -> None:
    text = (ROOT / state_diagram.DOCUMENT).read_text("utf-8")
    assert_made(state_diagram.DOCUMENT, state_diagram.write_diagram(text))


def test_the_diagram_of_plans_is_the_tables() -> None:
    text = (ROOT / plan_diagram.DOCUMENT).read_text("utf-8")
    assert_made(plan_diagram.DOCUMENT, plan_diagram.write_diagram(text))


def test_the_migration_page_has_the_tables_of_topics_and_migrations() -> None:
    text = (ROOT / migration_diagram.DOCUMENT).read_text("utf-8")
    assert_made(migration_diagram.DOCUMENT, migration_diagram.write_diagrams(text))


def test_every_row_of_the_table_is_in_the_diagram() -> None:
    drawn = state_diagram.diagram()
    for state, row in TRANSITIONS.items():
        for event, effect in row.items():
            assert re.search(rf"{state} --> {effect.state}: .*\b{event}\b", drawn)
