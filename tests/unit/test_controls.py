"""What people keep from the strategies: pins, modes of namespaces, budgets and caps."""

from __future__ import annotations

import pytest

from tests.support.clusters_by_rows import change_row, cluster, rounds_in, said, skewed
from tests.support.fleets import EIGHTHS, two_each
from tests.support.outcomes import told
from tests.support.plans import FIRST_ROUND, plans_in, waiting_cluster
from trimtab.cluster.operator import Cluster
from trimtab.controls import Controls, Mode, Pin
from trimtab.explaining.telling import of_subject
from trimtab.explaining.witness import Witness
from trimtab.ownership import State
from trimtab.settings.plans import PlanSettings
from trimtab.state.hand_overs import CLUSTER, Budgets, count_spent
from trimtab.wire.intent import IntentKind
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row

HOUR = 3_600_000
ELSEWHERE = [name.replace("t/ns", "u/other") for name in EIGHTHS]


def first_round(it: Cluster, *rows: Row) -> RoundRecord:
    it.take(rows, 2000)
    [record] = rounds_in(it.wake(FIRST_ROUND)[0])
    return record


def pin(subject: str, until: int = HOUR, **members: object) -> Row:
    bundle, name = (subject, "") if "0x" in subject else ("", subject)
    return said(IntentKind.PIN, 0, until=until, by="ann", bundle=bundle, name=name, **members)


def explained(it: Cluster, bundle: str) -> tuple[str, str, int]:
    assert isinstance(it.witness, Witness)
    found = of_subject(it.witness, bundle)
    return found.rule, found.why, found.until


def two_namespaces(**settings: object) -> Cluster:
    """As `waiting_cluster`, with the bundles of two namespaces."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    it = cluster({"round.interval": 60.0} | named)
    it.take(skewed([*EIGHTHS, *ELSEWHERE]), 1000)
    return it


def test_a_pinned_bundle_stays_until_its_pin_ends() -> None:
    it = waiting_cluster("automatic")
    record = first_round(it, pin(EIGHTHS[0], FIRST_ROUND + 30_000, reason="a test runs"))
    assert [move.bundle for move in record.moves] == EIGHTHS[1:5]
    assert record.controls is not None
    assert record.controls.pins[EIGHTHS[0]].by == "ann"
    rule, why, until = explained(it, EIGHTHS[0])
    assert (rule, until) == ("pinned", FIRST_ROUND + 30_000)
    assert "by ann: a test runs" in why
    it.hold_round(FIRST_ROUND + 30_000)
    assert it.memory.controls == Controls()


def test_a_pinned_namespace_stays_and_the_other_moves() -> None:
    it = two_namespaces()
    record = first_round(it, pin("t/ns"))
    assert {move.bundle for move in record.moves} <= {*ELSEWHERE}
    assert record.moves
    assert explained(it, EIGHTHS[0])[0] == "pinned"


def test_what_is_unpinned_moves_again() -> None:
    it = waiting_cluster("automatic")
    record = first_round(it, pin("t/ns"), said(IntentKind.UNPIN, name="t/ns"))
    assert len(record.moves) == 4


@pytest.mark.parametrize(("kind", "broker"), [(IntentKind.UNLOAD, "b:1"), (IntentKind.SPLIT, "")])
def test_a_pinned_bundle_is_neither_unloaded_nor_split(kind: IntentKind, broker: str) -> None:
    it = waiting_cluster("automatic")
    asked = said(kind, id="1", bundle=EIGHTHS[0], broker=broker)
    rows, _ = it.take([pin(EIGHTHS[0]), asked], 2000)
    assert ("1", "refused", "pinned") in told(rows)


def test_the_pinned_ones_of_a_namespace_that_is_unloaded_stay() -> None:
    it = waiting_cluster("automatic")
    unload = said(IntentKind.UNLOAD, id="1", name="t/ns", broker="b:1")
    rows, _ = it.take([pin(EIGHTHS[0]), unload], 2000)
    moved = {move.bundle for record in rounds_in(rows) for move in record.moves}
    assert moved == {*EIGHTHS[1:]}


def test_a_drain_takes_pinned_bundles_too() -> None:
    """The broker goes away in any case, and a bundle that stays would be lost with it."""
    it = waiting_cluster("automatic")
    rows, _ = it.take([pin("t/ns"), said(IntentKind.DRAIN, broker="a:1")], 2000)
    moved = {move.bundle for record in rounds_in(rows) for move in record.moves}
    assert moved == {*EIGHTHS}


def test_an_unowned_pinned_bundle_goes_where_it_is_pinned_also_by_lookups() -> None:
    it = two_each()
    it.take([pin(EIGHTHS[0], 10**7, broker="d:1")], 2000)
    it.take([change_row(EIGHTHS[0], None, 3, State.FREE)], 2100)
    record = rounds_in([it.hold_round(2200)])[0]
    assert record.hints is not None
    assert record.hints.proposed == {EIGHTHS[0]: "d:1"}
    rounds = [record, *rounds_in([it.hold_round(40_000)])]
    assert {r.broker for each in rounds for r in each.repairs} == {"d:1"}


@pytest.mark.parametrize(
    ("intent", "rule"),
    [
        (pin(EIGHTHS[0], 2000), "invalid-pin"),
        (pin(EIGHTHS[0], 100 * 24 * HOUR), "invalid-pin"),
        (pin("t/ns", HOUR, broker="b:1"), "invalid-pin"),
        (said(IntentKind.PIN, until=HOUR), "no-subject"),
        (said(IntentKind.PIN, until=HOUR, bundle=EIGHTHS[0], name="t/ns"), "no-subject"),
        (said(IntentKind.UNPIN, bundle=EIGHTHS[0]), "unknown-pin"),
        (said(IntentKind.BUDGET, name="t/ns", limit=3), "invalid-budget"),
        (said(IntentKind.BUDGET, name="t", limit=10**7), "invalid-budget"),
        (said(IntentKind.MODE, mode="approve"), "no-subject"),
    ],
)
def test_what_cannot_be_is_refused_by_its_rule(intent: Row, rule: str) -> None:
    rows, _ = waiting_cluster().take([intent], 2000)
    assert [(state, found) for _, state, found in told(rows)] == [("refused", rule)]


def test_a_namespace_that_waits_stays_and_a_plan_for_it_alone_is_kept() -> None:
    it = two_namespaces()
    it.take([said(IntentKind.MODE, name="t/ns", mode="approve")], 2000)
    rows, _ = it.wake(FIRST_ROUND)
    [record] = rounds_in(rows)
    assert record.moves
    assert {move.bundle for move in record.moves} <= {*ELSEWHERE}
    for plan in plans_in(rows):
        assert {step.bundle for step in plan.steps} <= {*EIGHTHS}
    assert explained(it, EIGHTHS[7])[0] == "held"


def test_a_namespace_that_is_observed_is_shown_and_not_kept() -> None:
    it = waiting_cluster("automatic")
    record = first_round(it, said(IntentKind.MODE, name="t/ns", mode="observe"))
    assert record.held is not None
    assert (record.moves, len(record.held.moves), it.memory.plans) == ((), 4, ())


@pytest.mark.parametrize("mode", ["propose", "approve"])
def test_a_broker_whose_plan_waits_says_so_and_where_it_is(mode: str) -> None:
    """It must not say that no plan was found."""
    it = waiting_cluster(mode)
    first_round(it)
    for broker, would in (("a:1", "it would give 4 bundles and get 0"), ("b:1", "get 4")):
        rule, why, _ = explained(it, broker)
        assert rule == "held"
        assert would in why
        assert f"plans.mode: {mode}): `trimtab plans list --cluster c`" in why


def test_a_namespace_of_the_mode_automatic_moves_in_a_cluster_that_waits() -> None:
    it = waiting_cluster("approve")
    record = first_round(it, said(IntentKind.MODE, name="t/ns", mode="automatic"))
    assert (len(record.moves), record.held) == (4, None)
    ended = said(IntentKind.MODE, name="t/ns")
    it.take([ended], FIRST_ROUND + 1)
    assert it.memory.controls == Controls()


def test_outside_of_a_window_nothing_moves_and_no_plan_is_kept() -> None:
    """The cluster's time is on a Thursday, shortly after midnight."""
    it = waiting_cluster("automatic", plans__windows="thu 02:00-03:00")
    record = first_round(it)
    assert record.held is not None
    assert (record.moves, len(record.held.moves), it.memory.plans) == ((), 4, ())
    rule, _, until = explained(it, EIGHTHS[0])
    assert (rule, until) == ("outside-window", 2 * HOUR)
    [record] = rounds_in([it.hold_round(2 * HOUR)])
    assert record.held is None


def test_a_broker_gives_and_gets_no_more_than_its_cap_in_a_round() -> None:
    record = first_round(waiting_cluster("automatic", plans__broker_moves=3))
    assert len(record.moves) == 3
    assert record.refused == {"broker-budget": 1}


def test_a_cluster_moves_no_more_than_its_cap_in_a_minute() -> None:
    it = waiting_cluster("automatic", plans__minute_moves=3, round__grace_period=0.0)
    record = first_round(it)
    assert (len(record.moves), record.refused) == (3, {"minute-budget": 1})


@pytest.mark.parametrize("by_intent", [False, True])
def test_a_tenants_bundles_move_no_more_often_than_its_budget_allows(*, by_intent: bool) -> None:
    it = waiting_cluster("automatic", plans__tenant_moves=0 if by_intent else 3)
    rows = [said(IntentKind.BUDGET, name="t", limit=3)] if by_intent else []
    record = first_round(it, *rows)
    assert (len(record.moves), record.refused) == (3, {"tenant-budget": 1})
    unload = said(IntentKind.UNLOAD, id="1", bundle=EIGHTHS[7], broker="b:1")
    rows, _ = it.take([unload], FIRST_ROUND + 1000)
    assert ("1", "refused", "tenant-budget") in told(rows)


def test_a_budget_of_none_keeps_a_tenant_where_it_is() -> None:
    it = waiting_cluster("automatic")
    record = first_round(it, said(IntentKind.BUDGET, name="t", limit=0))
    assert (record.moves, record.refused) == ((), {"tenant-budget": 4})


def test_moves_are_counted_for_their_period_and_for_no_longer_than_a_sixtieth_more() -> None:
    settings = PlanSettings(minute_moves=5, tenant_moves=5, tenant_period=3600.0)
    handed = Budgets(settings, Controls(), {}, 10_500).after(["t/ns/0x0_0x1", "u/ns/0x0_0x1"])
    spent = [count_spent(handed, CLUSTER, settings, at) for at in (10_500, 70_000, 72_000)]
    assert spent == [2, 2, 0]
    assert [count_spent(handed, "t", settings, at) for at in (10_500, HOUR, HOUR + 71_000)] == [
        1,
        1,
        0,
    ]
    assert Budgets(settings, Controls(), handed, 10 * HOUR).after([]) == {}


def test_without_budgets_nothing_is_counted() -> None:
    assert Budgets(PlanSettings(), Controls(), {}, 1).after(["t/ns/0x0_0x1"]) == {}


def test_a_pin_has_precedence_over_its_namespaces() -> None:
    own, whole = Pin(5, "ann"), Pin(9, "bob")
    controls = Controls(pins={EIGHTHS[0]: own, "t/ns": whole})
    assert (controls.pin_of(EIGHTHS[0]), controls.pin_of(EIGHTHS[1])) == (own, whole)
    assert controls.at(5).pins == {"t/ns": whole}
    assert controls.modes.get("t/ns", Mode.AUTOMATIC) is Mode.AUTOMATIC
