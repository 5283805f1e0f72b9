"""Counts moves that take a bundle back to where it came from."""

from __future__ import annotations

from sinks.exposition import Exposition
from trimtab.metrics import job as metrics
from trimtab.reasons import ORDERED
from trimtab.state.shadow_state import Tally
from trimtab.wire.rounds import RoundRecord


class Bounces:
    """Remembers a day's departures of each cluster, from the driver's start on."""

    def __init__(self, shown: Exposition) -> None:
        self._shown = shown
        self._tallies: dict[str, Tally] = {}

    def note(self, record: RoundRecord) -> None:
        """Count the bounces of a round that is not only observed."""
        if record.observe_only:
            return
        before = self._tallies.get(record.cluster, Tally())
        moves = [move for move in record.moves if move.reason not in ORDERED]
        after = before.after(moves, None, record.at)
        self._tallies[record.cluster] = after
        self._shown.count(metrics.BOUNCES, record.cluster, by=after.bounces - before.bounces)
