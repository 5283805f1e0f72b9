"""Whatever people say of plans, and when: each request has one outcome, no bundle moves twice."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters_by_rows import change_row, rounds_in, said
from tests.support.examples import examples
from tests.support.fleets import EIGHTHS
from tests.support.plans import FIRST_ROUND, plans_in, verb, waiting_cluster
from trimtab.cluster.operator import Cluster
from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.kept_plans.life import TRANSITIONS, PlanState
from trimtab.state.memory import Memory
from trimtab.wire.columns import pack, unpack
from trimtab.wire.intent import IntentKind
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.rows import Row, Tag

VERBS = (IntentKind.APPROVE, IntentKind.REJECT, IntentKind.CANCEL, IntentKind.UNDO)

ids = st.sampled_from("123456")
steps = st.one_of(
    st.tuples(st.sampled_from(VERBS), st.integers(0, 3), ids),
    st.tuples(st.just("land"), st.integers(0, 7), ids),
    st.tuples(st.just("round"), st.integers(1, 40), ids),
    st.tuples(st.just("pause"), st.booleans(), ids),
    st.tuples(st.just("cap"), st.integers(0, 2), ids),
)


class Played:
    """A cluster that goes through a story, and all that it told."""

    def __init__(self, mode: str, *, stored: bool) -> None:
        self.it: Cluster = waiting_cluster(mode, plans__expiry=200.0)
        self.stored = stored
        self.now, self.epoch = FIRST_ROUND, 10
        self.rows: list[Row] = list(self.it.wake(self.now)[0])

    def play(self, what: object, number: int, name: str) -> None:
        self.now += 700
        if self.stored:
            self.it.memory = unpack(pack(self.it.memory), Memory)
        self.rows += self.it.take(self.said(what, number, name), self.now)[0]
        if 0 < self.it.memory.due_ms <= self.now:
            self.rows += self.it.wake(self.now)[0]

    def said(self, what: object, number: int, name: str) -> list[Row]:
        match what:
            case "round":
                self.now += number * 1000
                return []
            case "pause":
                kind = IntentKind.PAUSE if number else IntentKind.RESUME
                return [said(kind, id=f"{kind}-{self.now}")]
            case "cap":
                values = {"plans.broker_moves": number}
                return [said(IntentKind.SETTINGS, id=f"s-{self.now}", settings=values)]
            case "land":
                return self.landed(EIGHTHS[number])
            case IntentKind():
                plans = [*self.it.memory.plans]
                plan = plans[number].id if number < len(plans) else "9-0000"
                return [verb(what, plan, f"{what}-{name}")]
        raise AssertionError(what)

    def landed(self, bundle: str) -> list[Row]:
        flight = self.it.memory.in_flight.get(bundle)
        if flight is None:
            return []
        self.epoch += 1
        return [change_row(bundle, flight.destination, self.epoch)]


@examples(160)
@given(st.sampled_from(["propose", "approve"]), st.lists(steps, max_size=20))
def test_any_story_of_plans_keeps_the_rules(
    mode: str, story: list[tuple[object, int, str]]
) -> None:
    played = Played(mode, stored=False)
    for step in story:
        played.play(*step)
    one_outcome_each(played)
    no_step_twice(played)
    only_legal_states(played.rows)


@examples(60)
@given(st.lists(steps, max_size=12))
def test_a_memory_that_was_stored_in_between_goes_on_alike(
    story: list[tuple[object, int, str]],
) -> None:
    kept, stored = Played("approve", stored=False), Played("approve", stored=True)
    for step in story:
        kept.play(*step)
        stored.play(*step)
    assert [row.payload for row in kept.rows if row.tag in (Tag.PLAN, Tag.OUTCOME)] == [
        row.payload for row in stored.rows if row.tag in (Tag.PLAN, Tag.OUTCOME)
    ]


def one_outcome_each(played: Played) -> None:
    told: dict[str, list[IntentOutcome]] = defaultdict(list)
    for row in played.rows:
        if row.tag == Tag.OUTCOME:
            outcome = msgspec.json.decode(row.payload, type=IntentOutcome)
            told[outcome.id].append(outcome)
    assert told.keys() == played.it.memory.intents.keys()
    for name, outcomes in told.items():
        assert [each.final for each in outcomes] in ([True], [False, True], [False])
        assert (name in played.it.memory.pending) is not outcomes[-1].final


def no_step_twice(played: Played) -> None:
    """Each approved move of a bundle belongs to a step of its own."""
    moved = Counter(
        (move.bundle, move.source, move.destination)
        for record in rounds_in(played.rows)
        for move in record.moves
        if move.reason == "approved"
    )
    newest: dict[str, KeptPlan] = {plan.id: plan for plan in plans_in(played.rows)}
    begun = Counter(
        (step.bundle, step.source, step.destination)
        for plan in newest.values()
        for step in plan.steps
        if step.began
    )
    assert moved == begun


def only_legal_states(rows: list[Row]) -> None:
    seen: dict[str, PlanState] = {}
    for plan in plans_in(rows):
        before = seen.get(plan.id, plan.state)
        # A batch may take a plan several steps on.
        assert plan.state in reachable(before), (before, plan.state)
        seen[plan.id] = plan.state


def reachable(state: PlanState) -> set[PlanState]:
    found, more = {state}, [state]
    while more:
        after = {*TRANSITIONS[more.pop()].values()} - found
        found |= after
        more += after
    return found
