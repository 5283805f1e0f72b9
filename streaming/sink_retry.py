"""Retries a call while its sink is unavailable, until the driver must end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

import stamina

from sinks.exposition import Exposition
from streaming.watchdog import Progress
from trimtab.metrics import job as metrics

T = TypeVar("T")

_LONGEST_SECONDS: Final = 1.0
"""Longest time between two attempts, and until a requested shutdown is noticed."""


class SinkRetry:
    """The retries of one driver; once ``ended`` is set it waits no longer."""

    def __init__(self, ended: threading.Event, progress: Progress, shown: Exposition) -> None:
        self.ended = ended
        self._progress = progress
        self.shown = shown

    def attempt(self, sink: str, away: type[Exception], action: Callable[[], T]) -> T:
        """Run the action, again while the sink is unavailable."""
        attempts = stamina.retry_context(
            on=lambda error: isinstance(error, away) and not self.ended.is_set(),
            attempts=None,
            timeout=None,
            wait_initial=0.2,
            wait_max=_LONGEST_SECONDS,
        )
        for attempt in attempts:
            with attempt:
                if attempt.num > 1:
                    self._progress.waiting(sink)
                    self.shown.count(metrics.SINK_WAITS, sink)
                with self.shown.timed(metrics.SINK_SECONDS, sink):
                    return action()
        raise AssertionError("an endless retry ended")
