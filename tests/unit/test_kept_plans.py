"""Plans that wait for a person: kept, approved, carried out, called off and taken back."""

from __future__ import annotations

import itertools
from dataclasses import replace

import msgspec
import pytest

from tests.support.clusters_by_rows import change_row, held, rounds_in, said
from tests.support.fleets import EIGHTHS
from tests.support.outcomes import told
from tests.support.plans import FIRST_ROUND, landed, plans_in, proposed, verb, waiting_cluster
from trimtab.cluster.operator import Cluster
from trimtab.cluster.plans.keeping import MOST_PLANS, MOST_STEPS_OF_ALL, remember
from trimtab.controls import Mode
from trimtab.kept_plans.kept_plan import Effect, KeptPlan, Step, StepKind, StepState
from trimtab.kept_plans.life import TRANSITIONS, VERBS, PlanEvent, PlanState, allows
from trimtab.ownership import State
from trimtab.state.memory import Memory
from trimtab.wire.columns import pack, unpack
from trimtab.wire.intent import IntentKind

LATER = FIRST_ROUND + 1000


def states(plan: KeptPlan) -> list[str]:
    return [step.state.value for step in plan.steps]


def plan_of(it: Cluster, name: str) -> KeptPlan:
    [plan] = [plan for plan in it.memory.plans if plan.id == name]
    return plan


def test_a_round_that_waits_moves_nothing_and_keeps_a_plan_with_its_effect() -> None:
    it = waiting_cluster()
    rows, _ = it.wake(FIRST_ROUND)
    [record] = rounds_in(rows)
    assert (record.moves, record.skipped) == ((), "")
    assert record.held is not None
    assert [move.bundle for move in record.held.moves] == EIGHTHS[:4]
    [plan] = plans_in(rows)
    assert (plan.state, plan.mode, plan.origin) == ("proposed", "approve", "round 1")
    assert [(s.bundle, s.source, s.destination) for s in plan.steps] == [
        (bundle, "a:1", "b:1") for bundle in EIGHTHS[:4]
    ]
    effect = plan.effect
    assert (effect.handovers, effect.brokers) == (4, ("a:1", "b:1"))
    assert [effect.before, effect.after] == pytest.approx([0.8, 0.1])
    assert effect.load > 0
    assert plan.until == FIRST_ROUND + 3_600_000


@pytest.mark.parametrize("mode", ["propose", "approve"])
def test_an_approved_plan_runs_in_the_same_batch_and_is_done_when_it_has_landed(mode: str) -> None:
    it = waiting_cluster(mode)
    plan = proposed(it)
    rows, _ = it.take([verb(IntentKind.APPROVE, plan)], LATER)
    [record] = rounds_in(rows)
    assert [(m.bundle, m.destination, m.reason) for m in record.moves] == [
        (bundle, "b:1", "approved") for bundle in EIGHTHS[:4]
    ]
    assert told(rows) == [("v", "accepted", "")]
    [running] = plans_in(rows)
    assert (running.state, running.by, states(running)) == ("running", "ann", ["begun"] * 4)
    rows, _ = it.take(landed(plan), LATER + 1000)
    assert told(rows) == [("v", "done", "")]
    assert [(each.state, states(each)) for each in plans_in(rows)] == [("done", ["done"] * 4)]


def test_the_mode_automatic_carries_out_at_once() -> None:
    it = waiting_cluster("automatic")
    rows, _ = it.wake(FIRST_ROUND)
    [record] = rounds_in(rows)
    assert (len(record.moves), record.held, plans_in(rows)) == (4, None, [])


def test_observing_shows_the_plan_as_moves_and_keeps_none() -> None:
    it = waiting_cluster("approve", round__observe_only=True)
    rows, _ = it.wake(FIRST_ROUND)
    [record] = rounds_in(rows)
    assert (record.observe_only, it.memory.plans) == (True, ())


def test_while_a_plan_waits_for_approval_nothing_newer_is_kept() -> None:
    it = waiting_cluster("approve")
    plan = proposed(it)
    it.take([change_row(EIGHTHS[0], "b:1", 3)], LATER)
    assert plans_in(it.wake(FIRST_ROUND + 60_000)[0]) == []
    assert [each.id for each in it.memory.plans] == [plan.id]


def test_what_is_only_proposed_is_overtaken_by_what_wants_something_else() -> None:
    it = waiting_cluster("propose")
    plan = proposed(it)
    assert plans_in(it.wake(FIRST_ROUND + 60_000)[0]) == []
    it.take([change_row(EIGHTHS[0], "b:1", 3)], FIRST_ROUND + 61_000)
    old, new = plans_in(it.wake(FIRST_ROUND + 120_000)[0])
    assert (old.id, old.state, new.state) == (plan.id, "overtaken", "proposed")
    rows, _ = it.take([verb(IntentKind.APPROVE, plan)], FIRST_ROUND + 121_000)
    assert told(rows) == [("v", "refused", "plan-overtaken")]
    assert f"{new.id} is the newest" in it.memory.problems[-1]


def test_an_approval_that_comes_again_is_the_same_and_another_is_refused() -> None:
    it = waiting_cluster()
    plan = proposed(it)
    it.take([verb(IntentKind.APPROVE, plan)], LATER)
    rows, _ = it.take([verb(IntentKind.APPROVE, plan)], LATER + 100)
    assert (told(rows), rounds_in(rows)) == ([], [])
    rows, _ = it.take([verb(IntentKind.APPROVE, plan, "again")], LATER + 200)
    assert told(rows) == [("again", "refused", "already-approved")]
    it.take(landed(plan), LATER + 300)
    rows, _ = it.take([verb(IntentKind.APPROVE, plan, "late")], LATER + 400)
    assert (told(rows), rounds_in(rows)) == ([("late", "refused", "already-approved")], [])


def test_a_plan_without_approval_expires_and_can_no_longer_be_approved() -> None:
    it = waiting_cluster(plans__expiry=100.0)
    plan = proposed(it)
    rows, _ = it.take([verb(IntentKind.APPROVE, plan)], plan.until)
    assert told(rows) == [("v", "refused", "plan-expired")]
    assert next(each.state for each in plans_in(rows)) == "expired"


def test_a_plan_that_was_approved_in_a_pause_and_not_begun_expires_with_its_intent() -> None:
    it = waiting_cluster(plans__expiry=100.0)
    plan = proposed(it)
    it.take([said(IntentKind.PAUSE), verb(IntentKind.APPROVE, plan)], LATER)
    assert plan_of(it, plan.id).state == "approved"
    rows, _ = it.take([said(IntentKind.RESUME, id="r")], LATER + 100_000)
    assert ("v", "expired", "") in told(rows)
    assert [move for record in rounds_in(rows) for move in record.moves] == []
    assert it.memory.round.approved == {}


def test_a_bundle_whose_owner_has_changed_is_skipped_and_the_rest_moves() -> None:
    it = waiting_cluster()
    plan = proposed(it)
    it.take([change_row(EIGHTHS[0], "b:1", 3)], LATER)
    rows, _ = it.take([verb(IntentKind.APPROVE, plan)], LATER + 100)
    [record] = rounds_in(rows)
    assert [move.bundle for move in record.moves] == EIGHTHS[1:4]
    [running] = plans_in(rows)
    assert states(running) == ["skipped", "begun", "begun", "begun"]
    assert running.steps[0].rule in ("unowned", "not-reported")


def test_a_plan_of_which_nothing_can_be_done_is_refused_by_the_first_rule() -> None:
    it = waiting_cluster()
    plan = proposed(it)
    it.take([said(IntentKind.DRAIN, id="d", broker="b:1")], LATER)
    rows, _ = it.take([verb(IntentKind.APPROVE, plan)], LATER + 100)
    assert told(rows)[0][1:] == ("accepted", "")
    assert ("v", "refused", "unfit-destination") in told(rows)
    assert plan_of(it, plan.id).state == "done"


def test_a_rejected_plan_is_not_proposed_again_before_it_would_have_expired() -> None:
    it = waiting_cluster("approve", plans__expiry=150.0)
    plan = proposed(it)
    rows, _ = it.take([verb(IntentKind.REJECT, plan)], LATER)
    assert (told(rows), [each.state for each in plans_in(rows)]) == (
        [("v", "done", "")],
        ["rejected"],
    )
    assert plans_in(it.wake(FIRST_ROUND + 60_000)[0]) == []
    it.wake(FIRST_ROUND + 120_000)
    [again] = plans_in(it.wake(FIRST_ROUND + 180_000)[0])
    assert again.asks_the_same(plan)


def test_cancelling_calls_off_what_has_not_begun() -> None:
    it = waiting_cluster(round__max_moves=4)
    plan = proposed(it)
    it.take([said(IntentKind.SETTINGS, settings={"plans.broker_moves": 1})], LATER)
    it.take([verb(IntentKind.APPROVE, plan)], LATER + 100)
    assert states(plan_of(it, plan.id)) == ["begun", "waiting", "waiting", "waiting"]
    rows, _ = it.take([verb(IntentKind.CANCEL, plan, "c", "bob")], LATER + 200)
    assert told(rows) == [("c", "done", ""), ("v", "expired", "")]
    assert states(plan_of(it, plan.id)) == ["begun", "skipped", "skipped", "skipped"]
    assert plan_of(it, plan.id).state == "cancelled"
    it.take([], LATER + 5000)
    assert [move for r in rounds_in(it.wake(FIRST_ROUND + 60_000)[0]) for move in r.moves] == []


def test_a_plan_larger_than_a_budget_runs_in_several_rounds() -> None:
    it = waiting_cluster()
    plan = proposed(it)
    it.take([said(IntentKind.SETTINGS, settings={"plans.broker_moves": 3})], LATER)
    rows, _ = it.take([verb(IntentKind.APPROVE, plan)], LATER + 100)
    moved = [len(record.moves) for record in rounds_in(rows)]
    rows, _ = it.wake(LATER + 1200)
    moved += [len(record.moves) for record in rounds_in(rows)]
    assert moved == [3, 1]
    rows, _ = it.take(landed(plan), LATER + 2000)
    assert told(rows) == [("v", "done", "")]


def test_undoing_takes_back_what_is_still_where_the_plan_put_it() -> None:
    it = waiting_cluster()
    plan = proposed(it)
    it.take([verb(IntentKind.APPROVE, plan)], LATER)
    reports = list(landed(plan))
    it.take(reports, LATER + 100)
    it.take([change_row(EIGHTHS[0], "a:1", 9)], LATER + 200)
    rows, _ = it.take([verb(IntentKind.UNDO, plan, "u")], LATER + 300)
    assert told(rows)[0] == ("u", "accepted", "")
    assert plan_of(it, plan.id).state == "undone"
    back = plan_of(it, f"{plan.id}-undo")
    assert [(s.bundle, s.source, s.destination) for s in back.steps] == [
        (bundle, "b:1", "a:1") for bundle in reversed(EIGHTHS[:4])
    ]
    # The view still shows what brokers reported before they got the bundles.
    assert {step.rule for step in back.steps} <= {"", "not-reported", "unowned"}
    rows, _ = it.take([verb(IntentKind.UNDO, plan, "u2")], LATER + 400)
    assert told(rows) == [("u2", "refused", "plan-state")]


def test_what_is_begun_and_does_not_land_is_given_up() -> None:
    it = waiting_cluster()
    plan = proposed(it)
    it.take([verb(IntentKind.APPROVE, plan)], LATER)
    it.hold_round(LATER + 150_000)
    rows, _ = it.take([], LATER + 150_001)
    assert [rule for _, state, rule in told(rows) if state == "refused"] == ["late"]
    assert states(plan_of(it, plan.id)) == ["skipped"] * 4


@pytest.mark.parametrize("kind", [IntentKind.APPROVE, IntentKind.UNDO])
def test_while_the_job_observes_no_plan_is_carried_out(kind: IntentKind) -> None:
    it = waiting_cluster()
    plan = proposed(it)
    it.take([said(IntentKind.SETTINGS, settings={"round.observe_only": True})], LATER)
    rows, _ = it.take([verb(kind, plan)], LATER + 100)
    [(_, state, rule)] = told(rows)
    assert (state, rule) in {("refused", "observing"), ("refused", "plan-state")}


def test_an_unknown_plan_is_refused_with_those_that_are_near() -> None:
    it = waiting_cluster()
    proposed(it)
    rows, _ = it.take([verb(IntentKind.APPROVE, "1-0000")], LATER)
    assert told(rows) == [("v", "refused", "unknown-plan")]


def test_a_bundle_that_two_plans_move_moves_once() -> None:
    it = waiting_cluster("propose")
    plan = proposed(it)
    other = KeptPlan(
        "other",
        "c",
        PlanState.PROPOSED,
        Mode.PROPOSE,
        (Step(StepKind.MOVE, EIGHTHS[0], "a:1", "z:1"),),
        Effect(1),
        0,
        10**9,
    )
    it.memory = replace(it.memory, plans=(*it.memory.plans, other))
    both = [verb(IntentKind.APPROVE, plan), verb(IntentKind.APPROVE, other, "w")]
    rows, _ = it.take(both, LATER)
    moved = [move.bundle for record in rounds_in(rows) for move in record.moves]
    assert moved.count(EIGHTHS[0]) == 1
    assert ("w", "refused", "already-in-plan") in told(rows)


def test_repairs_wait_for_no_approval() -> None:
    """The bundles of a lost broker are given to others in every mode."""
    it = waiting_cluster("approve")
    it.take([said(IntentKind.BROKER_LOST, broker="a:1")], 2000)
    repaired = [r for record in [held(it, 2001)] for r in record.repairs]
    flights = it.memory.in_flight
    assert repaired or {each.destination for each in flights.values()} == {"b:1"}


def test_what_an_operator_asks_for_waits_for_no_approval() -> None:
    it = waiting_cluster("approve")
    rows, _ = it.take([said(IntentKind.UNLOAD, id="1", bundle=EIGHTHS[7], broker="b:1")], 2000)
    assert [move.bundle for record in rounds_in(rows) for move in record.moves] == [EIGHTHS[7]]


@pytest.mark.parametrize(
    ("state", "event"), [*itertools.product(PlanState, PlanEvent)], ids=lambda each: each.value
)
def test_every_state_is_left_only_as_the_table_says(state: PlanState, event: PlanEvent) -> None:
    plan = KeptPlan("1", "c", state, Mode.APPROVE, (), Effect(0), 0, 0)
    if allows(state, event):
        assert plan.after(event).state is TRANSITIONS[state][event]
    else:
        with pytest.raises(KeyError):
            plan.after(event)


def test_no_state_but_the_final_ones_is_without_an_end() -> None:
    final = {state for state in PlanState if not TRANSITIONS[state]}
    assert final == {"rejected", "expired", "overtaken", "undone"}
    assert {event for row in TRANSITIONS.values() for event in row} == set(PlanEvent)
    assert set(PlanEvent) > VERBS


def test_plans_are_remembered_within_bounds_and_open_ones_always() -> None:
    def plan(number: int, state: PlanState, steps: int = 1) -> KeptPlan:
        step = Step(StepKind.MOVE, state=StepState.DONE)
        return KeptPlan(str(number), "c", state, Mode.APPROVE, (step,) * steps, Effect(0), 0, 0)

    many = [plan(0, PlanState.PROPOSED), *(plan(n, PlanState.DONE) for n in range(1, 40))]
    kept = remember(*many)
    assert (len(kept), kept[0].id, kept[-1].id) == (MOST_PLANS, "0", "39")
    large = [plan(n, PlanState.DONE, MOST_STEPS_OF_ALL // 2) for n in range(3)]
    assert [each.id for each in remember(*large)] == ["1", "2"]


def test_a_memory_from_before_there_were_plans_is_read() -> None:
    """A checkpoint of an earlier version lacks the members."""
    old = msgspec.msgpack.decode(pack(Memory()))
    for member in ("plans", "controls"):
        del old[member]
    for member in ("approved", "approved_merges", "handed"):
        del old["round"][member]
    assert unpack(msgspec.msgpack.encode(old), Memory) == Memory()


def test_a_split_of_a_plan_is_done_when_its_children_stand() -> None:
    it = waiting_cluster("approve")
    step = Step(StepKind.SPLIT, EIGHTHS[0], "a:1", state=StepState.BEGUN, began=1)
    plan = KeptPlan("s", "c", PlanState.RUNNING, Mode.APPROVE, (step,), Effect(0), 0, 10**9)
    it.memory = replace(it.memory, plans=(plan,))
    it.take([change_row(EIGHTHS[0], "a:1", 3, State.SPLITTING)], 2000)
    assert plan_of(it, "s").state == "running"
    it.take([change_row(EIGHTHS[0], None, 4, State.DELETED)], 2100)
    assert plan_of(it, "s").state == "done"
