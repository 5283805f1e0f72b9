"""Plans that empty brokers: what they cost, and how they go on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters_by_rows import change_row, rounds_in, said
from tests.support.fleets import two_each
from tests.support.outcomes import told
from tests.support.plans import plans_in, verb
from trimtab.cluster.operator import Cluster
from trimtab.cluster.plans.drain_cost import count_handovers, pour
from trimtab.kept_plans.kept_plan import KeptPlan, drain_plan_id
from trimtab.wire.intent import IntentKind

counts = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9), min_size=1)


def asked(it: Cluster, kind: IntentKind, *brokers: str) -> KeptPlan:
    rows, _ = it.take([said(kind, id="p", brokers=brokers)], 2000)
    assert told(rows) == [("p", "done", "")]
    [plan] = plans_in(rows)
    return plan


def states(it: Cluster) -> list[str]:
    [plan] = it.memory.plans
    return [plan.state.value, *(step.state.value for step in plan.steps)]


def empty(it: Cluster, broker: str, to: str, now_ms: int) -> None:
    """Every bundle of the broker lands on another, and a round sees it."""
    owned = {
        bundle: record for bundle, record in it.records("t/ns").items() if record.owner == broker
    }
    rows = [change_row(name, to, record.epoch.counter + 5) for name, record in owned.items()]
    it.receive(rows, now_ms)
    it.hold_round(now_ms)


@given(counts, st.integers(0, 30))
def test_bundles_are_poured_as_if_each_went_to_the_broker_with_the_fewest(
    before: dict[str, int], more: int
) -> None:
    expected = dict(before)
    for _ in range(more):
        fewest = min(sorted(expected), key=expected.__getitem__)
        expected[fewest] += 1
    assert pour(before, more) == expected


@pytest.mark.parametrize(
    ("restart", "expected"),
    [
        # Those of a go to c and d, as b is to be emptied too.
        (False, [2, 2]),
        # One of a's two goes to b, which then has three.
        (True, [2, 3]),
    ],
)
def test_what_brokers_in_turn_hand_over(restart: bool, expected: list[int]) -> None:
    owned = {"a": 2, "b": 2, "c": 3, "d": 2}
    assert list(count_handovers(owned, ["a", "b"], restart=restart)) == expected


def test_a_plan_says_its_cost_and_does_nothing_before_it_is_approved() -> None:
    it = two_each()
    plan = asked(it, IntentKind.RESTART_PLAN, "a:1", "b:1")
    assert plan.id == drain_plan_id("p")
    assert (plan.state, plan.effect.handovers, plan.effect.seconds) == ("proposed", 5, 30.0)
    assert it.memory.liveness.draining == frozenset()
    it.hold_round(3000)
    assert states(it) == ["proposed", "waiting", "waiting"]


def test_a_drain_plan_empties_all_its_brokers_and_is_done_when_they_are_empty() -> None:
    it = two_each()
    plan = asked(it, IntentKind.DRAIN_PLAN, "a:1", "b:1")
    rows, _ = it.take([verb(IntentKind.APPROVE, plan)], 2100)
    assert {move.source for r in rounds_in(rows) for move in r.moves} == {"a:1", "b:1"}
    assert states(it) == ["running", "begun", "begun"]
    empty(it, "a:1", "c:1", 2200)
    assert states(it) == ["running", "done", "begun"]
    empty(it, "b:1", "d:1", 2300)
    assert states(it) == ["done", "done", "done"]
    assert told(it.take([], 2301)[0]) == [("v", "done", "")]
    assert it.memory.liveness.draining == {"a:1", "b:1"}


def test_brokers_are_restarted_one_after_the_other() -> None:
    it = two_each()
    plan = asked(it, IntentKind.RESTART_PLAN, "a:1", "b:1")
    it.take([verb(IntentKind.APPROVE, plan)], 2100)
    assert it.memory.liveness.draining == {"a:1"}
    empty(it, "a:1", "c:1", 2200)
    assert states(it) == ["running", "empty", "waiting"]
    it.receive([said(IntentKind.BROKER_LOST, 2300, broker="a:1")], 2300)
    it.hold_round(2400)
    assert states(it) == ["running", "empty", "waiting"]
    it.receive([said(IntentKind.BROKER_JOINED, 2500, broker="a:1")], 2500)
    it.hold_round(2500 + 120_000)
    assert states(it) == ["running", "done", "begun"]
    assert it.memory.liveness.draining == {"b:1"}


def test_a_restart_that_the_lease_did_not_show_is_told_by_using_the_broker_again() -> None:
    it = two_each()
    plan = asked(it, IntentKind.RESTART_PLAN, "a:1", "b:1")
    it.take([verb(IntentKind.APPROVE, plan)], 2100)
    empty(it, "a:1", "c:1", 2200)
    it.receive([said(IntentKind.UNDRAIN, broker="a:1")], 2300)
    it.hold_round(2400)
    assert states(it) == ["running", "done", "begun"]


def test_a_cancelled_plan_uses_its_brokers_again() -> None:
    it = two_each()
    plan = asked(it, IntentKind.RESTART_PLAN, "a:1", "b:1")
    it.take([verb(IntentKind.APPROVE, plan)], 2100)
    rows, _ = it.take([verb(IntentKind.CANCEL, plan, "c")], 2200)
    assert ("v", "expired", "") in told(rows)
    assert states(it) == ["cancelled", "begun", "skipped"]
    assert it.memory.liveness.draining == frozenset()


@pytest.mark.parametrize(
    ("brokers", "rule"),
    [(("z:1",), "unknown-broker"), (("a:1", "a:1"), "invalid-plan"), ((), "no-subject")],
)
def test_a_plan_that_cannot_be_is_refused(brokers: tuple[str, ...], rule: str) -> None:
    it = two_each()
    it.hold_round(1500)
    rows, _ = it.take([said(IntentKind.DRAIN_PLAN, id="p", brokers=brokers)], 2000)
    assert told(rows) == [("p", "refused", rule)]


def test_a_broker_is_in_one_open_plan_only() -> None:
    it = two_each()
    asked(it, IntentKind.DRAIN_PLAN, "a:1")
    rows, _ = it.take([said(IntentKind.RESTART_PLAN, id="q", brokers=("a:1",))], 2100)
    assert told(rows) == [("q", "refused", "invalid-plan")]
