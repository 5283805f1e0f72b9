"""What traffic costs: by the line through the brokers' reports, or by what is known of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters import Broker, Bundle, view_of
from tests.support.reports import bundle
from trimtab.arrays import CPU, Floats
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.resources.costs import Costs, count_reports, kinds, note_idle, per_byte
from trimtab.settings import Settings

MB = 1e6


def limits(*cores: float) -> Floats:
    """(5, n) limits of brokers that differ in their processors."""
    given = np.full((5, len(cores)), 1000.0)
    given[CPU] = cores
    return given


def known(usage: Floats, traffic: Floats, kind: str = "k", past: Costs | None = None) -> Costs:
    return count_reports(past or Costs(), kind, usage, traffic, 1.0)


def cost(costs: Costs) -> float:
    return float(per_byte(costs, ("k",), limits(100.0))[0])


def test_base_and_slope_of_a_line_are_recovered() -> None:
    """5 % without any traffic, and a percent for each MB/s."""
    traffic = np.linspace(10, 60, 6) * MB
    found = cost(known(0.05 + 0.01 / MB * traffic, traffic))
    assert found == pytest.approx(0.01 / MB, rel=0.02)
    np.testing.assert_allclose(0.05 + 0.01 / MB * traffic - found * traffic, 0.05, atol=0.01)


def test_brokers_that_carry_alike_fall_back_to_the_ratio() -> None:
    usage, traffic = np.array([0.41, 0.39, 0.42, 0.38]), np.full(4, 40 * MB)
    assert cost(known(usage, traffic)) == pytest.approx(0.4 / (40 * MB))


def test_a_slope_is_not_believed_to_be_much_less_than_the_ratio() -> None:
    """Usage that falls with traffic is chance."""
    usage, traffic = np.array([0.6, 0.4]), np.array([20 * MB, 80 * MB])
    assert cost(known(usage, traffic)) == pytest.approx(0.5 * 0.5 / (50 * MB))


def test_an_idle_broker_shows_what_usage_is_the_brokers_own() -> None:
    """A planner keeps usage even, whatever the traffic: the line is flat, as if no usage came from
    traffic. Without an idle broker a fifth of it is taken for the brokers' own."""
    usage, traffic = np.full(4, 0.6), np.array([40.0, 50.0, 60.0, 70.0]) * MB
    even = known(usage, traffic)
    assert cost(even) == pytest.approx(0.8 * 0.6 / (55 * MB))
    joined = note_idle(even, np.array([0.6, 0.03]), limits(100.0, 100.0), 60.0)
    assert cost(joined) == pytest.approx(0.57 / (55 * MB))
    busy = note_idle(even, np.array([0.6, 0.24]), limits(100.0, 100.0), 60.0)
    assert cost(busy) == pytest.approx(0.36 / (55 * MB))
    # A loaded broker uses less than that by now: it is no bound.
    faded = note_idle(even, np.array([0.7]), limits(100.0), 60.0)
    assert cost(faded) == pytest.approx(0.8 * 0.6 / (55 * MB))


def test_what_an_idle_broker_showed_fades() -> None:
    day = 86_400.0
    costs = note_idle(Costs(), np.array([0.03]), limits(100.0), 0.0)
    assert [note_idle(costs, np.array([0.6]), limits(100.0), each).idle for each in (0, day)] == [
        3.0,
        6.0,
    ]
    # Not even a broker that claims to use nothing is believed for ever.
    none = note_idle(Costs(), np.array([0.0]), limits(100.0), 0.0)
    assert note_idle(none, np.array([0.6]), limits(100.0), 10 * day).idle == 60.0


def test_old_reports_fade() -> None:
    traffic = np.linspace(10, 60, 6) * MB
    costs = known(0.01 / MB * traffic, traffic)
    for _ in range(20):
        costs = count_reports(costs, "k", 0.02 / MB * traffic, traffic, 0.5)
    assert cost(costs) == pytest.approx(0.02 / MB, rel=1e-3)


def test_a_kind_without_load_is_judged_by_its_processors() -> None:
    both = limits(100.0, 400.0)
    names, kind = kinds(both)
    loaded, idle = kind.tolist()
    traffic = np.linspace(10, 60, 6) * MB
    costs = known(0.01 / MB * traffic, traffic, names[loaded])
    found = per_byte(costs, names, both[:, [int(np.flatnonzero(kind == k)[0]) for k in (0, 1)]])
    assert found[loaded] == pytest.approx(0.01 / MB)
    assert found[idle] == pytest.approx(0.0025 / MB)


def test_where_nothing_is_known_nothing_costs() -> None:
    assert per_byte(Costs(), ("a", "b"), limits(1.0, 4.0)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("traffic", [5e-324, 1e-200, 1e-7])
def test_next_to_no_traffic_tells_nothing_of_its_cost(traffic: float) -> None:
    """Its square is 0, and what is divided by it infinite."""
    costs = count_reports(Costs(), "a", np.array([0.5, 0.5]), np.array([traffic, traffic]), 1.0)
    assert per_byte(costs, ("a",), limits(1.0)).tolist() == [0.0]


def test_brokers_of_one_kind_report_the_same_limits() -> None:
    names, kind = kinds(limits(100.0, 400.0, 100.0))
    assert len(names) == 2
    assert kind[0] == kind[2] != kind[1]


reports = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.floats(0, 1.5),
        st.floats(0.0, 1e15),
        st.floats(0, 1),
    ),
    max_size=12,
)


@given(reports, st.floats(0, 1e4), st.floats(0, 1e4))
def test_no_traffic_is_ever_negative_in_cost(
    given_: list[tuple[str, float, float, float]], cores: float, more: float
) -> None:
    costs = Costs()
    for kind, usage, traffic, kept in given_:
        costs = count_reports(costs, kind, np.array([usage]), np.array([traffic]), kept)
    found = per_byte(costs, ("a", "b"), limits(cores, more))
    assert np.isfinite(found).all()
    assert (found >= 0).all()


def test_limits_that_change_with_each_report_leave_no_kinds_without_end() -> None:
    """And the kinds that brokers are of now are still known."""
    bundles = [Bundle((0.0, 0.0, MB, MB), name=bundle(0, 2)), Bundle((0.0, 0.0, MB, MB))]
    view = view_of({"a": Broker(0.5, bundles), "b": Broker(0.5, bundles[1:])})
    history, said = PlannerHistory(), np.zeros((5, 2))
    for number in range(600):
        said = said.copy()
        said[CPU] = 100.0, 200.0 + number
        brokers = replace(
            view.brokers,
            limits=said,
            traffic=np.full((4, 2), MB),
            reported_ms=view.brokers.reported_ms + 1000 * number,
        )
        _, history = observe_fleet(replace(view, brokers=brokers), history, Settings())
    names, _ = kinds(said)
    assert set(names) <= history.costs.sums.keys()
    assert len(history.costs.sums) <= 257
