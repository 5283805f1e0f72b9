"""What a demo says of its rounds: when the fleet came to rest, and what it came to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.console import Console

from admin.demo.display import Scene, line, picture, summary
from admin.demo.story import Story, reasons
from simulation.fleet import BrokerSnapshot, FleetSnapshot
from tests.support.demo_rounds import record, story
from trimtab.reasons import Rule


@pytest.mark.parametrize(
    ("points", "since"),
    [
        pytest.param([65, 30, 10, 9], 20.0, id="came to rest"),
        pytest.param([65, 10, 16, 9], 25.0, id="a round above starts it again"),
        pytest.param([65, 10, 9, 16], None, id="a round above at the end"),
        pytest.param([65, 30, 15], None, id="the threshold itself is not below it"),
        pytest.param([], None, id="no round"),
    ],
)
def test_balanced_from_the_first_of_the_rounds_that_stayed_below(
    points: list[float], since: float | None
) -> None:
    balanced = story(*points).balanced
    assert (balanced[0].elapsed if balanced else None) == since


def test_rounds_that_missed_brokers_or_are_repeated_are_left_out() -> None:
    told = story(65).told(record(2, brokers=1), 15, 3).told(record(1), 16, 3)
    assert [round.range for round in told.rounds] == pytest.approx([65])


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (
            [65, 30, 9],
            "range 65.0 -> 9.0 points with 7 moves, below 15 from 20 s on"
            " (10 s after the first round)",
        ),
        (
            [65, 16, 9, 12, 11],
            "range 65.0 -> 11.0 points with 7 moves, below 15 from 20 s on"
            " (10 s after the first round)",
        ),
        ([65, 30], "range 65.0 -> 30.0 points with 7 moves, not below 15 after 15 s"),
        ([], "no round saw the whole fleet: nothing was balanced"),
    ],
)
def test_the_summary_is_one_line(points: list[float], said: str) -> None:
    assert summary(story(*points), moves=7) == said


def test_reasons_are_counted() -> None:
    assert reasons(record(1, ("low-pair", "high-pair", "low-pair"))) == "high-pair 1, low-pair 2"
    assert reasons(record(1)) == "balanced"


@pytest.mark.parametrize(
    ("skipped", "said"),
    [
        (Rule.LEARNING, "learning: telling load from noise takes two reports of a bundle"),
        (Rule.NO_PROPOSAL, "no moves: none would help enough"),
        (Rule.REPAIR_ONLY, "between two rounds, only repairs"),
        (Rule.PAUSED, "paused"),
    ],
)
def test_a_round_without_moves_says_why(skipped: Rule, said: str) -> None:
    assert reasons(replace(record(1), skipped=skipped)) == said


def scene(told: Story) -> Scene:
    fleet = FleetSnapshot(
        at=0,
        brokers={
            "cold:8080": BrokerSnapshot(usage=0.2, bundles=3, seeded=True),
            "hot:8080": BrokerSnapshot(usage=0.85, bundles=12, seeded=True),
        },
        moves=4,
        commands={},
        reports=0,
        lost_reports=0,
    )
    url = "http://127.0.0.1:9780/metrics"
    return Scene(
        told,
        fleet,
        starting="Spark starts",
        elapsed=12.3,
        left=60.0,
        metrics_url=url,
        logs="build/demo",
    )


def test_a_line_for_where_no_picture_can_be_drawn() -> None:
    told = Story(2, 15.0)
    assert line(scene(told)) == "  12 s  no round yet: Spark starts, at most 60 s more"
    told = told.told(record(1, ("high-pair",)), 12, 65)
    assert line(scene(told)) == (
        "  12 s  round 1, range 65.0 points (goal below 15), 4 moves, 60 s left, start, high-pair 1"
    )
    assert ", start, " not in line(scene(told.told(record(2), 17, 30)))


def test_the_picture_has_a_bar_for_each_broker_and_the_last_moves() -> None:
    told = Story(2, 15.0).told(record(1, ("high-pair",)), 12, 65).told(record(2), 17, 30)
    console = Console(width=120)
    with console.capture() as capture:
        console.print(picture(scene(told)))
    lines = capture.get().splitlines()
    assert lines[0].split() == ["cold:8080", "20", "%", "3", "bundles", "█" * 10]
    assert lines[1].count("█") == round(0.85 * 50)
    assert lines[2].split()[:2] == ["range", "30"]
    assert lines[2].rstrip().endswith(" ████████|██████                 <")
    assert lines[4].startswith("last moves, round 1: high-pair 1; demo/ns-00/")
    assert "hot:8080 -> cold:8080" in lines[4]
    assert "http://127.0.0.1:9780/metrics" in lines[5]
