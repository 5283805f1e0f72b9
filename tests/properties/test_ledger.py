"""Every move is closed exactly once, whatever becomes of it."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters_by_rows import said
from tests.support.settling import EIGHTHS, Story
from trimtab.state.ledger_state import Ledger
from trimtab.state.round_state import RoundState
from trimtab.wire.columns import pack, unpack
from trimtab.wire.intent import IntentKind
from trimtab.wire.planned import PlannedMove
from trimtab.wire.rounds import RoundRecord

READY = {
    "round.grace_period": 60.0,
    "round.move_deadline": 30.0,
    "round.silence": 3000.0,
    "avg.high_threshold": 15.0,
    "doubt.silent_brokers": 1.0,
    "breaker.freeze": 90.0,
}

fates = st.sampled_from(["lands", "lands", "lands", "is kept", "sets out", "is not heard of"])
undoing = st.sampled_from(["off", "propose", "issue"])
percents = st.sampled_from([10.0, 50.0, 90.0, 190.0])
pauses = st.sampled_from([20, 40, 70, 130, 2000])


class Told(Story):
    """Moves between two brokers that meet the fates that are drawn."""

    def __init__(self, data: st.DataObject, undo: str) -> None:
        super().__init__(READY | {"breaker.undo": undo})
        self._data = data
        self._at = 0

    def step(self) -> RoundRecord:
        self._at += self._data.draw(pauses)
        self.reports(self._at, a=self._data.draw(percents), b=self._data.draw(percents))
        if self._data.draw(st.integers(0, 9)) == 0:
            lost = self._data.draw(
                st.sampled_from([IntentKind.BROKER_LOST, IntentKind.BROKER_JOINED])
            )
            self.it.receive([said(lost, at_ms=self._at * 1000, broker="b:1")], self._at * 1000)
        record = self.round(self._at)
        for move in record.moves:
            self._meet(move)
        return record

    def _meet(self, move: PlannedMove) -> None:
        match self._data.draw(fates):
            case "lands":
                self.land([move.bundle], move.destination)
            case "is kept":
                self.keep([move.bundle])
            case "sets out":
                self.set_out([move.bundle], move.destination)
                # Its owner gives it up after a while, and may be asked again.
                self.keep([move.bundle])


@given(st.data(), undoing)
def test_every_move_is_closed_once_or_still_waited_for(data: st.DataObject, undo: str) -> None:
    it, moves, closed, settled = Told(data, undo), 0, 0, Counter[tuple[int, str]]()
    for _ in range(data.draw(st.integers(1, 12))):
        record = it.step()
        moves += len(record.moves)
        closed += sum(record.closed.values())
        settled.update((move.round, move.bundle) for move in record.settled)
        ledger = it.it.memory.round.ledger
        assert moves == closed + waited_for(ledger)
        assert all(times == 1 for times in settled.values())
        assert unpack(pack(it.it.memory.round), RoundState).ledger == ledger


def waited_for(ledger: Ledger) -> int:
    return sum(len(plan.moves) for plan in ledger.plans)


@given(st.data())
def test_a_frozen_cluster_moves_nothing_but_what_is_taken_back(data: st.DataObject) -> None:
    it = Told(data, data.draw(undoing))
    for _ in range(data.draw(st.integers(1, 12))):
        record = it.step()
        if record.skipped == "frozen":
            assert {move.reason for move in record.moves} <= {"undone"}
            assert record.frozen_until > record.at or record.tripped
        assert bool(record.tripped) <= (record.skipped == "frozen")
        assert set(record.tripped) <= {"range", "slow-hand-overs", "failed-transfers"}
        assert {move.bundle for move in record.undo} <= set(EIGHTHS)
