"""What the rounds of a demo said, and when the fleet came to rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from trimtab.reasons import Rule
from trimtab.wire.rows import RoundRecord


@dataclass(frozen=True, slots=True)
class Told:
    """One round as it was learnt, ``elapsed`` seconds into the demo."""

    elapsed: float
    record: RoundRecord

    @property
    def range(self) -> float:
        """Points between the highest and the lowest usage, as the job saw them."""
        return 100 * self.record.summary.get("usage_range", 0.0)


@dataclass(frozen=True, slots=True)
class Story:
    """The rounds that saw the whole fleet, in order."""

    brokers: int
    threshold: float
    """Points; below it the range counts as balanced."""
    rounds: tuple[Told, ...] = ()

    def told(self, record: RoundRecord, elapsed: float) -> Story:
        """With one more round, unless it is a repeated one or missed brokers: the range of half a
        fleet says nothing."""
        known = self.rounds[-1].record.round if self.rounds else 0
        whole = record.summary.get("brokers", 0) >= self.brokers
        if not whole or record.round <= known:
            return self
        return replace(self, rounds=(*self.rounds, Told(elapsed, record)))

    @property
    def last(self) -> Told | None:
        return self.rounds[-1] if self.rounds else None

    @property
    def last_with_moves(self) -> Told | None:
        return next((told for told in reversed(self.rounds) if told.record.moves), None)

    @property
    def balanced_since(self) -> Told | None:
        """The first round of those at the end that all stayed below the threshold."""
        since = None
        for told in reversed(self.rounds):
            if told.range >= self.threshold:
                break
            since = told
        return since


def reasons(record: RoundRecord) -> str:
    """``high-pair 18, low-pair 9``: the moves of a round by reason, or why it made none."""
    counted = Counter(move.reason for move in record.moves)
    if not counted:
        # Said of any round in which the strategy wanted nothing, also while its hits are counting.
        return "no moves" if record.skipped == Rule.BALANCED else record.skipped
    return ", ".join(f"{reason} {number}" for reason, number in sorted(counted.items()))
