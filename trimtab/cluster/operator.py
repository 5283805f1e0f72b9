"""Operator ② without the engine: a cluster's state, its input, and when a round is due.

A round is due every interval. What cannot wait gets a round of its own in between: in the batch in
which it became known, or when its deadline passes. A batch holds at most one round. At intervals
the sinks also get the whole state, so that a replay can start from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trimtab.cluster.batch import Batch, parse_batch
from trimtab.cluster.changes import take_changes
from trimtab.cluster.export import due
from trimtab.cluster.intake import (
    answer_intent,
    ends_loss,
    find_outcome,
    intake_row,
    is_outdated,
    note_watcher,
    refusal_letter,
    take_snapshots,
)
from trimtab.cluster.outcomes import is_repeated
from trimtab.cluster.plans.outcomes import end_with_plans
from trimtab.cluster.plans.progress import expire_plans
from trimtab.cluster.round import Deciding, forget_old, hold_round
from trimtab.cluster.state import ClusterState
from trimtab.explaining.telling import explanations
from trimtab.round.decide import decide, repair_only
from trimtab.state.memory import Memory
from trimtab.wire.rows import Row, Tag, json_row


@dataclass(slots=True)
class Cluster(ClusterState):
    """One cluster's state and the operations on it."""

    def take(self, rows: Iterable[Row], now_ms: int) -> tuple[list[Row], int]:
        """Process a batch's rows; return the rows for the sinks and the timer to set (0: none)."""
        before = self.memory
        changed, out = self.receive(rows, now_ms)
        if not self.name:
            return out, 0
        if changed and self.interval_ms == 0:
            self.memory = replace(self.memory, round_ms=now_ms)
        # A timer that is already due fires after this batch's input.
        if not 0 < self.memory.due_ms <= now_ms:
            out += self._due_round(now_ms)
        out += self._told(before, now_ms)
        timer_ms = self._set_timer(now_ms)
        if not 0 < self.memory.due_ms <= now_ms:
            out += self._exported(now_ms)
        return out, timer_ms

    def wake(self, now_ms: int) -> tuple[list[Row], int]:
        """Handle a timer; return the rows for the sinks and the next timer to set (0: none)."""
        if not 0 < self.memory.due_ms <= now_ms:
            # A stale timer: an earlier one was set after it.
            return [], 0
        before = self.memory
        self.memory = replace(self.memory, due_ms=0)
        # The sinks must see every batch that changes the state, or it could not be replayed.
        out = self._due_round(now_ms) or [intake_row(self, [])]
        out += self._told(before, now_ms)
        timer_ms = self._set_timer(now_ms)
        return out + self._exported(now_ms), timer_ms

    def receive(self, rows: Iterable[Row], now_ms: int) -> tuple[bool, list[Row]]:
        """Apply a batch's rows; return whether a snapshot changed, and the rows for the sinks."""
        batch = parse_batch(rows)
        self.memory = expire_plans(self.memory, now_ms)
        out = [*batch.letters, *self._take_intents(batch, now_ms)]
        take_changes(self, batch.changes, now_ms)
        take_snapshots(self, batch.snapshots)
        if self.name and batch.has_input:
            # Even without reports: the sinks must see every batch that changes the state, or it
            # could not be replayed.
            out = [*out, intake_row(self, batch.reports)]
        return bool(batch.snapshots), out

    def _take_intents(self, batch: Batch, now_ms: int) -> list[Row]:
        """Apply a batch's intents; return the dead letters of those that are refused."""
        letters = []
        for intent, row in batch.intents:
            if is_repeated(self.memory, intent) or is_outdated(self.memory, intent, row):
                continue
            returns = ends_loss(intent, self.memory)
            applied = answer_intent(self, batch, intent, row.appended_ms, now_ms)
            self.memory = note_watcher(applied.memory, intent, row)
            if returns:
                # Its reports from before the loss do not describe it now.
                self.set_aside({intent.broker})
            self.tell(find_outcome(self, intent, applied, now_ms))
            if applied.refused is not None:
                letters.append(refusal_letter(row, applied.refused))
        return letters

    def hold_round(self, now_ms: int, deciding: Deciding = decide) -> Row:
        """Decide once; return the record for the sinks. ``now_ms`` is the batch timestamp."""
        self.recall_learnt()
        forget_old(self, now_ms)
        held = hold_round(self, now_ms, deciding)
        self.memory, self.witness, self.learnt = held.memory, held.witness, held.learnt
        self.outcomes += held.outcomes
        return held.record

    def _due_round(self, now_ms: int) -> list[Row]:
        """Hold the round that is due, if any; a full round repairs too."""
        if 0 < self.memory.round_ms <= now_ms:
            self.memory = replace(self.memory, round_ms=0)
            return [self.hold_round(now_ms), *self._explanations()]
        if 0 < self.memory.repair_ms <= now_ms:
            return [self.hold_round(now_ms, repair_only), *self._explanations()]
        return []

    def _told(self, before: Memory, now_ms: int) -> list[Row]:
        """Outcomes of intents that became known since the last call, and the kept plans and
        migrations that are not as ``before``."""
        self.tell(end_with_plans(self.name, self.memory, now_ms))
        outcomes, self.outcomes = self.outcomes, []
        rows = [json_row(self.name, Tag.OUTCOME, each) for each in outcomes]
        changed = [plan for plan in self.memory.plans if plan not in before.plans]
        rows += [json_row(self.name, Tag.PLAN, plan) for plan in changed]
        # Brokers look by the record: one that has 0 would never bring a count that changes it.
        kept = self.memory.migrations
        if kept.items:
            kept = kept.with_check(self.settings.migration.check)
            self.memory = replace(self.memory, migrations=kept)
        # Each round writes them all: a store that was emptied must get them back.
        held = self.memory.round.number != before.round.number
        told = [each for each in kept.items if each not in before.migrations.items]
        told += [each for each in kept.recorded() if held and each not in told]
        return rows + [json_row(self.name, Tag.MIGRATION, each) for each in told]

    def _set_timer(self, now_ms: int) -> int:
        """When to wake next, or 0 if the timer already set is early enough."""
        memory, interval_ms = self.memory, self.interval_ms
        round_ms = memory.round_ms or (now_ms + interval_ms if interval_ms else 0)
        wanted = min(filter(None, (round_ms, memory.repair_ms)), default=0)
        late = wanted and not 0 < memory.due_ms <= wanted
        due_ms = wanted if late else memory.due_ms
        self.memory = replace(memory, round_ms=round_ms, due_ms=due_ms)
        return wanted if late else 0

    def _exported(self, now_ms: int) -> list[Row]:
        """The state after this batch, if an export is due; call it last, after all changes."""
        if not due(self.memory, self.settings, now_ms):
            return []
        self.memory = replace(self.memory, exported_ms=now_ms)
        return self.held().rows(self.name, now_ms)

    def _explanations(self) -> list[Row]:
        found = explanations(self.witness) if self.explains and self.witness else None
        return [] if found is None else [json_row(self.name, Tag.WHY, found)]
