"""What moves have shown corrects what traffic costs, gently, and predicted usages stay."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import INTERVAL_MS
from tests.support.clusters import NOW_MS, Broker, cluster, rates
from trimtab.load_model.estimating.rows import locate_keys, take_rows
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.model import build_model
from trimtab.load_model.observation import observe_fleet
from trimtab.names import identities
from trimtab.review.cost_correction import correct_from_plan, corrections, ratio_of, telling
from trimtab.settings import Settings
from trimtab.state.ledger_state import Ledger, Noted, Side
from trimtab.view import View

WEEK_MS = 7 * 86_400_000


def side(change: float = 0.2, came: float = 0.2, surprise: float = 0.0, **given: float) -> Side:
    """One report: of the change that was predicted so much came as traffic, and so much beside."""
    figures: dict[str, float] = {
        "before": 0.3,
        "predicted": 0.3 + change,
        "variance": 0.0,
        "cost": 0.01,
        "correction": 1.0,
        "used_then": 0.3,
        "traffic_then": 30.0,
        "strays": 0.0,
        "used": 0.3 + came + surprise,
        "traffic": 30.0 + came / 0.01,
    }
    return Side(**figures | given, reports=1, reported_ms=NOW_MS)


def test_a_cost_that_is_twice_the_kinds_shows_as_a_ratio_of_two() -> None:
    assert math.exp(ratio_of(side(surprise=0.2))) == pytest.approx(2.0)
    assert math.exp(ratio_of(side(surprise=0.0))) == pytest.approx(1.0)
    # Of a correction of 1.5 that was in the prediction already, a third more is missing.
    assert math.exp(ratio_of(side(surprise=0.2 / 3, correction=1.5))) == pytest.approx(2.0)
    assert math.exp(ratio_of(side(surprise=-0.5))) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("given", "tells"),
    [
        pytest.param(side(), True, id="a fifth of the broker"),
        pytest.param(side(-0.2, -0.2), True, id="less of it"),
        pytest.param(side(0.005, 0.005), False, id="next to nothing"),
        pytest.param(side(variance=0.07**2), False, id="not three deviations of the prediction"),
        pytest.param(side(came=0.09), False, id="less than half came"),
        pytest.param(side(came=-0.2), False, id="the other way"),
        pytest.param(side(surprise=-0.19), True, id="cheap traffic"),
        pytest.param(side(surprise=-0.21), False, id="usage fell though traffic rose"),
        pytest.param(side(-0.2, -0.2, 0.21), False, id="usage rose though traffic fell"),
    ],
)
def test_only_clear_changes_tell_of_costs(given: Side, tells: bool) -> None:
    assert telling(given, 0.0) == tells


def test_usage_that_strays_by_itself_tells_nothing() -> None:
    assert not telling(side(), 0.05)


def two() -> View:
    return cluster(a=Broker(0.6, rates(30.0, 30.0)), b=Broker(0.2, rates(20.0)))


TWICE = math.log(2.0)


def test_a_broker_is_believed_more_the_more_it_has_shown() -> None:
    """Two ratios more weigh against its own; its kind knows of these only."""
    found = [
        corrections({"a": ((NOW_MS, TWICE),) * count}, two().brokers, NOW_MS)["a"]
        for count in (1, 2, 8)
    ]
    assert found == pytest.approx([2 ** (5 / 9), 2 ** (3 / 4), 2 ** (24 / 25)])


def test_others_of_its_kind_are_corrected_less() -> None:
    factors = corrections({"a": ((NOW_MS, TWICE),)}, two().brokers, NOW_MS)
    assert factors["b"] == pytest.approx(2 ** (1 / 3))
    assert 1 < factors["b"] < factors["a"]


def test_corrections_are_bounded_and_fade() -> None:
    wild = {"a": ((NOW_MS, math.log(4.0)),) * 8, "b": ((NOW_MS, -math.log(4.0)),) * 8}
    assert corrections(wild, two().brokers, NOW_MS) == {
        "a": pytest.approx(2.0),
        "b": pytest.approx(0.5),
    }
    faded = corrections({"a": ((NOW_MS, TWICE),)}, two().brokers, NOW_MS + 20 * WEEK_MS)
    assert faded["a"] == pytest.approx(1.0, abs=1e-3)


def test_the_median_ignores_one_odd_move() -> None:
    known = {"a": ((NOW_MS, 0.0), (NOW_MS, math.log(4.0)), (NOW_MS, 0.0))}
    assert corrections(known, two().brokers, NOW_MS) == {}


def test_predicted_usages_stay_and_gains_follow() -> None:
    view, settings = two(), Settings()
    _, history = observe_fleet(view, PlannerHistory(), settings)
    before = build_model(view, history, settings)
    noted = Noted(1, 0, {}, {"a": as_reported(view, history, settings, surprise=0.2)})
    ledger, taught_history = correct_from_plan(noted, Ledger(), view, before, history)
    fleet, again = observe_fleet(view, taught_history, settings)
    after = build_model(view, again, settings)
    factor = taught_history.corrections["a"]
    assert factor == pytest.approx(2 ** (5 / 9))
    ((at_ms, ratio),) = ledger.evidence["a"]
    assert at_ms == NOW_MS
    assert ratio == pytest.approx(TWICE)
    assert fleet.usage == pytest.approx(before.usage)
    assert after.gain[0] == pytest.approx(before.gain[0] * factor)
    for broker, foreseen in taught_history.foreseen.items():
        assert again.foreseen[broker] == pytest.approx(foreseen)


def as_reported(view: View, history: PlannerHistory, settings: Settings, surprise: float) -> Side:
    """Of broker a: what it reports is what the model knows, and came with a move of 0.2."""
    model = build_model(view, history, settings)
    used, traffic, cost = (float(c[0]) for c in (model.used, model.traffic, model.cost))
    return side(
        change=0.2,
        cost=cost,
        used=used,
        used_then=used - 0.2 - surprise,
        traffic=traffic,
        traffic_then=traffic - 0.2 / cost,
    )


def test_what_a_broker_uses_beside_is_believed_at_once_beyond_chance() -> None:
    view, settings = two(), Settings()
    _, history = observe_fleet(view, PlannerHistory(), settings)
    history = replace(history, strays={"a": 0.5, "b": 0.0})
    model = build_model(view, history, settings)
    used, traffic = float(model.used[0]), float(model.traffic[0])
    for strays, believed in ((0.0, 0.1), (0.02, 0.06), (0.06, 0.0)):
        told = side(
            cost=float(model.cost[0]),
            used=used + 0.1,
            used_then=used - 0.2,
            traffic=traffic,
            traffic_then=traffic - 0.2 / float(model.cost[0]),
            strays=strays,
        )
        noted = Noted(1, 0, {}, {"a": told})
        _, after = correct_from_plan(noted, Ledger(), view, model, history)
        assert after.strays == {"a": strays, "b": 0.0}
        found = build_model(view, after, settings).usage - model.usage
        assert found == pytest.approx(np.array([believed, 0.0]), abs=1e-9)


@pytest.mark.parametrize(
    ("age", "bundle", "learns"),
    [
        pytest.param(1, 0, False, id="after the plan"),
        pytest.param(4, 0, False, id="as it was made, so that the report before shows it in part"),
        pytest.param(5, 0, True, id="before both reports"),
        pytest.param(1, 2, True, id="on another broker"),
    ],
)
def test_where_a_bundle_leaps_during_a_plan_nothing_is_learned(
    age: int, bundle: int, learns: bool
) -> None:
    """A burst takes more than its traffic tells: once it has passed, its broker would be believed
    busier than it is for an hour. The plan was made three minutes ago."""
    view, settings = two(), Settings()
    _, history = observe_fleet(view, PlannerHistory(), settings)
    model = build_model(view, history, settings)
    ages = np.full(3, np.inf)
    at, _ = locate_keys(model.estimates, identities(view.bundles.names))
    ages[at[bundle]] = age
    model = replace(model, estimates=replace(model.estimates, age=ages))
    told = as_reported(view, history, settings, surprise=0.2)
    plan = Noted(1, NOW_MS - 3 * INTERVAL_MS, {}, {"a": told})
    ledger, after = correct_from_plan(plan, Ledger(), view, model, history)
    assert ("a" in ledger.evidence) == learns
    assert (after != history) == learns


def test_a_bundle_of_which_nothing_is_known_disturbs_no_plan() -> None:
    view, settings = two(), Settings()
    _, history = observe_fleet(view, PlannerHistory(), settings)
    model = build_model(view, history, settings)
    told = as_reported(view, history, settings, surprise=0.2)
    for kept in ([], [1]):
        known = take_rows(model.estimates, np.array(kept, np.int64))
        known = replace(known, age=np.ones(len(kept)))
        estimates = replace(model, estimates=known)
        plan = Noted(1, NOW_MS - 3 * INTERVAL_MS, {}, {"b": told})
        ledger, _ = correct_from_plan(plan, Ledger(), view, estimates, history)
        assert "b" in ledger.evidence
