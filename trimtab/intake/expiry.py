"""When operator ① forgets a broker: a day without a report, by the job's clock.

An average rests on at most 1000 samples a minute apart, so it holds nothing older than a day.

Only a broker's newest report and the timestamp of the asking batch decide whether the broker is
forgotten; a replay has both. A later report starts from scratch whether or not the state still
exists. So a timer that replays do not know may delete the state at any time after that: neither
decisions nor replays depend on when.

A job that was down for more than a day starts with new averages, which its backlog fills.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trimtab.wire.columns import unpack

FORGET_MS: Final = 24 * 3600 * 1000
"""More than the clocks of Kafka and the job can ever differ by."""


@dataclass(frozen=True, slots=True)
class _Age:
    """The only field read from a packed `trimtab.intake.latest.Latest`, or from a Snapshot."""

    appended_ms: int


def is_forgotten(packed: bytes, now_ms: int) -> bool:
    """Whether a packed Latest, or a Snapshot without one, no longer counts; ``now_ms`` is the batch
    timestamp."""
    return now_ms - appended_ms(packed) >= FORGET_MS


def appended_ms(packed: bytes) -> int:
    """When the newest report in it was appended; 0 for nothing."""
    return unpack(packed, _Age).appended_ms if packed else 0


def look_ms(appended_ms: int) -> int:
    """When to check a broker with this newest report: by then it is forgotten, unless a newer one
    came. The result is the same all day, so that few timers are set."""
    return (appended_ms // FORGET_MS + 2) * FORGET_MS
