"""This job's right to act: its generation, claimed in Kafka and claimed again when it is spent.

A heartbeat keeps standbys waiting. It also tells this job within seconds that another one has taken
over, even while this job waits for something else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import structlog

from sinks.errors import Fenced, SinkError
from sinks.exposition import Exposition
from trimtab.metrics import job as metrics

log = structlog.get_logger()


class Claim(Protocol):
    """A claim in Kafka."""

    @property
    def generation(self) -> int: ...

    def assert_held(self) -> None: ...

    def bid_farewell(self) -> None: ...

    def close(self) -> None: ...


class Leadership:
    """Holds the newest claim.

    ``claim`` makes a claim above the generation it is given, which fences every older job.
    """

    def __init__(self, claim: Callable[[int], Claim], shown: Exposition) -> None:
        self._make = claim
        self._shown = shown
        self._claim = claim(0)
        # A claim's producer has one transaction at a time.
        self._lock = threading.Lock()
        for sink in ("kafka", "redis"):
            # A series that begins at 1 has no increase.
            shown.count(metrics.FENCED, sink, by=0)
        self._show()

    @property
    def generation(self) -> int:
        return self._claim.generation

    def renew(self, above: int = 0) -> None:
        """Claim a generation above ours and ``above``; raises Fenced where a newer job holds one.

        Without this check a driver that slept while another took over would fence its successor.
        """
        with self._lock:
            spent = self._claim
            self._assert_held(spent)
            # Above both: Kafka may have lost our claim too.
            self._claim = self._make(max(above, spent.generation))
            spent.close()
        self._show()

    def beat(self) -> None:
        """Send a heartbeat; raises Fenced. While Kafka is unavailable, heartbeats are skipped."""
        with self._lock:
            try:
                self._assert_held(self._claim)
            except Fenced:
                raise
            except SinkError as error:
                log.warning("a heartbeat could not be written", cause=str(error))

    def _assert_held(self, claim: Claim) -> None:
        try:
            claim.assert_held()
        except Fenced:
            self._shown.count(metrics.FENCED, "kafka")
            raise

    def close(self) -> None:
        """Release the claim: a standby takes over at once."""
        with self._lock:
            try:
                self._claim.bid_farewell()
            except Fenced:
                pass
            except SinkError as error:
                log.warning("the end of this driver could not be written", cause=str(error))
            self._claim.close()
        self._shown.set(metrics.LEADER, 0)

    def _show(self) -> None:
        self._shown.set(metrics.GENERATION, self.generation)
        self._shown.set(metrics.LEADER, 1)
