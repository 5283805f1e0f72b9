"""Waits until the job that acts is gone.

Its heartbeats are counted against this machine's own clock, from when each was heard: no two clocks
are compared. A standby that is deaf, for Kafka does not answer, has heard no silence; and one that
does not reach Redis would do no better than who is there, and leaves the claim alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from sinks.errors import KafkaUnavailable, StoreUnavailable
from sinks.kafka.generation import Sign

log = structlog.get_logger()

_LISTEN_SECONDS: Final = 0.5
"""For one record, before the time is looked at."""
_PAUSE_SECONDS: Final = 1.0
"""After something did not answer."""


class Hearing(Protocol):
    """What is said on the topic of generations; raises KafkaUnavailable."""

    def newest(self, seconds: float) -> Sign | None: ...


class Standby:
    """``fit`` raises StoreUnavailable where this driver could not act either."""

    def __init__(
        self,
        hearing: Hearing,
        fit: Callable[[], None],
        takeover_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hearing = hearing
        self._fit = fit
        self._takeover = takeover_seconds
        self._clock = clock
        self._heard = clock()
        self._left = False

    def wait(self, ended: threading.Event) -> bool:
        """Until this driver is to claim; False if ``ended`` was set before."""
        log.info("standing by", takeover_seconds=self._takeover)
        while not ended.is_set():
            try:
                if self._vacant():
                    self._fit()
                    log.warning("taking over", farewell=self._left)
                    return True
            except (KafkaUnavailable, StoreUnavailable) as error:
                log.warning("not fit to take over", cause=str(error))
                ended.wait(_PAUSE_SECONDS)
        return False

    def _vacant(self) -> bool:
        """Listen for a moment: whether the job that acted has gone."""
        try:
            sign = self._hearing.newest(_LISTEN_SECONDS)
        except KafkaUnavailable:
            self._heard = self._clock()
            raise
        if sign is not None:
            self._heard = self._clock()
            self._left = sign is Sign.FAREWELL
        return self._left or self._clock() - self._heard >= self._takeover
