"""A plan that did harm is the last for a while, and may be taken back."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters import cluster
from tests.support.clusters_by_rows import intent_row, said
from tests.support.settling import EIGHTHS, Story
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.model import Model
from trimtab.load_model.resources.takes import Takes
from trimtab.review.breaker import (
    compare_ranges,
    find_failures,
    find_slow_handovers,
    find_widened_range,
)
from trimtab.settings import Settings
from trimtab.state.ledger_state import Awaited, MoveOutcome, Noted, Side
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.rounds import RoundRecord

HALF = EIGHTHS[:4]
LASTING = {"round.grace_period": 0.0}


def plan(*outcomes: MoveOutcome) -> Noted:
    moves = {f"{i}": Awaited("a", "b", 0.1, 0.1, outcome=each) for i, each in enumerate(outcomes)}
    return Noted(1, 0, moves, {})


@pytest.mark.parametrize(
    ("landed", "fell", "lost", "said"),
    [
        pytest.param(0, 3, 0, "3 of 3 transfers failed", id="all of three"),
        pytest.param(0, 2, 0, None, id="two may be chance"),
        pytest.param(7, 3, 0, None, id="three tenths are accepted"),
        pytest.param(6, 3, 0, "3 of 9 transfers failed", id="a third is not"),
        pytest.param(6, 3, 90, "3 of 9 transfers failed", id="what was lost is no transfer"),
    ],
)
def test_transfers_that_fail(landed: int, fell: int, lost: int, said: str | None) -> None:
    outcomes = (
        [MoveOutcome.LANDED] * landed + [MoveOutcome.FAILED] * fell + [MoveOutcome.LOST] * lost
    )
    assert find_failures(plan(*outcomes), 0.3) == said


@pytest.mark.parametrize(
    ("times", "usual", "said"),
    [
        pytest.param([4.0] * 3, [1.0] * 8, "hand-overs took 4.0 s, usually 1.0 s", id="slow"),
        pytest.param([3.0] * 3, [1.0] * 8, None, id="three times as long is accepted"),
        pytest.param([0.4] * 3, [0.01] * 8, None, id="too little to count as harm"),
        pytest.param([0.02, 0.02, 9.0], [0.01] * 8, None, id="one of three"),
        pytest.param([9.0] * 2, [1.0] * 8, None, id="two may be chance"),
        pytest.param([9.0] * 3, [1.0] * 7, None, id="it is not known what is usual"),
    ],
)
def test_hand_overs_that_take_long(
    times: list[float], usual: list[float], said: str | None
) -> None:
    assert find_slow_handovers(times, usual, 3.0) == said


@pytest.mark.parametrize(
    ("surprise", "strays", "variance", "trips"),
    [
        pytest.param(0.03, 0.0, 0.0, True, id="three points"),
        pytest.param(0.01, 0.0, 0.0, False, id="one point is accepted"),
        pytest.param(0.03, 0.01, 0.0, False, id="its usage strays so far by itself"),
        pytest.param(0.20, 0.01, 0.0, True, id="but not twenty points"),
        pytest.param(0.03, 0.0, 1e-4, False, id="bundles are so noisy"),
    ],
)
def test_a_range_that_gets_wider(
    surprise: float, strays: float, variance: float, trips: bool
) -> None:
    """Both are at 50 % by the model; b reports a little more than its traffic explains."""
    view = cluster(a=0.5, b=0.5)
    known = Side(
        before=0.5,
        predicted=0.5,
        variance=0.0,
        cost=1.0,
        correction=1.0,
        used_then=0.5,
        traffic_then=0.5,
        strays=strays,
        reports=1,
        used=0.5,
        traffic=0.5,
    )
    half, one, none = np.full(2, 0.5), np.ones(2), np.zeros(2)
    model = Model(half, one, none + variance, half, half, none, one, none + strays, Estimates())
    sides = {"a": known, "b": replace(known, used=0.5 + surprise)}
    ranges = compare_ranges(Noted(1, 0, {}, sides), view, model, Settings())
    said = find_widened_range(ranges, Settings().breaker.worse)
    assert (said is not None) == trips


def test_what_is_not_known_of_bundles_needs_may_widen_the_range() -> None:
    view, one, none = cluster(a=0.5, b=0.5), np.ones((1, 2)), np.zeros((1, 0))
    takes = Takes(one / 2, one, none, none, none, np.zeros((2, 1, 0)), one / 2)
    half, zero = np.full(2, 0.5), np.zeros(2)
    model = Model(half, zero, zero, half, half, zero, zero, zero, Estimates(), takes)
    known = Side(0.5, 0.5, 0.0, 1.0, 1.0, 0.5, 0.5, strays=0.0, reports=1, used=0.5, traffic=0.5)
    sure, doubted = (
        compare_ranges(
            Noted(1, 0, {}, dict.fromkeys("ab", replace(known, doubt=doubt))),
            view,
            model,
            Settings(),
        )
        for doubt in (0.0, 0.02)
    )
    assert sure is not None
    assert doubted is not None
    assert sure.chance == 0.0
    assert doubted.chance > 3 * 0.02


def harmed(settings: dict[str, object] | None = None) -> Story:
    """Broker b, predicted at 55 %, turns out to use 190; the round at 180 s finds it."""
    it = Story(settings)
    it.reports(1, a=90.0, b=10.0)
    assert [move.bundle for move in it.round(5).moves] == HALF
    it.land(HALF)
    it.reports(50, a=45.0, b=190.0)
    it.it.receive([said(IntentKind.SETTINGS, settings={"avg.high_hits": 9})], 0)
    it.round(60)
    it.it.receive([said(IntentKind.SETTINGS, settings={"avg.high_hits": 1})], 0)
    it.reports(130, a=45.0, b=190.0)
    return it


def frozen(record: RoundRecord) -> bool:
    return record.skipped == "frozen"


def test_a_plan_that_widens_the_range_freezes_what_comes_after() -> None:
    """Without its moves a would be at 90 % and b at 10, or a little further apart: bytes have cost
    more since."""
    it = harmed()
    record = it.round(180)
    text = record.tripped["range"]
    assert re.fullmatch(
        r"after round 1 the range of usage is 145\.0%, without its moves 8\d\.\d%", text
    )
    assert (record.skipped, record.moves, record.frozen_until) == ("frozen", (), 780_000)
    assert record.problems == (f"frozen: {text}; `trimtab resume --cluster c --execute` ends it",)
    again = it.round(779)
    assert frozen(again)
    assert (again.tripped, again.problems) == (
        {},
        (f"frozen: {text}; `trimtab resume --cluster c --execute` ends it",),
    )
    thawed = it.round(780)
    assert (thawed.frozen_until, thawed.problems) == (0, ())
    assert thawed.skipped == "no-proposal"
    assert it.it.memory.round.breaker.trips == {"range": 1}


def test_a_plan_that_turns_out_well_enough_trips_nothing() -> None:
    """A surprise of 20 points on b, at 75 %: closer together than without the moves."""
    it = Story()
    it.reports(1, a=90.0, b=10.0)
    it.round(5)
    it.land(HALF)
    it.reports(50, a=45.0, b=75.0)
    it.round(60)
    it.reports(130, a=45.0, b=75.0)
    record = it.round(180)
    assert record.closed == {"landed": 4}
    assert (record.tripped, record.skipped) == ({}, "no-proposal")


def test_the_inverse_is_proposed_last_moves_first() -> None:
    record = harmed().round(180)
    assert record.moves == ()
    assert [move.bundle for move in record.undo] == HALF[::-1]
    assert {(m.source, m.destination, m.reason, m.epoch) for m in record.undo} == {
        ("b:1", "a:1", "undone", (1, 4))
    }


def test_what_comes_last_is_by_the_plan_whatever_the_bundles_are_called() -> None:
    it = harmed()
    state = it.it.memory.round
    [made] = state.ledger.plans
    assert [made.moves[bundle].place for bundle in HALF] == [0, 1, 2, 3]
    moves = {bundle: replace(move, place=3 - move.place) for bundle, move in made.moves.items()}
    ledger = replace(state.ledger, plans=(replace(made, moves=moves),))
    it.it.memory = replace(it.it.memory, round=replace(state, ledger=ledger))
    assert [move.bundle for move in it.round(180).undo] == HALF


def test_the_inverse_is_not_told_where_it_is_off() -> None:
    record = harmed({"breaker.undo": "off"}).round(180)
    assert frozen(record)
    assert record.undo == ()


def test_the_inverse_is_issued_once_and_needs_not_wait_for_the_cool_down() -> None:
    it = harmed({"breaker.undo": "issue"})
    record = it.round(180)
    assert [(m.bundle, m.destination, m.reason) for m in record.moves] == [
        (name, "a:1", "undone") for name in HALF[::-1][:3]
    ]
    assert {(refusal.bundle, refusal.rule) for refusal in record.refusals} == {
        (HALF[0], "last-bundle")
    }
    assert frozen(record)
    assert it.round(190).moves == ()


def test_where_shedding_is_off_the_inverse_is_proposed_and_not_issued() -> None:
    it = harmed({"breaker.undo": "issue"})
    it.it.receive([said(IntentKind.SETTINGS, settings={"round.enabled": False})], 0)
    record = it.round(180)
    assert (record.skipped, record.moves) == ("disabled", ())
    assert (len(record.undo), list(record.tripped)) == (4, ["range"])


def test_what_is_taken_back_is_not_taken_back_again() -> None:
    """It is far worse on a than it was on b, and that is not held against it."""
    it = harmed({"breaker.undo": "issue"})
    back = [move.bundle for move in it.round(180).moves]
    it.land(back, "a:1")
    it.reports(200, a=1900.0, b=20.0)
    it.round(210)
    it.reports(280, a=1900.0, b=20.0)
    record = it.round(340)
    assert record.closed == {"landed": 3}
    assert (record.tripped, record.undo, record.frozen_until) == ({}, (), 780_000)


@pytest.mark.parametrize(
    ("allowed", "rule"),
    [
        pytest.param(["b"], "isolated", id="it may be nowhere else"),
        pytest.param(["b", "c"], "no-candidate", id="it may be elsewhere, but not there"),
    ],
)
def test_what_may_not_go_back_stays(allowed: list[str], rule: str) -> None:
    it = harmed({"breaker.undo": "issue"})
    it.reports(170, c=10.0)
    policy = {"namespaces": ["t/.*"], "primary": allowed}
    it.it.receive([said(IntentKind.ISOLATION, name="p", isolation=policy)], 0)
    record = it.round(180)
    assert len(record.undo) == 4
    assert record.moves == ()
    assert record.refused == {rule: 4}


def test_a_broker_that_is_gone_gets_nothing_back() -> None:
    """Of a plan whose source is lost before it has settled, nothing is known on both sides."""
    it = harmed({"breaker.undo": "issue"})
    it.reports(170, c=0.0, d=0.0, e=0.0, f=0.0)
    it.it.receive([said(IntentKind.BROKER_LOST, broker="a:1")], 170_000)
    record = it.round(180)
    assert (record.closed, record.undo, record.tripped) == ({"lost": 4}, (), {})


def test_transfers_that_fail_freeze_and_are_not_followed_by_more() -> None:
    it = Story(LASTING | {"breaker.undo": "issue", "breaker.failed": 0.5})
    it.reports(1, a=90.0, b=10.0)
    assert len(it.round(5).moves) == 4
    it.keep(HALF[:3])
    it.land(HALF[3:])
    it.reports(50, a=80.0, b=20.0)
    it.it.receive([said(IntentKind.SETTINGS, settings={"avg.high_hits": 9})], 0)
    it.round(60)
    it.reports(130, a=80.0, b=20.0)
    record = it.round(180)
    assert record.tripped == {"failed-transfers": "after round 1 3 of 4 transfers failed"}
    assert [move.bundle for move in record.undo] == HALF[3:]
    assert (record.moves, record.refused) == ((), {})


def test_where_no_transfer_lands_there_is_nothing_to_wait_for() -> None:
    it = Story(LASTING)
    it.reports(1, a=90.0, b=10.0)
    it.round(5)
    it.keep(HALF)
    record = it.round(10)
    assert record.tripped == {"failed-transfers": "after round 1 4 of 4 transfers failed"}
    assert record.closed == {"failed": 4}


def test_hand_overs_slower_than_usual_freeze() -> None:
    """The usual is learnt from eight that took a second."""
    it = Story(LASTING | {"avg.high_threshold": 15.0, "ledger.settle": 1.0})
    at = 0.0
    for took in (1.0, 1.0, 1.0, 5.0):
        source, to = ("a", "b") if it.owner[HALF[0]] == "a:1" else ("b", "a")
        at += 100.0
        it.reports(at, **{source: 90.0, to: 10.0})
        moves = it.round(at).moves
        assert len(moves) >= 3
        it.land([move.bundle for move in moves], f"{to}:1", took)
        it.reports(at + 10, a=50.0, b=50.0)
        it.round(at + 10)
        it.reports(at + 15, a=50.0, b=50.0)
        record = it.round(at + 20)
        assert record.settled
        # Back to where they were, so that the next one moves as many.
        it.land([name for name in it.owner if it.owner[name] != f"{to}:1"], f"{to}:1")
    text = "after round 10 hand-overs took 5.0 s, usually 1.0 s"
    assert record.tripped == {"slow-hand-overs": text}


def test_drains_and_repairs_go_on_while_frozen() -> None:
    it = harmed()
    assert frozen(it.round(180))
    it.reports(185, c=0.0, d=0.0)
    it.it.receive([said(IntentKind.DRAIN, broker="b:1")], 185_000)
    record = it.round(190)
    assert frozen(record)
    assert {move.reason for move in record.moves} == {"drained"}
    assert len(record.moves) == 4


def test_an_operator_ends_a_freeze_by_resuming() -> None:
    it = harmed()
    assert frozen(it.round(180))
    it.it.receive([said(IntentKind.RESUME)], 185_000)
    record = it.round(190)
    assert (record.frozen_until, record.problems) == (0, ())
    assert not frozen(record)


def test_resuming_what_runs_asks_for_no_round() -> None:
    it = harmed()
    it.round(180)
    it.it.receive([said(IntentKind.RESUME)], 185_000)
    due_ms = it.it.memory.repair_ms
    it.it.receive([said(IntentKind.RESUME)], 186_000)
    assert it.it.memory.repair_ms == due_ms


def test_turning_the_breaker_off_ends_a_freeze_and_prevents_the_next() -> None:
    it = harmed()
    assert frozen(it.round(180))
    off: dict[str, str | int | float | bool] = {"breaker.enabled": False}
    changed = Intent(id="1", kind=IntentKind.SETTINGS, cluster="c", settings=off)
    it.it.receive([intent_row(changed)], 0)
    assert not frozen(it.round(190))
    other = harmed({"breaker.enabled": False})
    assert (other.round(180).tripped, other.it.memory.round.breaker.trips) == ({}, {})
