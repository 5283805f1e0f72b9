"""Waits until the active driver is gone.

The standby times the heartbeats by its own monotonic clock, from when it received each: no two
clocks are compared. While Kafka does not answer, the silence does not count; a standby that cannot
reach Redis could do no better than the active driver, and does not claim.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Annotated, Final, Protocol

import structlog
import typer

from sinks.errors import KafkaUnavailable, StoreUnavailable
from sinks.kafka.generation import Sign

log = structlog.get_logger()

StandbyOption = Annotated[
    bool, typer.Option("--standby", help="Wait until the active driver is gone.")
]

_LISTEN_SECONDS: Final = 0.5
"""Wait for one record before the time is checked."""
_PAUSE_SECONDS: Final = 1.0
"""Pause after Kafka or Redis did not answer."""


class Hearing(Protocol):
    """Reads the topic of generations; raises KafkaUnavailable."""

    def newest(self, seconds: float) -> Sign | None: ...


class Standby:
    """A driver that waits to take over; ``fit`` raises StoreUnavailable if it could not act.

    ``alive`` is called before each look, for a supervisor outside this process.
    """

    def __init__(
        self,
        hearing: Hearing,
        fit: Callable[[], None],
        takeover_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        alive: Callable[[], object] = lambda: None,
    ) -> None:
        self._hearing = hearing
        self._fit = fit
        self._takeover = takeover_seconds
        self._clock = clock
        self._alive = alive
        self._heard = clock()
        self._left = False

    def wait(self, ended: threading.Event) -> bool:
        """Wait until this driver should claim; False if ``ended`` is set first."""
        log.info("standing by", takeover_seconds=self._takeover)
        while not ended.is_set():
            self._alive()
            try:
                if self._vacant():
                    self._fit()
                    log.warning("taking over", farewell=self._left)
                    return True
            except (KafkaUnavailable, StoreUnavailable) as error:
                log.warning("the standby cannot take over now", cause=str(error))
                ended.wait(_PAUSE_SECONDS)
        return False

    def _vacant(self) -> bool:
        """Listen for a moment; returns whether the active driver is gone."""
        try:
            sign = self._hearing.newest(_LISTEN_SECONDS)
        except KafkaUnavailable:
            self._heard = self._clock()
            raise
        if sign is not None:
            self._heard = self._clock()
            self._left = sign is Sign.FAREWELL
        return self._left or self._clock() - self._heard >= self._takeover
