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

import psutil
import structlog

from streaming.query.session import jvm_process

log = structlog.get_logger()

LOOK_SECONDS: Final = 1.0
"""Time between two looks at the progress."""

_COLD: Final = 3
"""Factor on the limit until the first batch has ended: Spark compiles, and its workers start."""

_COMPUTING: Final = 10
"""Factor on the limit while Spark computes: a batch may take long on a machine that others use too.
"""

_FAREWELL_LOOKS: Final = 20
"""Most looks that an orderly shutdown may take: supervisors kill after thirty seconds."""

_BUSY_S: Final = LOOK_SECONDS / 10
"""CPU time between two looks from which Spark counts as computing; idle it takes a fiftieth."""

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
        """Report a retry of something unavailable: a wait does not count as being stuck."""
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
    many before the first batch has ended. A look at which Spark has computed since the last one
    (``computing``) counts a tenth.

    It counts looks, not seconds: nothing is stuck in a process that was suspended, or on a machine
    that slept. ``alive`` is called at each look before that, for a supervisor outside this process.
    """

    def __init__(
        self,
        progress: Progress,
        looks: int,
        stuck: Callable[[str], None],
        alive: Callable[[], object] = lambda: None,
        computing: Callable[[], bool] = lambda: False,
    ) -> None:
        self.progress = progress
        self._most_looks = looks
        self._stuck = stuck
        self._alive = alive
        self._computing = computing
        self._seen = progress.steps
        self._looks = 0
        """Since the last progress."""
        self._still = 0
        """The same in tenths of a look, as far as they count."""
        self._told = False
        self._ending = False

    def hurry(self) -> None:
        """Give the driver twenty more looks to end, with or without progress."""
        if not self._ending:
            self._looks, self._still, self._told, self._ending = 0, 0, False, True

    def look(self) -> None:
        seen = self.progress.steps
        if seen != self._seen and not self._ending:
            self._seen, self._looks, self._still, self._told = seen, 0, 0, False
        else:
            self._looks += 1
            self._still += 1 if not self._ending and self._computing() else _COMPUTING
        if self._still < _COMPUTING * self._limit():
            self._alive()
        elif not self._told:
            self._told = True
            self._stuck(f"nothing has moved for {self._looks} looks since: {self.progress.last}")

    def _limit(self) -> int:
        if self._ending:
            return _FAREWELL_LOOKS
        return self._most_looks if self.progress.warm else _COLD * self._most_looks


class SparkLoad:
    """Tells whether Spark computed since it was last asked: its JVM and the Python workers."""

    def __init__(self) -> None:
        self._before_s = 0.0

    def computing(self) -> bool:
        now_s = _spark_cpu_s()
        used_s, self._before_s = now_s - self._before_s, now_s
        return used_s >= _BUSY_S


def _spark_cpu_s() -> float:
    """CPU time so far; 0 without a JVM."""
    process = jvm_process()
    total_s = 0.0
    with suppress(psutil.NoSuchProcess):
        if process is not None:
            jvm = psutil.Process(process.pid)
            for each in [jvm, *jvm.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    # With that of workers that have ended, which their daemon waited for.
                    total_s += sum(each.cpu_times()[:4])
    return total_s


def halt(code: int) -> None:
    """End this process and its JVM now, whatever they are doing."""
    # Each thread's stack shows the cause.
    faulthandler.dump_traceback(sys.stderr)
    process = jvm_process()
    if process is not None:
        # It ends by itself when our end of its input closes, unless it hangs too. Its Python
        # workers end after it.
        process.kill()
        with suppress(TimeoutExpired):
            process.wait(_KILLED_SECONDS)
    os._exit(code)
