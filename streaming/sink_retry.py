"""Waiting for a sink that is away, for as long as the driver is not to end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

import stamina

from streaming.metrics.exposition import Exposition
from streaming.watchdog import Progress
from trimtab import metrics

T = TypeVar("T")

_LONGEST_SECONDS: Final = 1.0
"""Between two attempts: so late a driver that is to end may notice it."""


class SinkRetry:
    """Of one driver; ``ended`` says that it is to wait for nothing any longer."""

    def __init__(self, ended: threading.Event, progress: Progress, shown: Exposition) -> None:
        self.ended = ended
        self._progress = progress
        self.shown = shown

    def attempt(self, sink: str, away: type[Exception], action: Callable[[], T]) -> T:
        """Do it, as often as the sink's absence makes necessary."""
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
