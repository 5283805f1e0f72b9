"""`trimtab simulate`: a table of strategies side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from admin import cli
from simulation.scenarios.comparisons.curve import TARGETS

SCENARIO = """\
about = "Six brokers & few bundles"
brokers = 6
bundles = 60
namespaces = 3
cycles = 12
[start]
spread = 0.5
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    file = tmp_path / "six.toml"
    file.write_text(SCENARIO)
    return str(file)


def simulated(*arguments: str) -> Result:
    return CliRunner().invoke(cli.build_app(["simulate"]), ["simulate", *arguments])


def table_of(result: Result) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.replace("┃", "│").split("│")[1:-1]]
        for line in result.stdout.splitlines()
        if line.startswith(("│", "┃"))
    ]


def test_a_column_for_each_strategy_and_a_line_for_each_figure(scenario: str) -> None:
    result = simulated(
        scenario, "--strategy", "avg", "--strategy", "threshold+round-robin", "--seeds", "1-2"
    )
    assert result.exit_code == 0, result.output
    rows = table_of(result)
    assert result.stdout.startswith("six, 2 seeds: median (worst)")
    assert rows[0] == ["", "avg", "threshold+round-robin"]
    assert [row[0] for row in rows[1:5]] == [
        "moves",
        "range at the end, points",
        "range, mean of the second half",
        "range, mean of all cycles",
    ]
    assert len(rows) > 12
    assert all(row[1] and row[2] for row in rows[1:])


def test_values_go_over_the_scenario_s_and_the_settings(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = simulated(
        scenario,
        *("--strategy", "avg", "--seed", "4", "--seed", "9", "--json", str(out)),
        *("--set", "noise=0.2", "--set", "hardware=1:4", "--set", "settings.avg.low_hits=1"),
    )
    assert result.exit_code == 0, result.output
    said = json.loads(out.read_text())
    assert (said["v"], said["name"]) == (1, "six")
    assert (said["scenario"]["noise"], said["scenario"]["hardware"]) == (0.2, "1:4")
    assert [(run["strategy"], run["seed"]) for run in said["runs"]] == [("avg", 4), ("avg", 9)]
    assert said["runs"][0]["figures"]["moves"] >= 0


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_file_that_cannot_be_written_is_said_before_the_runs(
    scenario: str, tmp_path: Path, option: str
) -> None:
    result = simulated(scenario, "--strategy", "avg", option, str(tmp_path / "none" / "x"))
    assert result.exit_code == 2
    assert "folder of yours" in " ".join(result.output.split())
    assert "median" not in result.output


def test_what_if(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = simulated(
        scenario,
        *("--strategy", "avg", "--json", str(out), "--set", "domains=4", "--set", "start.spread=0"),
        *("--brokers", "+6", "--hardware", "2", "--lose-domain", "3"),
    )
    assert result.exit_code == 0, result.output
    made = json.loads(out.read_text())["scenario"]
    assert (made["brokers"], made["hardware"], made["crash"]["cycle"]) == (12, "2", 3)
    assert made["mean"] == pytest.approx(0.45 / 4)


def test_a_curve_says_what_each_target_costs_beside_avg(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = simulated(scenario, "--curve", "--seeds", "1-2", "--json", str(out))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("six, 2 seeds: median (worst)")
    head, *rows = table_of(result)
    assert head[:5] == ["planner.target", "planner.aim", "moves", "mean range", "range at the end"]
    assert [row[1] for row in rows if row[1]] == ["tight", "balanced", "calm"]
    assert [row[0] for row in rows] == [*(f"{target:g}" for target in TARGETS), "avg"]
    runs = json.loads(out.read_text())["runs"]
    assert [run["target"] for run in runs[::2]] == [*TARGETS, None]
    assert [run["seed"] for run in runs[:4]] == [1, 2, 1, 2]
    assert {run["strategy"] for run in runs[-2:]} == {"avg"}
    for run in runs[:-2]:
        assert run["figures"]["final_range"] <= run["target"]


def test_a_page_with_pictures_that_needs_no_network(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    result = simulated(scenario, "--strategy", "avg", "--strategy", "uniform", "--html", str(out))
    assert result.exit_code == 0, result.output
    page = out.read_text()
    assert "Six brokers &amp; few bundles" in page
    assert "<td>moves</td>" in page
    assert page.count('class="plotly-graph-div"') == 6
    assert "<script src=" not in page


def test_pictures_are_not_loaded_for_other_commands() -> None:
    asked = "import sys, admin.cli; print('plotly' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_the_library_is_listed() -> None:
    result = simulated("--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines() if line[:1].isalpha()] == [
        "scenario",
        "anti-affinity",
        "backups",
        "bimodal",
        "bursts",
        "crash",
        "delayed",
        "full-namespaces",
        "hot-bundle",
        "hot-topic",
        "lost-reports",
        "mixed-hardware",
        "noise",
        "noise-with-memory",
        "opposed-tenants",
        "rolling-restart",
        "scale-out",
        "skewed",
        "step",
        "two-resources",
        "wandering",
        "wave",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["no-such"], "no-such: no such scenario", id="scenario"),
        pytest.param(["no-such.toml"], "No such file", id="file"),
        pytest.param(["noise", "--strategy", "fair"], "round.shedding", id="strategy"),
        pytest.param(["noise", "--set", "nois=1"], "did you mean noise?", id="value"),
        pytest.param(["noise", "--set", "noise"], "must be name=value", id="no value"),
        pytest.param(["noise", "--seeds", "3-1"], "from one to another", id="seeds"),
        pytest.param(["noise", "--brokers", "-29"], "must be from 2", id="too few"),
        pytest.param(
            ["noise", "--lose-domain", "0"],
            "--lose-domain: the scenario has 0 failure domains; give it 2 or more with --set "
            "domains=2",
            id="no domains",
        ),
        pytest.param(
            ["noise", "--curve", "--strategy", "avg"], "--strategy: --curve", id="curve of others"
        ),
        pytest.param(
            ["noise", "--curve", "--set", "settings.planner.aim=calm"],
            "--set settings.planner.aim: --curve",
            id="curve of one target",
        ),
    ],
)
def test_what_cannot_be_is_told_and_gives_2(arguments: list[str], said: str) -> None:
    result = simulated(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""
