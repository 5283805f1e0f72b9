"""Who may go where: the planner wishes for nothing that policies and caps forbid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planner.fleets import Carried, ground_of
from tests.planner.views import carrying, destinations, later, wished
from tests.support.clusters import Broker
from tests.support.granting import disposed
from trimtab.load_model.history import PlannerHistory
from trimtab.planner import shed
from trimtab.planner.pools import Pool
from trimtab.planner.ranges import find_forced_range
from trimtab.policies import Isolation, Policies
from trimtab.reasons import Reason
from trimtab.settings import Settings

OWN = Policies(isolation={"own": Isolation(("t/own",), ("a", "b"))})
MANY = [("t/any", 0.05)] * 8
FEW = [("t/any", 0.05)] * 2
OWN_MANY = [("t/own", 0.05)] * 8
OWN_FEW = [("t/own", 0.05)] * 2


def test_bundles_under_a_policy_move_between_its_brokers() -> None:
    """``d`` is the idlest, and not theirs."""
    view = carrying({"a": OWN_MANY, "b": OWN_FEW, "c": FEW, "d": FEW}, OWN)
    wishes = wished(view)
    assert {view.bundles.names[wish.bundle].rsplit("/", 1)[0] for wish in wishes} == {"t/own"}
    assert destinations(view, wishes) == {"b"}
    assert {wish.reason for wish in wishes} == {Reason.OUT_OF_RANGE}


def test_bundles_under_none_keep_off_reserved_brokers() -> None:
    view = carrying({"a": OWN_FEW, "b": OWN_FEW, "c": MANY, "d": [*FEW, ("t/any", 0.05)]}, OWN)
    assert destinations(view, wished(view)) == {"d"}


def test_each_pool_is_balanced_in_one_plan() -> None:
    view = carrying({"a": OWN_MANY, "b": OWN_FEW, "c": MANY, "d": FEW}, OWN)
    wishes = wished(view)
    assert destinations(view, wishes) == {"b", "d"}
    assert len(wishes) == 6
    plan = disposed(view, wishes)
    assert (len(plan.moves), plan.refusals) == (6, ())


def test_what_lies_outside_a_pool_is_no_reason_to_move_within_it() -> None:
    """The policy's brokers are busier than the others, and alike."""
    view = carrying({"a": OWN_MANY, "b": OWN_MANY, "c": FEW, "d": FEW}, OWN)
    assert wished(view) == []


def test_pools_that_share_a_broker_see_what_the_earlier_one_gave_it() -> None:
    """``b`` is primary to one policy and secondary to another that has too few brokers."""
    policies = Policies(
        isolation={
            "own": Isolation(("t/own",), ("a", "b")),
            "too": Isolation(("t/too",), ("c",), ("b",), 2),
        }
    )
    view = carrying(
        {"a": OWN_MANY, "b": [("t/own", 0.05), ("t/too", 0.05)], "c": [("t/too", 0.05)] * 8},
        policies,
    )
    usage = {"a": 0.4, "b": 0.1, "c": 0.4}
    for wish in wished(view):
        assert wish.destination is not None
        usage[view.brokers.names[wish.source]] -= 0.05
        usage[view.brokers.names[wish.destination]] += 0.05
    assert max(usage.values()) - min(usage.values()) < 0.11
    assert usage["b"] <= 0.4


def test_a_broker_in_a_burst_that_is_not_found_yet_receives_nothing() -> None:
    """It reports to near overload, and its bundles are those of ``b``."""
    view = carrying({"a": MANY, "b": FEW, "c": FEW})
    assert destinations(view, wished(view)) == {"b", "c"}
    _, history = shed(view, PlannerHistory(), Settings())
    resources = view.brokers.resources.copy()
    resources[:, 2] = 90.0
    bursting = replace(view, brokers=replace(view.brokers, resources=resources))
    wishes, _ = shed(later(bursting, 1), history, Settings())
    assert destinations(view, wishes) == {"b"}


def test_a_policy_whose_hottest_broker_only_has_what_cannot_move_is_left_alone() -> None:
    """Bundles under no policy are on ``a`` from before the policy came."""
    view = carrying({"a": MANY, "b": OWN_FEW, "c": FEW, "d": FEW}, OWN)
    assert wished(view) == []


def test_what_cannot_move_is_held_against_the_others_whatever_load_costs_there() -> None:
    """0.9 on one broker, 0.1 on the other, and next to no cost of load on the first."""
    fleet = Carried([[0.9e9], [0.1e-9]], gain=[1e-9, 1e9]).fleet
    pool = Pool(np.ones(2, np.bool_), np.zeros(2, np.bool_), None)
    assert find_forced_range(ground_of(fleet), pool) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("settings", "old"),
    [
        pytest.param(
            {"placement.prefer_later_versions": True}, Broker(version="4.0.7"), id="version"
        ),
        pytest.param({"placement.load_manager": "Ours"}, Broker(load_manager="Other"), id="class"),
        pytest.param({"placement.max_topics": 10}, Broker(topics=11), id="topics"),
    ],
)
def test_brokers_that_may_not_receive_only_give(settings: dict[str, object], old: Broker) -> None:
    """``c`` and ``d`` may not; ``d`` is the idlest of all, and ``c`` the busiest."""
    chosen = Settings.parse(settings)
    new = Broker(load_manager="Ours")
    view = carrying(
        {"a": FEW, "b": FEW, "c": MANY, "d": [("t/any", 0.01)]},
        like={"a": new, "b": new, "c": old, "d": old},
    )
    wishes = wished(view, chosen)
    assert destinations(view, wishes) == {"a", "b"}
    plan = disposed(view, wishes, chosen)
    assert [move.destination for move in plan.moves] == [
        view.brokers.names[wish.destination or 0] for wish in wishes
    ]


def test_a_broker_is_filled_up_to_the_topic_cap_and_no_further() -> None:
    """Pulsar asks whether it is passed before a bundle comes, and counts what is on its way."""
    chosen = Settings.parse({"placement.max_topics": 21})
    view = carrying({"a": MANY, "b": FEW, "c": FEW}, like={"b": Broker(topics=21)})
    wishes = wished(view, chosen)
    into_b = [wish for wish in wishes if view.brokers.names[wish.destination or 0] == "b"]
    assert len(into_b) <= 1
    assert not disposed(view, wishes, chosen).refusals


def test_the_last_bundle_of_a_broker_stays() -> None:
    view = carrying({"a": [("t/any", 0.4)], "b": FEW, "c": FEW})
    assert wished(view) == []
