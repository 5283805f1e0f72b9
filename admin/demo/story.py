"""The rounds of a demo, and when the fleet became balanced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from trimtab.reasons import Rule
from trimtab.wire.rounds import RoundRecord

_WITHOUT_MOVES: Final[Mapping[str, str]] = {
    Rule.BALANCED: "balanced",
    Rule.CHANGING: "waiting: brokers come and go one after another",
    Rule.LEARNING: "learning: telling load from noise takes two reports of a bundle",
    Rule.NO_PROPOSAL: "no moves: none would help enough",
    Rule.REPAIR_ONLY: "between two rounds, only repairs",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One round, read ``elapsed`` seconds into the demo."""

    elapsed: float
    record: RoundRecord
    range: float
    """Points between the highest and the lowest broker's expected usage when it was read: the
    fleet's own figures. What the job sees has the reports' noise."""


@dataclass(frozen=True, slots=True)
class Story:
    """The rounds that saw the whole fleet, in order."""

    brokers: int
    threshold: float
    """Points; below it the range counts as balanced."""
    rounds: tuple[Told, ...] = ()

    def told(self, record: RoundRecord, elapsed: float, range_: float) -> Story:
        """Add a round, unless it is a repeat or missed brokers: what was decided about half a
        fleet means nothing."""
        known = self.rounds[-1].record.round if self.rounds else 0
        whole = record.summary.get("brokers", 0) >= self.brokers
        if not whole or record.round <= known:
            return self
        return replace(self, rounds=(*self.rounds, Told(elapsed, record, range_)))

    @property
    def first(self) -> Told | None:
        return self.rounds[0] if self.rounds else None

    @property
    def last(self) -> Told | None:
        return self.rounds[-1] if self.rounds else None

    @property
    def last_with_moves(self) -> Told | None:
        return next((told for told in reversed(self.rounds) if told.record.moves), None)

    @property
    def balanced(self) -> tuple[Told, ...]:
        """The last rounds, from the first since which all were below the threshold."""
        below = takewhile(lambda told: told.range < self.threshold, reversed(self.rounds))
        return tuple(below)[::-1]


def reasons(record: RoundRecord) -> str:
    """A round's moves by reason, ``high-pair 18, low-pair 9``, or why it made none."""
    counted = Counter(move.reason for move in record.moves)
    if not counted:
        return _WITHOUT_MOVES.get(record.skipped, record.skipped)
    return ", ".join(f"{reason} {number}" for reason, number in sorted(counted.items()))
