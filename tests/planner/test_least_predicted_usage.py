"""Bundles that need a broker go where usage will be least with them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.planner.views import carrying, later
from trimtab.filters.request import Projection
from trimtab.load_model.history import PlannerHistory
from trimtab.placement import PLACERS, Placer
from trimtab.planner import shed
from trimtab.settings import Settings
from trimtab.view import View

SETTINGS = Settings().changed({"round.observe_only": True})
ALL = np.arange(3)
NEW = "t/n/0xf0000000_0xffffffff"


def opened(view: View, rounds: int = 2) -> Placer[PlannerHistory]:
    """The placer on a view that has been looked at for so many rounds."""
    history = PlannerHistory()
    for number in range(rounds):
        _, history = shed(later(view, number), history, SETTINGS)
    return PLACERS["least-predicted-usage"](Projection(view), history, SETTINGS)


def fleet(*loads: float) -> View:
    """Brokers a, b, c with one bundle each, of these parts of a broker."""
    return carrying({name: [("t/n", load)] for name, load in zip("abc", loads, strict=True)})


def placed(placer: Placer[PlannerHistory], bundle: str) -> list[int]:
    rows: list[int] = placer.best(bundle, ALL).tolist()
    return rows


def test_the_idlest_broker_gets_it() -> None:
    assert placed(opened(fleet(0.5, 0.2, 0.4)), NEW) == [1]


def test_what_was_placed_counts() -> None:
    """Four of a size that is known, 0.2, go to b, to c, and only then to b again."""
    view = carrying({"a": [("t/n", 0.2)] * 4, "b": [("t/n", 0.1)], "c": [("t/n", 0.25)]})
    placer = opened(view)
    assert [placed(placer, name) for name in view.bundles.names[:3]] == [[1], [2], [1]]


def test_a_broker_that_the_last_plan_fills_is_not_taken_for_an_empty_one() -> None:
    """The plan moves 0.2 from a to b; what comes next goes to c."""
    view = carrying({"a": [("t/n", 0.2)] * 3, "b": [("t/n", 0.1)], "c": [("t/n", 0.35)]})
    history = PlannerHistory()
    for number in range(2):
        moves, history = shed(later(view, number), history, Settings())
    assert [move.destination for move in moves] == [1]
    placer = PLACERS["least-predicted-usage"](Projection(view), history, Settings())
    assert placer.loads().tolist() == pytest.approx([0.4, 0.3, 0.35])


def test_who_is_asked_again_about_a_bundle_forgets_the_first_answer() -> None:
    placer = opened(carrying({"a": [("t/n", 0.2)] * 3, "b": [("t/n", 0.1)], "c": [("t/n", 0.4)]}))
    first = "t/n/0x00000000_0x00000100"
    assert placed(placer, first) == placed(placer, first) == [1]


def test_an_unknown_bundle_weighs_as_much_as_the_average() -> None:
    placer = opened(fleet(0.35, 0.1, 0.2))
    names = [f"t/n/0xffff000{number}_0xffffffff" for number in range(4)]
    assert [placed(placer, name)[0] for name in names] == [1, 2, 1, 0]


def test_a_broker_that_is_not_known_yet_stands_where_it_reports() -> None:
    assert placed(opened(fleet(0.5, 0.2, 0.1), rounds=0), NEW) == [2]


def test_ties_go_to_the_first_candidate() -> None:
    placer = opened(fleet(0.3, 0.3, 0.3))
    assert placer.best(NEW, np.array([2, 1])).tolist() == [2]


def test_its_history_stays_as_it_was() -> None:
    view = fleet(0.5, 0.2, 0.4)
    history = PlannerHistory()
    placer = PLACERS["least-predicted-usage"](Projection(view), history, SETTINGS)
    placed(placer, NEW)
    assert placer.remembered() is history
