"""A rolling restart, and a fleet that grows or shrinks in steps, is known and waited for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from simulation.scenarios.outcomes.outcome import ScenarioCommand, ScenarioOutcome
from simulation.scenarios.reading import change_scenario
from simulation.scenarios.running import run, strategy
from simulation.scenarios.scenario import Scenario
from tests.planner.fleets import Carried, ground_of, plan
from tests.planner.views import carrying, later
from trimtab.load_model.fleet_change import FleetChange, is_filling, note_brokers
from trimtab.load_model.history import Foreseen, PlannerHistory
from trimtab.model import NO_EPOCH
from trimtab.ownership import State
from trimtab.planner import is_learning, shed
from trimtab.planner.fleet_changes import (
    awaited_until,
    is_waiting,
    note_moves,
    plan_meanwhile,
    settings_now,
)
from trimtab.planner.search.trial import Trial
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.wire.ownership import Record

MINUTE = 60_000
STARTING = ("ab", "abcdef", "abcdef")
FLEET = "abcdef"
SMALL = Scenario(brokers=8, bundles=160, namespaces=4, cycles=70)
TARGET = Settings().planner.target


def seen(*views: tuple[int, str]) -> FleetChange:
    """After views of brokers, each at a minute."""
    change, before = FleetChange(), ""
    for minute, brokers in views:
        change = note_brokers(change, before, brokers, MINUTE * minute)
        before = brokers
    return change


def until(change: FleetChange, brokers: Iterable[str] = FLEET, usage: float = 0.5) -> float:
    """Until which minute the planner waits."""
    foreseen = {broker: Foreseen(usage, 1.0, 0.0) for broker in brokers}
    return awaited_until(PlannerHistory(change=change, foreseen=foreseen)) / MINUTE


def test_a_broker_that_comes_back_is_the_first_of_many() -> None:
    assert until(seen((1, "abcdef"), (10, "bcdef"), (14, "abcdef"))) == 14 + 12


def test_the_wait_is_for_the_usual_pause_and_bounded() -> None:
    restarted = seen((1, "abcdef"), (10, "bcdef"), (12, "abcdef"))
    assert until(restarted) == 12 + 10
    slow = seen((1, "abcdef"), (10, "bcdef"), (12, "abcdef"), (52, "acdef"), (54, "abcdef"))
    assert until(slow) == 54 + 30


def test_once_every_broker_came_nothing_is_waited_for() -> None:
    change = seen((1, "abc"), (2, "bc"), (4, "abc"), (6, "ac"), (8, "abc"), (10, "ab"), (12, "abc"))
    assert until(change, "abc") == 0


@pytest.mark.parametrize(
    "views",
    [
        pytest.param([(1, "abcde"), (2, "abcdef")], id="one joins"),
        pytest.param([(1, "abcdef"), (2, "abcde"), (4, "abcd")], id="two are lost"),
        pytest.param([(1, "abcdef"), (2, "bcdef"), (63, "abcdef")], id="back after an hour"),
        pytest.param([(1, "abcdef"), (2, "abcdef")], id="none comes or goes"),
    ],
)
def test_a_change_that_stands_alone_is_not_waited_for(views: list[tuple[int, str]]) -> None:
    assert until(seen(*views)) == 0


def test_brokers_that_join_one_after_the_other_are_waited_for() -> None:
    assert until(seen((1, "abcd"), (2, "abcde"), (7, "abcdef"))) == 7 + 15


def test_a_broker_that_flaps_prolongs_no_wait() -> None:
    views = [(1, "abcdef"), (10, "bcdef"), (12, "abcdef")]
    flaps = [(minute, "bcdef" if minute % 2 else "abcdef") for minute in range(13, 60)]
    assert until(seen(*views, *flaps)) == until(seen(*views))


def test_a_second_look_at_the_same_view_changes_nothing() -> None:
    change = seen((1, "abcdef"), (10, "bcdef"), (12, "abcdef"))
    assert note_brokers(change, FLEET, FLEET, 12 * MINUTE) == change


def test_an_overloaded_broker_is_relieved_at_once() -> None:
    change = seen((1, "abcdef"), (10, "bcdef"), (12, "abcdef"))
    assert until(change, usage=0.79) > 0
    assert until(change, usage=0.81) == 0


def restarted(usage: float) -> PlannerHistory:
    """In the minute after the first broker of a rolling restart came back."""
    change = seen((1, "abcdef"), (10, "bcdef"), (12, "abcdef"))
    return PlannerHistory(
        change=change, foreseen={broker: Foreseen(usage, 1.0, 0.0) for broker in FLEET}
    )


@pytest.mark.parametrize(("usage", "accepted"), [(0.1, 0.15), (0.4, 0.24), (0.7, 0.3)])
def test_meanwhile_the_accepted_range_follows_the_mean_usage(usage: float, accepted: float) -> None:
    history = restarted(usage)
    assert is_waiting(history, 13 * MINUTE)
    found = settings_now(Settings(), history, 13 * MINUTE).planner.target
    assert found == pytest.approx(accepted)
    assert settings_now(Settings(), history, 23 * MINUTE) == Settings()


def test_a_target_that_is_wider_stays() -> None:
    wide = Settings().changed({"planner.target": 0.3})
    assert settings_now(wide, restarted(0.4), 13 * MINUTE) == wide


def test_moves_are_counted_only_while_the_planner_waits() -> None:
    history = note_moves(restarted(0.4), 3, 13 * MINUTE)
    assert history.change.moves == 3
    assert note_moves(history, 3, 23 * MINUTE) == history


@pytest.mark.parametrize(("moved", "width"), [(0, 0.2), (8, 0.3), (9, 0.45)])
def test_the_more_was_moved_the_less_even_is_planned_for(moved: int, width: float) -> None:
    """Three brokers came: 15 moves for a sixth of 201 bundles each. 0.2 takes 15, 0.3 takes 7."""
    sizes = np.linspace(0.006, 0.014, 40).tolist()
    fleet = Carried([*[sizes] * 5, [1e-6]]).fleet
    change = FleetChange(0, MINUTE, ("a", "b", "f"), moved)
    widths = []

    def planned(width: float) -> Trial:
        widths.append(width)
        return plan(fleet, width)

    plan_meanwhile(ground_of(fleet), change, 0.3, planned)
    assert widths[-1] == pytest.approx(width)


def played(changes: Mapping[str, object], name: str = "trimtab") -> ScenarioOutcome:
    return _played(tuple(sorted(changes.items())), name)


@cache
def _played(changes: tuple[tuple[str, object], ...], name: str) -> ScenarioOutcome:
    return run(change_scenario(SMALL, dict(changes)), strategy(name))


ROLLING = {
    "restart.every": 6,
    "restart.down": 2,
    "restart.cycle": 5,
    "restart.drained": True,
}


@pytest.mark.parametrize(
    "drained",
    [pytest.param(True, id="drained"), pytest.param(False, id="lost", marks=pytest.mark.slow)],
)
def test_a_rolling_restart_takes_few_moves_beside_the_drains(drained: bool) -> None:
    outcome = played({**ROLLING, "restart.drained": drained})
    figures, last = outcome.figures, 5 + 7 * 6 + 2
    meanwhile = int(outcome.moves[: last + 1].sum())
    assert meanwhile <= 0.2 * figures.evacuated
    # The last one is filled once, soon after.
    assert figures.moves - meanwhile <= 2 * SMALL.bundles / SMALL.brokers
    assert float(outcome.range[last + 15 :].max()) <= 2 * TARGET
    assert Rule.CHANGING in outcome.skipped


@pytest.mark.slow
def test_bundles_stay_away_from_the_broker_that_they_were_drained_from() -> None:
    """Any others fill it as well; without the rule four go back within the hour."""
    every = {"restart.every": 8, "restart.down": 2, "restart.cycle": 5, "cycles": 90}
    last: dict[int, ScenarioCommand] = {}
    back = 0
    for command in played(every).commands:
        before = last.get(command.bundle)
        if before is not None and not command.drained:
            back += before.source == command.destination and command.cycle - before.cycle <= 60
        last[command.bundle] = command
    assert back <= 1


def test_meanwhile_the_fleet_is_more_even_than_under_avg_shedder() -> None:
    own, other = played(ROLLING).figures, played(ROLLING, "avg").figures
    assert own.whole_range <= other.whole_range
    assert own.peak <= other.peak


def test_a_single_broker_that_was_lost_and_came_back_is_filled_soon() -> None:
    outcome = played({"crash.brokers": 1, "crash.cycle": 5, "crash.returning": 3})
    assert float(outcome.range[9:].max()) <= 0.45
    assert float(outcome.range[8 + 11 :].max()) <= TARGET


@pytest.mark.slow
def test_a_fleet_that_grows_step_by_step_takes_few_more_moves_than_at_once() -> None:
    outcome = played({"start.brokers": 4, "start.joining": 5, "start.every": 5})
    at_once = played({"start.brokers": 4, "start.joining": 5})
    assert outcome.figures.moves <= 1.6 * at_once.figures.moves
    assert float(outcome.range[42:].max()) <= TARGET


def test_a_fleet_that_shrinks_step_by_step_needs_few_moves_beside_the_drains() -> None:
    outcome = played({**ROLLING, "restart.down": 0, "restart.brokers": 3, "mean": 0.3})
    assert outcome.figures.moves <= 0.2 * outcome.figures.evacuated
    assert float(np.median(outcome.range[30:])) <= 2 * TARGET


def test_a_history_of_before_knows_of_no_change() -> None:
    history = replace(PlannerHistory(), foreseen={broker: Foreseen(0.5, 1, 0) for broker in FLEET})
    assert awaited_until(history) == 0


@pytest.mark.parametrize(
    ("before", "brokers", "filling"),
    [
        pytest.param("", "abcdef", False, id="the first view"),
        pytest.param("abc", "abcdef", True, id="half of them came"),
        pytest.param("abcdef", "abcdefgh", False, id="a quarter came"),
        pytest.param("a", "ab", False, id="one came"),
        pytest.param("abcdef", "ab", False, id="they went"),
    ],
)
def test_a_view_fills_while_many_of_its_brokers_have_just_come(
    before: str, brokers: str, filling: bool
) -> None:
    assert is_filling(before, brokers) == filling


def test_nothing_is_planned_for_the_brokers_that_happened_to_report_first() -> None:
    """Two of six have reported at the start, then all: the one that seemed hot is the coldest. The
    records tell that others own bundles."""
    loads = {"a": 50, "b": 10, "c": 60, "d": 60, "e": 60, "f": 60}
    views = [carrying({b: [("t/n", 0.01)] * loads[b] for b in brokers}) for brokers in STARTING]
    owners = zip(views[-1].bundles.names, views[-1].bundles.owner.tolist(), strict=True)
    records = {
        bundle: Record(state=State.OWNED, epoch=NO_EPOCH, owner=FLEET[row])
        for bundle, row in owners
    }
    history = PlannerHistory()
    planned = []
    for minute, view in enumerate(views):
        seen = replace(later(view, minute), records=records)
        wishes, history = shed(seen, history, Settings())
        planned.append(bool(wishes))
        assert is_learning(history) == (not planned[-1])
    assert planned == [False, False, True]
