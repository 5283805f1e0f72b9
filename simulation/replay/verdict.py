"""Checks whether the replay of a span gives what was recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from simulation.replay.commands import Commands, Issued
from simulation.replay.difference import Difference, unlike_rounds
from simulation.replay.run import Readers, SpanReplay
from simulation.replay.span import Asked, Span, find_span
from trimtab.wire import keys
from trimtab.wire.rounds import RoundRecord


class Status(IntEnum):
    """Results in order of precedence."""

    SAME = 0
    DIFFERENT = 1
    CANNOT = 2


@dataclass(slots=True)
class ReplayVerdict:
    """The verdict on the batches from ``span.first`` to ``span.last``."""

    span: Span
    before: int = 0
    """Batches that were run to reach the span."""
    batches: int = 0
    times: list[int] = field(default_factory=list)
    """Timestamps of the first and the last batch."""
    rounds: int = 0
    """Rounds that are equal on both sides."""
    unlike: list[Difference] = field(default_factory=list)
    """Rounds that differ."""
    left_out: int = 0
    """Rounds that ran before the first export of their clusters."""
    issued: Issued = field(default_factory=Issued)
    beside: list[RoundRecord] = field(default_factory=list)
    """The rounds in which a shadow was compared."""

    @property
    def first_difference(self) -> Difference | None:
        """The first difference: a round comes before the commands that follow from it."""
        found = [*self.unlike, *self.issued.differences]
        return min(found, key=lambda each: each.batch, default=None)

    @property
    def status(self) -> Status:
        if self.first_difference is not None:
            return Status.DIFFERENT
        nothing = self.left_out and not self.rounds
        cannot = nothing or self.issued.expired or self.issued.untold
        return Status.CANNOT if cannot else Status.SAME


def judge_run(readers: Readers, asked: Asked, shadow: str = "") -> ReplayVerdict:
    """Replay the span that was asked for; raises Missing, Ambiguous and Contradiction."""
    span = find_span(readers.of(keys.ROUNDS, 0), asked)
    verdict = ReplayVerdict(span)
    commands = Commands(span.query, span.first)
    for step in SpanReplay(readers, span, asked.cluster, shadow).steps():
        commands.take(step)
        if step.batch.batch >= span.first:
            verdict.batches += 1
            verdict.times = [*verdict.times[:1], step.batch.at]
            verdict.rounds += sum(step.recorded.get(c) == r for c, r in step.again.items())
            verdict.unlike += unlike_rounds(step)
            verdict.left_out += step.left_out
            if shadow:
                verdict.beside += (record for record in step.beside.values() if record.shadow)
        else:
            verdict.before += 1
    verdict.issued = commands.compared(readers.of(keys.COMMANDS, 0))
    return verdict
