"""What a round grants and refuses, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, cluster, rates, throughputs
from tests.support.pulsar import PULSAR
from trimtab.model import Epoch
from trimtab.plan import Move, Plan
from trimtab.reasons import Reason, Rule
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.shedding.avg import AvgHistory
from trimtab.state.round_state import Histories, RoundState
from trimtab.view import View, available_part, is_monitoring
from trimtab.wire.columns import pack, unpack

MB = 1e6
GRACE_MS = 1_800_000


def hold(
    view: View,
    settings: Mapping[str, object] = MappingProxyType({}),
    state: RoundState | None = None,
    now_ms: int = 0,
) -> tuple[Plan, RoundState]:
    rng = np.random.default_rng(1)
    return decide(view, state or RoundState(), Settings.parse({**PULSAR, **settings}), now_ms, rng)


def hot_and_cold() -> View:
    """``hot`` wants to shed its bundle 0 (40 MB/s), then its bundle 1."""
    hot = Broker(0.9, throughputs(40 * MB, 35 * MB, 15 * MB))
    return cluster(hot=hot, cold=Broker(0.1, throughputs(1 * MB)))


def just_reported(load: float) -> View:
    """All of this load, of which the averages have no sample yet."""
    view = hot_and_cold()
    stats = np.full_like(view.bundles.short, load)
    return replace(view, bundles=replace(view.bundles, reported=lambda: stats))


def test_a_hot_broker_sheds_to_a_cold_one() -> None:
    plan, state = hold(hot_and_cold())
    assert plan.moves == (
        Move(
            bundle="t/hot/0x00000000_0x00000001",
            source="hot",
            destination="cold",
            reason=Reason.OVER_AVERAGE,
            epoch=Epoch(0, 0),
        ),
    )
    assert plan.refusals == ()
    assert plan.skipped is None
    assert state.number == 1
    assert state.recent == {"t/hot/0x00000000_0x00000001": 0}


def test_the_plan_carries_the_figures_of_the_fleet() -> None:
    plan, _ = hold(cluster(a=0.75, b=0.25))
    assert plan.summary == {
        "brokers": 2,
        "bundles": 8,
        "usage_min": 0.25,
        "usage_mean": 0.5,
        "usage_max": 0.75,
        "usage_range": 0.5,
        "usage_deviation": 0.25,
    }


@pytest.mark.parametrize(
    ("view", "state", "settings", "rule"),
    [
        pytest.param(hot_and_cold(), RoundState(paused=True), {}, Rule.PAUSED, id="paused"),
        pytest.param(
            hot_and_cold(), RoundState(), {"round.enabled": False}, Rule.DISABLED, id="disabled"
        ),
        pytest.param(cluster(alone=0.9), RoundState(), {}, Rule.TOO_FEW_BROKERS, id="one broker"),
        pytest.param(cluster(), RoundState(), {}, Rule.TOO_FEW_BROKERS, id="no broker"),
        pytest.param(
            cluster(hot=0.9, dead=Broker(available=False)),
            RoundState(),
            {},
            Rule.TOO_FEW_BROKERS,
            id="one of two is not available",
        ),
        pytest.param(
            cluster(hot=Broker(0.9, rates(math.nan, 1.0)), cold=0.1),
            RoundState(),
            {},
            Rule.UNCOMPUTABLE,
            id="a load that is no number",
        ),
        pytest.param(
            cluster(hot=Broker(0.9, rates(math.inf)), cold=Broker(0.1, rates(-math.inf))),
            RoundState(),
            {},
            Rule.UNCOMPUTABLE,
            id="loads without bounds",
        ),
        pytest.param(
            cluster(hot=Broker(0.9, rates(1e308)), cold=Broker(0.1, rates(1e308))),
            RoundState(),
            {},
            Rule.UNCOMPUTABLE,
            id="loads beyond all measure",
        ),
        pytest.param(
            just_reported(math.nan),
            RoundState(),
            {},
            Rule.UNCOMPUTABLE,
            id="a load that no average has yet",
        ),
        pytest.param(cluster(a=0.5, b=0.5), RoundState(), {}, Rule.BALANCED, id="balanced"),
    ],
)
def test_a_round_without_a_plan_says_why(
    view: View, state: RoundState, settings: dict[str, object], rule: Rule
) -> None:
    plan, after = hold(view, settings, state)
    assert (plan.moves, plan.refusals, plan.skipped) == ((), (), rule)
    assert after.number == 1


def test_a_bundle_rests_for_the_grace_period_to_the_millisecond() -> None:
    first = "t/hot/0x00000000_0x00000001"
    _, state = hold(hot_and_cold())
    plan, _ = hold(hot_and_cold(), state=state, now_ms=GRACE_MS)
    assert [move.bundle for move in plan.moves] == ["t/hot/0x00000001_0x00000002"]
    plan, state = hold(hot_and_cold(), state=state, now_ms=GRACE_MS + 1)
    assert [move.bundle for move in plan.moves] == [first]
    assert state.recent == {first: GRACE_MS + 1}


def test_observing_remembers_no_moves() -> None:
    plan, state = hold(hot_and_cold(), {"round.observe_only": True})
    assert len(plan.moves) == 1
    assert state.recent == {}


def test_the_budget_refuses_the_rest() -> None:
    hot = Broker(0.9, throughputs(*[10 * MB] * 8))
    view = cluster(hot=hot, cold=Broker(0.1, throughputs(1 * MB)))
    plan, _ = hold(view, {"round.max_moves": 1})
    assert len(plan.moves) == 1
    assert {refusal.rule for refusal in plan.refusals} == {Rule.BUDGET}
    assert plan.refusals[0].source == "hot"


def test_a_heartbeat_bundle_does_not_make_the_other_one_expendable() -> None:
    """Pulsar counts it, so there the only real bundle of a broker with a heartbeat moves."""
    heartbeat = Bundle(name="pulsar/c/hot:8080/0x00000000_0xffffffff", movable=False)
    view = cluster(hot=Broker(0.9, [heartbeat, *throughputs(80 * MB)]), cold=Broker(0.1))
    plan, _ = hold(view)
    assert [refusal.rule for refusal in plan.refusals] == [Rule.LAST_BUNDLE]


def test_moves_in_flight_count_as_done() -> None:
    """One bundle of two is leaving already: the other is the last."""
    leaving = Bundle((0, 0, 40 * MB, 0), going_to="cold")
    view = cluster(hot=Broker(0.9, [leaving, *throughputs(40 * MB)]), cold=Broker(0.1))
    plan, _ = hold(view)
    assert [refusal.rule for refusal in plan.refusals] == [Rule.LAST_BUNDLE]


def test_each_move_sees_those_before_it() -> None:
    """Bundles of equal weight spread over equal brokers instead of landing on one."""
    hot = Broker(0.9, [Bundle((10, 0, 30 * MB, 0))] * 6)
    view = cluster(hot=hot, x=Broker(0.1), y=Broker(0.1), z=Broker(0.1))
    plan, _ = hold(view, {"placement.distribute_evenly": False})
    assert len(plan.moves) > 3
    landed = [move.destination for move in plan.moves]
    assert max(landed.count(name) for name in "xyz") - min(map(landed.count, "xyz")) <= 1


def test_of_the_least_loaded_one_is_drawn() -> None:
    """Item 000-15: LeastLongTermMessageRate has two brokers of equal rates; a third has more."""
    hot = Broker(0.9, throughputs(40 * MB, 1 * MB))
    more = Broker(0.1, rates(2))
    view = cluster(hot=hot, x=Broker(0.1, rates(1)), y=Broker(0.1, rates(1)), z=more)
    chosen = Settings.parse({**PULSAR, "placement.distribute_evenly": False})
    plans = [
        decide(view, RoundState(), chosen, 0, np.random.default_rng(seed))[0] for seed in range(20)
    ]
    assert {move.destination for plan in plans for move in plan.moves} == {"x", "y"}


def test_an_overloaded_choice_is_made_again_over_all_brokers() -> None:
    """Evenness left only ``full``; Pulsar then drops the filters and asks for the best of all."""
    name = "t/n/0x00000000_0x00000001"
    hot = Broker(0.99, [Bundle((0, 0, 90 * MB, 0), name=name), *throughputs(1, 1)])
    cold = Broker(0.1, [Bundle(name="t/n/0x00000001_0x00000002")])
    plan, _ = hold(cluster(hot=hot, full=Broker(0.9), cold=cold, other=cold))
    assert plan.moves[0].destination in {"cold", "other"}


def test_unavailable_brokers_are_not_part_of_the_comparison() -> None:
    view = cluster(hot=0.9, warm=0.85, gone=Broker(0.0, rates(1), available=False))
    plan, state = hold(view)
    assert plan.skipped is Rule.BALANCED
    assert plan.summary["brokers"] == 2
    assert sorted(state.histories.threshold.usage) == ["hot", "warm"]


def test_the_available_part_keeps_what_will_be_there() -> None:
    view = cluster(
        a=Broker(0.5, [Bundle(going_to="dead"), Bundle()]),
        dead=Broker(0.5, [Bundle(going_to="b"), Bundle()], available=False),
        b=Broker(0.5),
    )
    part = available_part(view)
    assert part.brokers.names == ("a", "b")
    owners = [part.brokers.names[row] for row in part.bundles.owner]
    assert list(zip(part.bundles.names, owners, strict=True)) == [
        ("t/a/0x00000001_0x00000002", "a"),
        ("t/dead/0x00000000_0x00000001", "b"),
    ]
    assert part.intended.tolist() == part.bundles.owner.tolist()
    assert part.bundles.movable.tolist() == [True, False]


def test_a_bundle_on_its_way_to_a_lost_broker_does_not_count_as_staying() -> None:
    """Its move may yet succeed; then the other bundle would be the last."""
    leaving = Bundle((0, 0, 40 * MB, 0), going_to="lost")
    view = cluster(
        hot=Broker(0.9, [leaving, *throughputs(40 * MB)]),
        cold=Broker(0.1),
        lost=Broker(available=False),
    )
    plan, _ = hold(view)
    assert [refusal.rule for refusal in plan.refusals] == [Rule.LAST_BUNDLE]


def test_a_full_destination_of_a_pair_is_replaced() -> None:
    """AvgShedder's target is over the topic cap: as in Pulsar, any other broker will do."""
    bundles = rates(*[900] * 11)
    view = cluster(
        hot=Broker(0.8, bundles, traffic=(20000, 0, 0, 0)),
        mid=Broker(0.5),
        cold=Broker(0.3, topics=60_000),
    )
    avg = {"round.shedding": "avg", "round.placement": "avg", "avg.high_hits": 1}
    plan, _ = hold(view, avg)
    assert {move.destination for move in plan.moves} == {"mid"}


def test_the_same_seed_gives_the_same_plan() -> None:
    brokers = {f"b{i}": Broker(0.1) for i in range(20)}
    view = cluster(hot=Broker(0.9, throughputs(*[40 * MB] * 4)), **brokers)
    assert hold(view) == hold(view)


def test_the_state_survives_packing() -> None:
    _, state = hold(hot_and_cold(), {"round.placement": "least-resource-usage"})
    _, state = hold(
        hot_and_cold(), {"round.shedding": "avg", "round.placement": "avg"}, state, GRACE_MS * 4
    )
    assert state.histories.least_resource_usage.usage
    assert state.histories.avg.high.counts
    assert state.histories.threshold.usage
    assert unpack(pack(state), RoundState) == state
    assert unpack(pack(RoundState()), RoundState) == RoundState()


def test_strategies_that_share_a_name_share_a_history() -> None:
    history = AvgHistory(targets={"bundle": "broker"})
    histories = Histories().having("avg", history)
    assert histories.of("avg") is history
    assert histories.having("least-long-term-rate", None) is histories
    assert replace(histories, avg=AvgHistory()) == Histories()


@pytest.mark.parametrize(
    ("bundle", "monitoring"),
    [
        ("pulsar/c1/broker-1.example.com:8080/0x00000000_0xffffffff", True),
        ("pulsar/broker-1.example.com:8080/0x00000000_0xffffffff", True),
        ("sla-monitor/c1/broker-1:8080/0x00000000_0xffffffff", True),
        ("pulsar/system/0x00000000_0xffffffff", False),
        ("tenant/ns/0x00000000_0xffffffff", False),
        ("pulsarish/c1/b:8080/0x00000000_0xffffffff", False),
    ],
)
def test_heartbeat_and_sla_bundles(bundle: str, monitoring: bool) -> None:
    assert is_monitoring(bundle) == monitoring


def test_a_broker_that_shed_is_remembered_until_it_leaves() -> None:
    """In a later round that takes nothing off it, too; TransferShedder waits for its report."""
    _, state = hold(hot_and_cold(), now_ms=5)
    _, state = hold(hot_and_cold(), {"threshold.threshold": 1.0}, state, 6)
    assert state.relieved == {"hot": 5}
    _, state = hold(cluster(cold=0.1, other=0.1), state=state, now_ms=7)
    assert state.relieved == {}


def test_another_broker_that_sheds_is_remembered_beside_it() -> None:
    state = RoundState(relieved={"cold": 3})
    _, state = hold(hot_and_cold(), state=state, now_ms=5)
    assert state.relieved == {"cold": 3, "hot": 5}


@pytest.mark.parametrize(
    ("shedding", "usage", "rule"),
    [
        pytest.param("trimtab", (0.5, 0.3), Rule.LEARNING, id="each bundle was reported once"),
        pytest.param("overload", (0.8, 0.1), Rule.NO_PROPOSAL, id="far apart, below its limit"),
        pytest.param("overload", (0.8, 0.75), Rule.BALANCED, id="within twice the target"),
    ],
)
def test_brokers_that_are_far_apart_are_not_called_balanced(
    shedding: str, usage: tuple[float, float], rule: Rule
) -> None:
    settings = {"round.shedding": shedding, "round.placement": "least-predicted-usage"}
    plan, _ = hold(cluster(hot=usage[0], cold=usage[1]), settings=settings)
    assert (plan.moves, plan.skipped) == ((), rule)
