"""Operator ② without its engine: what a cluster remembers, what arrives, when a round is due.

A round is due every interval, and what cannot wait has one of its own in between: in the batch in
which it became known, or when its deadline passes. A batch holds one round at most. Now and then
all that is held goes to the sinks too, for a replay to start from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trimtab.cluster.export import due
from trimtab.cluster.intake import intake_row, receive_rows
from trimtab.cluster.round import Deciding, held_round
from trimtab.cluster.state import ClusterState
from trimtab.explaining.telling import explanations
from trimtab.round.decide import decide, mend
from trimtab.wire.rows import Row, Tag, json_row


@dataclass(slots=True)
class Cluster(ClusterState):
    """One cluster's state, and what its operator does with it."""

    def take(self, rows: Iterable[Row], now_ms: int) -> tuple[list[Row], int]:
        """A batch's rows: what goes on to the sinks, and the timer to set (0: none)."""
        changed, out = self.receive(rows, now_ms)
        if not self.name:
            return out, 0
        if changed and self.interval_ms == 0:
            self.memory = replace(self.memory, round_ms=now_ms)
        # A timer that is due fires after the input of this very batch.
        if not 0 < self.memory.due_ms <= now_ms:
            out += self._due_round(now_ms)
        timer_ms = self._set_timer(now_ms)
        if not 0 < self.memory.due_ms <= now_ms:
            out += self._exported(now_ms)
        return out, timer_ms

    def wake(self, now_ms: int) -> tuple[list[Row], int]:
        """A timer fired: what goes on to the sinks, and the next timer."""
        if not 0 < self.memory.due_ms <= now_ms:
            # It was set before an earlier one was wanted.
            return [], 0
        self.memory = replace(self.memory, due_ms=0)
        # A batch that changes the state must be seen by the sinks, or nobody could run it again.
        out = self._due_round(now_ms) or [intake_row(self, [])]
        timer_ms = self._set_timer(now_ms)
        return out + self._exported(now_ms), timer_ms

    def receive(self, rows: Iterable[Row], now_ms: int) -> tuple[bool, list[Row]]:
        """Take a batch's rows; whether a snapshot changed, and the rows that go on to the sinks."""
        return receive_rows(self, rows, now_ms)

    def hold_round(self, now_ms: int, deciding: Deciding = decide) -> Row:
        """Decide once; the round's record for the sinks. ``now_ms`` is the batch timestamp."""
        return held_round(self, now_ms, deciding)

    def _due_round(self, now_ms: int) -> list[Row]:
        """The round that is due, if any: a whole one mends too."""
        if 0 < self.memory.round_ms <= now_ms:
            self.memory = replace(self.memory, round_ms=0)
            return [self.hold_round(now_ms), *self._explanations()]
        if 0 < self.memory.repair_ms <= now_ms:
            return [self.hold_round(now_ms, mend), *self._explanations()]
        return []

    def _set_timer(self, now_ms: int) -> int:
        """When to wake for what is due next, or 0 if a timer is set that is early enough."""
        memory, interval_ms = self.memory, self.interval_ms
        round_ms = memory.round_ms or (now_ms + interval_ms if interval_ms else 0)
        wanted = min(filter(None, (round_ms, memory.repair_ms)), default=0)
        late = wanted and not 0 < memory.due_ms <= wanted
        due_ms = wanted if late else memory.due_ms
        self.memory = replace(memory, round_ms=round_ms, due_ms=due_ms)
        return wanted if late else 0

    def _exported(self, now_ms: int) -> list[Row]:
        """What is held after this batch, if that is due: nothing may change it any more."""
        if not due(self.memory, self.settings, now_ms):
            return []
        self.memory = replace(self.memory, exported_ms=now_ms)
        return self.held().rows(self.name, now_ms)

    def _explanations(self) -> list[Row]:
        told = explanations(self.witness) if self.explains and self.witness else None
        return [] if told is None else [json_row(self.name, Tag.WHY, told)]
