"""Ends a driver whose query stands still, so that its supervisor starts it again.

A hung call cannot be cancelled from within. Fencing makes whatever it does later harmless.
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
"""Between two looks at the progress."""

_COLD: Final = 3
"""Times the patience until the first batch has ended: Spark compiles, and its workers start."""

_FAREWELL_LOOKS: Final = 20
"""How long an orderly end may take: supervisors kill after thirty seconds."""

_KILLED_SECONDS: Final = 5.0
"""For the JVM to be gone."""


class Progress:
    """How far the driver is, told by whatever moves it on; from any thread."""

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
        """Another attempt at something absent: waiting is not being stuck."""
        self._step(f"waiting for {what}")

    def triggered(self) -> None:
        """Spark says that the query lives, be it that it has nothing to do."""
        # It says so late: by then the batch may be under way that the driver is stuck in.
        self._step(self.last if self._within else "Spark looked for input")

    def _step(self, what: str) -> None:
        self.steps += 1
        self.last = what


class Watchdog:
    """``stuck`` is called with the cause, once so many looks in a row saw no progress; three times
    as many before the first batch has ended.

    Looks are counted and not seconds: in a process that was stopped as a whole, and in a machine
    that slept, nothing is stuck.
    """

    def __init__(self, progress: Progress, looks: int, stuck: Callable[[str], None]) -> None:
        self.progress = progress
        self._patience = looks
        self._stuck = stuck
        self._seen = progress.steps
        self._still = 0
        self._ending = False

    def hurry(self) -> None:
        """The driver is to end, and has twenty more looks for it, progress or not."""
        if not self._ending:
            self._still, self._ending = 0, True

    def look(self) -> None:
        seen = self.progress.steps
        self._still = self._still + 1 if seen == self._seen or self._ending else 0
        self._seen = seen
        if self._still == self._limit():
            self._stuck(f"nothing has moved for {self._still} looks since: {self.progress.last}")

    def _limit(self) -> int:
        if self._ending:
            return _FAREWELL_LOOKS
        return self._patience if self.progress.warm else _COLD * self._patience


def halt(code: int) -> None:
    """End this process and its JVM now, whatever they are doing."""
    # Where each thread stands: the cause.
    faulthandler.dump_traceback(sys.stderr)
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is not None:
        # By itself it ends when our end of its input closes, unless it hangs as well. Its Python
        # workers end when it has gone.
        process.kill()
        with suppress(TimeoutExpired):
            process.wait(_KILLED_SECONDS)
    os._exit(code)
