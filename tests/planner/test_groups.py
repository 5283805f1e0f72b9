"""Anti-affinity groups: spread at once, and respected when their bundles move for balance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import after, carrying, spread_out, wished
from tests.support.granting import disposed
from trimtab.policies import Isolation, Policies
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.view import View

GROUP = Policies(groups={f"t/{name}": "db" for name in "xyzuv"})
DOMAINS = {"a": "north", "b": "north", "c": "south", "d": "south"}
RESPECTED = Settings.parse({"placement.failure_domains": True})
OTHERS = [("t/any", 0.1)] * 3


def held(view: View, settings: Settings | None = None) -> dict[str, str]:
    """Members of the group that each broker has after the first round, which grants everything."""
    wishes = spread_out(view, settings)
    plan = disposed(view, wishes, settings)
    assert not plan.refusals
    names = [view.brokers.names[wish.destination or 0] for wish in wishes]
    assert [move.destination for move in plan.moves] == names
    return {
        broker: "".join(sorted(name[2:] for name in spaces if name in view.policies.groups))
        for broker, spaces in after(view, wishes).items()
    }


def test_two_of_a_group_are_parted_in_the_first_round() -> None:
    """``x`` is the smaller one, and ``c`` the idlest broker with none."""
    view = carrying(
        {
            "a": [("t/x", 0.02), ("t/y", 0.05), *OTHERS],
            "b": [("t/z", 0.02)],
            "c": [("t/any", 0.1)],
            "d": OTHERS,
        },
        GROUP,
    )
    assert held(view) == {"a": "y", "b": "z", "c": "x", "d": ""}


def test_all_bundles_of_the_namespace_leave() -> None:
    """Not together: where one is, there is more of the group than elsewhere."""
    crowded = [("t/x", 0.02), ("t/x", 0.02), ("t/y", 0.05), *OTHERS]
    view = carrying({"a": crowded, "b": OTHERS, "c": OTHERS}, GROUP)
    assert held(view) == {"a": "y", "b": "x", "c": "x"}


def test_where_its_namespace_is_already_a_bundle_does_no_harm() -> None:
    view = carrying(
        {"a": [("t/x", 0.02), ("t/y", 0.02), *OTHERS], "b": [("t/x", 0.1)], "c": [("t/y", 0.2)]},
        GROUP,
    )
    assert held(view) == {"a": "y", "b": "x", "c": "y"}


def test_what_cannot_be_better_stays() -> None:
    """Four namespaces on three brokers: two of them share one."""
    view = carrying(
        {"a": [("t/x", 0.1), ("t/y", 0.1)], "b": [("t/z", 0.1)], "c": [("t/u", 0.1)]}, GROUP
    )
    assert spread_out(view) == []


def test_the_crowd_of_one_broker_is_dealt_out() -> None:
    crowd = [(f"t/{name}", 0.02) for name in "xyzuv"]
    view = carrying({"a": [*crowd, *OTHERS], "b": OTHERS, "c": OTHERS}, GROUP)
    assert sorted(map(len, held(view).values())) == [1, 2, 2]


def test_groups_are_parted_where_all_brokers_are_alike() -> None:
    """Every move passes the start's peak; the operator's wish counts for more."""
    view = carrying(
        {"a": [("t/x", 0.1), ("t/y", 0.1)], "b": [("t/any", 0.2)], "c": [("t/any", 0.2)]}, GROUP
    )
    assert sorted(held(view).values()) == ["", "x", "y"]


def test_no_broker_is_overloaded_for_it() -> None:
    view = carrying(
        {"a": [("t/x", 0.4), ("t/y", 0.4)], "b": [("t/any", 0.4)] * 2, "c": [("t/any", 0.4)] * 2},
        GROUP,
    )
    assert spread_out(view) == []


def test_isolation_binds_a_group_too() -> None:
    """``c`` is idle, and not theirs."""
    policies = replace(GROUP, isolation={"own": Isolation(("t/[xy]",), ("a", "b"))})
    view = carrying(
        {"a": [("t/x", 0.1), ("t/y", 0.1)], "b": [("t/any", 0.1)], "c": [("t/any", 0.05)]}, policies
    )
    assert held(view)["c"] == ""
    assert sorted(held(view).values()) == ["", "x", "y"]


@pytest.mark.parametrize(
    ("settings", "south"),
    [pytest.param(RESPECTED, 1, id="respected"), pytest.param(Settings(), 0, id="ignored")],
)
def test_failure_domains_come_before_brokers(settings: Settings, south: int) -> None:
    """Both are in the north, apart; whether the south is to have one is a matter of settings."""
    view = carrying(
        {"a": [("t/x", 0.1), *OTHERS], "b": [("t/y", 0.1), *OTHERS], "c": OTHERS, "d": OTHERS},
        replace(GROUP, domains=DOMAINS),
    )
    found = held(view, settings)
    assert len(found["c"] + found["d"]) == south


def test_what_rests_after_a_move_stays() -> None:
    view = carrying({"a": [("t/x", 0.1), ("t/y", 0.1), *OTHERS], "b": OTHERS, "c": OTHERS}, GROUP)
    resting = replace(view.bundles, movable=np.zeros(len(view.bundles.owner), np.bool_))
    assert spread_out(replace(view, bundles=resting)) == []


def test_a_group_that_is_spread_may_move_for_balance() -> None:
    """Everything is under the group's policy: ``a`` gives one of them to the idlest without."""
    view = carrying(
        {
            "a": [("t/x", 0.1), ("t/x", 0.1), ("t/x", 0.1)],
            "b": [("t/y", 0.1)],
            "c": [("t/any", 0.02)],
        },
        GROUP,
    )
    wishes = wished(view)
    assert [(wish.reason, wish.destination) for wish in wishes] == [(Reason.OUT_OF_RANGE, 2)]
    assert not disposed(view, wishes).refusals


def test_one_bundle_of_a_group_moves_for_balance_in_a_plan() -> None:
    pairs = {f"t/{name}{at}": f"g{at}" for name in "xy" for at in range(2)}
    view = carrying(
        {
            "a": [("t/x0", 0.1), ("t/x0", 0.1), ("t/x1", 0.1), ("t/x1", 0.1)],
            "b": [("t/y0", 0.1), ("t/y1", 0.1)],
            "c": [("t/any", 0.01)],
            "d": [("t/any", 0.01)],
        },
        Policies(groups=pairs),
    )
    groups = [
        view.policies.group_of(view.bundles.namespaces[view.bundles.namespace[wish.bundle]])
        for wish in wished(view)
    ]
    assert sorted(map(str, groups)) == ["g0", "g1"]


def test_balance_brings_no_two_of_a_group_together() -> None:
    """The only idle broker has the group's other namespace."""
    view = carrying({"a": [("t/x", 0.1)] * 4, "b": [("t/y", 0.02)], "c": [("t/any", 0.4)]}, GROUP)
    assert wished(view) == []
