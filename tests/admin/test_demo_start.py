"""A demo's start says what it waits for; its end names commands that exist."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import typer

from admin import cli
from admin.demo.starting import fail_start, find_step
from admin.demo.story import Story
from admin.demo.suggestions import suggestions
from deploy.process import Process
from simulation.fleet import BrokerSnapshot, FleetSnapshot
from tests.support.demo_rounds import record, story

LINES = ("metrics are served", "job runs", "query started", "ownership store is open")


def fleet(*seeded: bool) -> FleetSnapshot:
    brokers = {
        f"b{i}:8080": BrokerSnapshot(usage=0.5, bundles=1, seeded=each)
        for i, each in enumerate(seeded)
    }
    return FleetSnapshot(at=0, brokers=brokers, moves=0, commands={}, reports=0, lost_reports=0)


@pytest.mark.parametrize(
    ("said", "seen", "step"),
    [
        (0, fleet(False), "the job checks Kafka and Redis"),
        (1, fleet(False), "Spark starts"),
        (2, fleet(False), "the query starts"),
        (3, fleet(False), "the first batch runs and opens the ownership store"),
        (4, None, "the fleet starts"),
        (4, fleet(True, False, False), "2 of 3 brokers claim their bundles"),
        (4, fleet(True, True), "the job waits until it has a report of every broker"),
    ],
)
def test_the_start_says_what_it_waits_for(said: int, seen: FleetSnapshot | None, step: str) -> None:
    assert find_step("\n".join(LINES[:said]), seen) == step


@pytest.mark.parametrize(
    ("step", "log"),
    [("Spark starts", "job.log"), ("2 of 3 brokers claim their bundles", "fleet.log")],
)
def test_a_start_that_does_not_end_names_the_part_its_log_and_the_next_step(
    step: str, log: str, tmp_path: Path
) -> None:
    job, other = (
        Process(name, [], folder=tmp_path, log=tmp_path / f"{name}.log")
        for name in ("job", "fleet")
    )
    for each in (job, other):
        each.log.write_text("".join(f"{each.name} line {i}\n" for i in range(30)))
    text = str(fail_start(300, step, job, other, lambda path: path.name))
    assert f"within 300 s; still missing: {step}\nthe end of {log}:" in text
    assert f"{log.removesuffix('.log')} line 29" in text
    assert "line 21" not in text
    assert text.endswith("trimtab demo --start-seconds 600")


def suggested(story: Story, *, kept: bool) -> list[str]:
    return [*suggestions(story, Path("build/demo"), "http://127.0.0.1:9781", kept=kept)]


def test_the_suggested_commands_are_ones_that_trimtab_has() -> None:
    told = story(65, 30).told(record(3, ("out-of-range",)), 30, 9)
    lines = suggested(told, kept=True)
    typed = [shlex.split(line) for line in lines if line.startswith("  ")][1:]
    commands = [words[1:] for words in typed if words[0] != "curl"]
    assert [words[0] for words in commands] == [
        "status",
        "brokers",
        "why",
        "replay",
        "bundles",
        "simulate",
    ]
    group = typer.main.get_command(cli.build_app())
    for name, *words in commands:
        # Raises where an option or a value is not one of the command's.
        group.commands[name].make_context(name, words)  # type: ignore[attr-defined] # a group


def test_a_demo_that_moved_nothing_suggests_nothing() -> None:
    assert [*suggested(story(65, 30), kept=False)] == []


def test_without_servers_it_is_said_how_to_keep_them() -> None:
    told = story(65).told(record(2, ("out-of-range",)), 30, 9)
    assert "demo --keep" in next(iter(suggested(told, kept=False)))
