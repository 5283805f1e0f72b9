"""Rounds that are due: the batch that holds one takes fewer reports.

A round takes about as long as the reports of its brokers, and with both in one batch everything
that the job shows would be older. Spark tells the process that plans a source's batches nothing but
offsets, so the driver writes to a file when rounds are due.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from pyspark import SparkFiles

from trimtab.reasons import Rule
from trimtab.wire.rounds import RoundRecord

FILE: Final = "rounds-due"
_AHEAD_MS: Final = 500
"""A batch gets its timestamp a little after its offsets. Less: a round is missed; more: batches
without a round take fewer reports, too."""
_PART: Final = 8
"""A batch takes this part of its reports at least. Less: it takes more batches to catch up; more:
the round comes later."""
_BEHIND: Final = 2
"""Batches of reports that wait, from which a job has fallen behind, and each takes as many as it
may. Less: rounds come late in a busy job; more: reports do."""


class Due(NamedTuple):
    """When a cluster's next round is due (epoch ms), and its brokers."""

    at_ms: int
    brokers: int


def due_file() -> Path:
    """Where the driver's session keeps the file: Spark deletes it when the job ends."""
    return Path(SparkFiles.getRootDirectory(), FILE)


class RoundsDue:
    """What the driver knows from rounds that were held."""

    def __init__(self, file: Path, interval_s: float) -> None:
        """``interval_s``: between the rounds of clusters whose settings nobody changed."""
        self._file, self._interval_s = file, interval_s
        self._due: dict[str, Due] = {}

    def note(self, record: RoundRecord) -> None:
        """Tell when the round after this one is due."""
        if record.skipped == Rule.REPAIR_ONLY:
            return
        interval_s = float(record.overrides.get("round.interval", self._interval_s))
        brokers = int(record.summary.get("brokers", 0)) if interval_s else 0
        self._due[record.cluster] = Due(record.at + round(1000 * interval_s), brokers)
        draft = self._file.with_suffix(".draft")
        # Where it cannot be written, batches take as many reports as ever.
        with suppress(OSError):
            draft.write_bytes(msgspec.json.encode(self._due))
            draft.replace(self._file)


class RoundsAwaited:
    """What the source's process reads of it."""

    def __init__(self, file: str) -> None:
        """``file``: empty if there is none."""
        self._file = Path(file) if file else None
        self._awaited: dict[str, int] = {}
        """Cluster to the time of the last round that a batch has made room for."""

    def leave_room(self, most: int, waiting: int, now_ms: int) -> int:
        """How many reports a batch that begins now is to take, at most, of so many ``waiting``. A
        round that is not held then takes no room in the next one."""
        due = {
            cluster: each
            for cluster, each in self._read().items()
            if each.at_ms - _AHEAD_MS <= now_ms and self._awaited.get(cluster) != each.at_ms
        }
        self._awaited |= {name: each.at_ms for name, each in due.items() if each.at_ms <= now_ms}
        if waiting > _BEHIND * most:
            return most
        return max(most - sum(each.brokers for each in due.values()), most // _PART, 1)

    def _read(self) -> dict[str, Due]:
        if self._file is None:
            return {}
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, Due])
        return {}
