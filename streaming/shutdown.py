"""Why the driver ends, and its exit code for the supervisor."""

from __future__ import annotations

import threading
from typing import Final

import structlog

log = structlog.get_logger()

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
FENCED: Final = 4
"""A newer job has taken over."""
UNREACHABLE: Final = 5
"""Kafka is unreachable at the start, or Redis for longer than `yield_seconds`."""
STUCK: Final = 70
"""The watchdog ended the driver."""


class Shutdown(threading.Event):
    """Set once the driver must end. The first reason counts; any thread may set it."""

    def __init__(self) -> None:
        super().__init__()
        self.code = OK

    def because(self, code: int, why: str) -> None:
        """End for a reason other than a request."""
        if not self.is_set():
            self.code = code
            log.error("the job ends", why=why, code=code)
            self.set()
