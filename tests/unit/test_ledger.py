"""What moves were predicted to do is held against what came of them, once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clusters import NOW_MS
from tests.support.clusters_by_rows import said
from tests.support.settling import EIGHTHS, Story
from trimtab.load_model.history import PlannerHistory
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.plan import Forecast, LandedMove
from trimtab.review.ledger import (
    BrokerReport,
    BundlePlace,
    count_reports,
    follow_moves,
    time_handovers,
)
from trimtab.settings import Settings
from trimtab.state.ledger_state import MOST_OPEN, Awaited, Ledger, MoveOutcome, Noted, Side
from trimtab.state.round_state import RoundState
from trimtab.wire.columns import pack, unpack
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import Change, Record
from trimtab.wire.rounds import RoundRecord

HALF = EIGHTHS[:4]


def moved(settings: dict[str, object] | None = None) -> Story:
    """Half of broker a's bundles is sent to b in the round at 5 s; it uses 90 %, b 10 %."""
    it = Story(settings)
    it.reports(1, a=90.0, b=10.0)
    assert [move.bundle for move in it.round(5).moves] == HALF
    return it


def landed(settings: dict[str, object] | None = None) -> Story:
    """As before; they have landed, which the round at 60 s sees."""
    it = moved(settings)
    it.land(HALF)
    it.reports(50, a=45.0, b=55.0)
    it.round(60)
    return it


def told(record: RoundRecord) -> list[tuple[float, ...]]:
    """Before, predicted and realised of source and destination, each once, in percent."""
    sides = {
        (f.before, f.predicted, f.realised)
        for move in record.settled
        for f in (move.left, move.joined)
    }
    return [tuple(round(100 * value, 1) for value in side) for side in sorted(sides)]


def test_a_settled_move_says_what_was_predicted_and_what_came() -> None:
    """A byte costs what it costs on a: half of 90 % leaves there, and comes to the 10 % of b."""
    it = landed()
    it.reports(125, a=48.0, b=60.0)
    record = it.round(180)
    assert told(record) == [(10.0, 55.0, 60.0), (90.0, 45.0, 48.0)]
    assert [move.bundle for move in record.settled] == HALF
    assert {(m.source, m.destination, m.round, m.seconds) for m in record.settled} == {
        ("a:1", "b:1", 1, 175.0)
    }
    assert record.closed == {"landed": 4}
    assert record.bias == pytest.approx(0.04, abs=1e-6)
    assert it.round(240).settled == ()


def test_realised_is_the_mean_of_the_reports_of_the_second_half() -> None:
    it = landed()
    for at, a, b in ((119, 0.0, 0.0), (121, 44.0, 50.0), (150, 46.0, 58.0)):
        it.reports(at, a=a, b=b)
        it.round(at)
    it.reports(150, a=99.0, b=99.0)
    assert told(it.round(180)) == [(10.0, 55.0, 54.0), (90.0, 45.0, 45.0)]


def test_a_plan_waits_for_the_last_landing_and_for_both_sides() -> None:
    it = moved()
    it.land(HALF[:3])
    it.set_out(HALF[3:])
    it.reports(50, a=50.0, b=50.0)
    it.round(60)
    it.reports(190, a=50.0, b=50.0)
    assert it.round(200).closed == {}
    it.counter[HALF[3]] -= 1
    it.land(HALF[3:])
    it.reports(210, a=45.0, b=55.0)
    it.round(220)
    it.reports(290, a=45.0)
    assert it.round(345).closed == {}
    it.reports(350, b=55.0)
    assert it.round(351).closed == {"landed": 4}


def test_a_side_that_stays_silent_is_not_waited_for_for_ever() -> None:
    it = landed({"doubt.silent_brokers": 1.0, "round.silence": 3000.0})
    it.reports(125, a=45.0)
    assert it.round(1259).closed == {}
    record = it.round(1260)
    assert (record.closed, record.settled) == ({"expired": 4}, ())


def test_a_move_that_was_kept_has_failed() -> None:
    it = moved({"breaker.enabled": False})
    it.keep(HALF[:1])
    it.land(HALF[1:])
    it.reports(50, a=55.0, b=45.0)
    it.round(60)
    it.reports(125, a=55.0, b=45.0)
    record = it.round(180)
    assert record.closed == {"landed": 3, "failed": 1}
    assert [move.bundle for move in record.settled] == HALF[1:]


def test_what_failed_is_not_held_against_the_others() -> None:
    """Predicted with all four, 45 and 55 %: the one that stayed is taken out of what came."""
    it = moved({"breaker.enabled": False})
    it.keep(HALF[:1])
    it.land(HALF[1:])
    it.reports(50, a=56.25, b=43.75)
    it.round(60)
    it.reports(125, a=56.25, b=43.75)
    assert told(it.round(180)) == [(10.0, 55.0, 55.0), (90.0, 45.0, 45.0)]


def test_a_move_ends_with_a_broker_that_is_lost() -> None:
    it = moved()
    it.reports(50, c=0.0, d=0.0, e=0.0)
    it.it.receive([said(IntentKind.BROKER_LOST, broker="b:1")], 50_000)
    assert it.round(60).closed == {"lost": 4}


def test_a_move_of_which_nothing_is_heard_expires() -> None:
    """They were handed over, and the new owner does not report them."""
    it = moved()
    it.land(HALF)
    assert it.round(1504).closed == {}
    assert it.round(1505).closed == {"expired": 4}


@pytest.mark.parametrize("settings", [{"round.observe_only": True}, {"ledger.enabled": False}])
def test_what_does_not_happen_or_is_not_asked_for_is_not_noted(settings: dict[str, object]) -> None:
    assert moved(settings).it.memory.round.ledger == Ledger()


def side(**given: float) -> Side:
    figures: dict[str, Any] = dict.fromkeys(Side.__dataclass_fields__, 0)
    return Side(**figures | given)


def noted(number: int, count: int = 1) -> Noted:
    moves = {f"{number}/{i}": Awaited("a", "b", 0.1, 0.1) for i in range(count)}
    return Noted(number, 0, moves, {"a": side(), "b": side()})


def test_the_oldest_plans_are_given_up_when_too_much_is_waited_for() -> None:
    ledger, given_up = Ledger(), []
    for number in range(4):
        ledger, more = ledger.having(noted(number, MOST_OPEN // 2))
        given_up.append(more)
    assert [plan.round for plan in ledger.plans] == [2, 3]
    assert given_up == [0, 0, MOST_OPEN // 2, MOST_OPEN // 2]


def test_what_a_later_plan_brings_is_taken_out() -> None:
    """The first predicted 50 % for b; 20 more came with the second, and 71 % are reported."""
    places = dict.fromkeys(EIGHTHS[:2], BundlePlace("b", "b"))
    first = Noted(
        1,
        0,
        {EIGHTHS[0]: Awaited("a", "b", 0.2, 0.2, outcome=MoveOutcome.LANDED)},
        {"b": side(before=0.3, predicted=0.5)},
        ended_ms=1,
    )
    second = Noted(2, 0, {EIGHTHS[1]: Awaited("a", "b", 0.1, 0.2)}, {"b": side(predicted=0.7)})
    ledger = follow_moves(Ledger(plans=(first, second)), places, {"a", "b"}, Settings(), 60_000)
    ledger = count_reports(ledger, {"b": BrokerReport(NOW_MS, 0.71, 0.0)}, 1.0)
    assert [plan.sides["b"].realised for plan in ledger.plans] == pytest.approx([0.51, 0.71])


def test_the_errors_are_means_of_the_last_sides() -> None:
    settled = LandedMove("x", "a", "b", 1, 9.0, Forecast(0.9, 0.5, 0.6), Forecast(0.1, 0.5, 0.4))
    ledger = Ledger().counting([settled])
    assert ledger.sides == 2
    assert ledger.error == pytest.approx(0.1)
    assert ledger.bias == pytest.approx(0.0)


def change(event: Event, counter: int, since: int) -> Change:
    state = State.RELEASING if event is Event.TRANSFER else State.OWNED
    owner, to = ("a", "b") if event is Event.TRANSFER else ("b", None)
    record = Record(state=state, epoch=Epoch(1, counter), owner=owner, destination=to, since=since)
    return Change(cluster="c", bundle=EIGHTHS[0], event=event, record=record)


def test_a_hand_over_is_timed_by_the_stores_clock_in_whatever_order_it_is_told() -> None:
    move = Awaited("a", "b", 0.1, 0.1, counter=1, generation=1)
    ledger = Ledger(plans=(Noted(1, 0, {EIGHTHS[0]: move}, {}),))
    told = [change(Event.SERVE, 4, 9300), change(Event.TRANSFER, 2, 9000)]
    known = time_handovers(ledger, told).plans[0].moves[EIGHTHS[0]]
    assert (known.began_ms, known.served_ms) == (9000, 9300)
    # The same news again, and what was before the move.
    assert time_handovers(
        time_handovers(ledger, told), [*told, change(Event.SERVE, 1, 1)]
    ) == time_handovers(ledger, told)
    assert (
        time_handovers(ledger, [change(Event.TRANSFER, 1, 1), change(Event.SERVE, 4, 9300)])
        == ledger
    )


def test_a_state_from_before_there_was_a_ledger_is_read() -> None:
    assert unpack(pack({"number": 3}), RoundState) == RoundState(number=3)
    assert unpack(pack({"unexplained": {"a": 0.1}}), PlannerHistory).corrections == {}


def test_an_open_ledger_is_kept_with_the_state() -> None:
    state = landed().it.memory.round
    assert state.ledger.plans[0].moves[HALF[0]].outcome is MoveOutcome.LANDED
    assert unpack(pack(state), RoundState).ledger == state.ledger
