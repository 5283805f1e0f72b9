"""When operator ① forgets a broker: a day without a report, by the job's clock.

An average rests on at most 1000 samples a minute apart, so nothing older than a day is in it.

Whether a broker is forgotten is decided by its newest report and the timestamp of the batch that
asks, both of which a replay has. Nothing else is: a report that comes later starts anew whether or
not the state is still there. So state may be deleted at any time after that, by a timer that no
replay knows of, and no decision and no replay shows when it was.

A job that was away for more than a day starts with new averages, which its backlog fills.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trimtab.wire.columns import unpack

FORGET_MS: Final = 24 * 3600 * 1000
"""Above all that the clocks of Kafka and of the job may differ by."""


@dataclass(frozen=True, slots=True)
class _Age:
    """What is read of a packed `trimtab.intake.snapshot.Snapshot`: the other fields are skipped."""

    appended_ms: int


def is_forgotten(packed: bytes, now_ms: int) -> bool:
    """Whether a packed snapshot counts no more; ``now_ms`` is the batch timestamp."""
    return now_ms - appended_ms(packed) >= FORGET_MS


def appended_ms(packed: bytes) -> int:
    """When the newest report of a packed snapshot was appended; 0 for no snapshot."""
    return unpack(packed, _Age).appended_ms if packed else 0


def look_ms(appended_ms: int) -> int:
    """When to look whether a broker with this newest report is forgotten: it is by then, without a
    newer report. The same all day long, so that few timers are set."""
    return (appended_ms // FORGET_MS + 2) * FORGET_MS
