"""Ends a driver whose query makes no progress, so that its supervisor restarts it.

A hung call cannot be cancelled from within. Fencing makes its later effects harmless.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from subprocess import TimeoutExpired
from typing import Final

import structlog
from pyspark import SparkContext

log = structlog.get_logger()

LOOK_SECONDS: Final = 1.0
"""Time between two looks at the progress."""

_COLD: Final = 3
"""Factor on the limit until the first batch has ended: Spark compiles, and its workers start."""

_FAREWELL_LOOKS: Final = 20
"""Most looks that an orderly shutdown may take: supervisors kill after thirty seconds."""

_KILLED_SECONDS: Final = 5.0
"""Wait for the JVM to exit."""


class Progress:
    """The driver's progress, reported by each part that makes some; any thread may call it."""

    def __init__(self) -> None:
        self.steps = 0
        self.last = "the query was to start"
        self.warm = False
        """Whether a batch has ended."""
        self._within = False
        """Whether one has begun and not ended."""

    def began(self, batch: int) -> None:
        self._within = True
        self._step(f"batch {batch} began")

    def ended(self, batch: int) -> None:
        self.warm, self._within = True, False
        self._step(f"batch {batch} ended")

    def waiting(self, what: str) -> None:
        """Report a retry of something unavailable: waiting is not being stuck."""
        self._step(f"waiting for {what}")

    def triggered(self) -> None:
        """Report that Spark says the query is alive, even with nothing to do."""
        # Spark reports late: the batch that the driver is stuck in may have begun already.
        self._step(self.last if self._within else "Spark looked for input")

    def _step(self, what: str) -> None:
        self.steps += 1
        self.last = what


class Watchdog:
    """Calls ``stuck`` with the cause once ``looks`` looks in a row saw no progress; three times as
    many before the first batch has ended.

    It counts looks, not seconds: nothing is stuck in a process that was suspended, or on a machine
    that slept. ``alive`` is called at each look before that, for a supervisor outside this process.
    """

    def __init__(
        self,
        progress: Progress,
        looks: int,
        stuck: Callable[[str], None],
        alive: Callable[[], object] = lambda: None,
    ) -> None:
        self.progress = progress
        self._most_looks = looks
        self._stuck = stuck
        self._alive = alive
        self._seen = progress.steps
        self._still = 0
        self._ending = False

    def hurry(self) -> None:
        """Give the driver twenty more looks to end, with or without progress."""
        if not self._ending:
            self._still, self._ending = 0, True

    def look(self) -> None:
        seen = self.progress.steps
        self._still = self._still + 1 if seen == self._seen or self._ending else 0
        self._seen = seen
        if self._still < self._limit():
            self._alive()
        elif self._still == self._limit():
            self._stuck(f"nothing has moved for {self._still} looks since: {self.progress.last}")

    def _limit(self) -> int:
        if self._ending:
            return _FAREWELL_LOOKS
        return self._most_looks if self.progress.warm else _COLD * self._most_looks


def halt(code: int) -> None:
    """End this process and its JVM now, whatever they are doing."""
    # Each thread's stack shows the cause.
    faulthandler.dump_traceback(sys.stderr)
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is not None:
        # It ends by itself when our end of its input closes, unless it hangs too. Its Python
        # workers end after it.
        process.kill()
        with suppress(TimeoutExpired):
            process.wait(_KILLED_SECONDS)
    os._exit(code)
