"""The process's unsent load reports, and the thread that sends them to Kafka.

Only the newest unsent report of each broker is kept: an old one is worthless. The outbox's own
thread connects, sends and waits, so an absent Kafka costs only the memory for one report per
broker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog
from kafka.errors import KafkaError, MessageSizeTooLargeError

from agent.reports.producer import Producer
from sinks.errors import Misconfigured, SinkError
from trimtab.wire.keys import LOAD_REPORTS

IN_FLIGHT: Final = 512
"""Most unacknowledged reports in the producer; kafka-python itself has no limit. The others wait in
the outbox, where newer ones replace them."""

STUCK_S: Final = 30.0
"""A producer that finishes no report for so long, twice a report's delivery timeout, is replaced:
after a restart of Kafka kafka-python was seen to stop sending."""

FIRST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 10.0


@dataclass(slots=True)
class Counts:
    """Counts of the reports so far, by result."""

    delivered: int = 0
    superseded: int = 0
    """Replaced by a newer one before they could be sent."""
    failed: int = 0
    """Given up by the producer, or unsent when the outbox closed."""


def ignore() -> None:
    """The default callback: does nothing when a report arrives."""


@dataclass(frozen=True, slots=True)
class Message:
    """An encoded report on its way."""

    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]
    arrived: Callable[[], None] = field(default=ignore, compare=False)
    """Called once Kafka has acknowledged it, on the producer's thread."""


class Outbox:
    """The unsent reports of a process's brokers; any thread may ``put``, which never blocks."""

    def __init__(
        self,
        connect: Callable[[], Producer],
        topic: str = LOAD_REPORTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._topic = topic
        self._clock = clock
        self._producer: Producer | None = None
        self._replaced = 0
        """Number of stuck producers so far; their later callbacks do not count."""
        self._moved_at = clock()
        """When the producer last finished a report, or got one while it held none."""
        self._unsent: dict[bytes, Message] = {}
        self._in_flight = 0
        self._counts = Counts()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self._log = structlog.get_logger()

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Send the queued reports, within the timeout, and end."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        if self._producer is not None:
            self._producer.close(timeout_s)
        with self._changed:
            self._counts.failed += len(self._unsent)
            self._unsent.clear()

    def put(self, message: Message) -> None:
        """Queue a report in place of an older one with the same key."""
        with self._changed:
            if self._unsent.pop(message.key, None) is not None:
                self._counts.superseded += 1
            self._unsent[message.key] = message
            self._changed.notify_all()

    def counts(self) -> Counts:
        """A copy of the counts."""
        with self._changed:
            counts = self._counts
            return Counts(counts.delivered, counts.superseded, counts.failed)

    def pump(self) -> None:
        """Send as many messages as are allowed now, and keep the others.

        Raises KafkaError and SinkError.
        """
        if self._producer is not None and self._is_stuck():
            self._replace(self._producer)
        if self._producer is None:
            self._producer = self._connect()
        while (message := self._take()) is not None:
            try:
                delivery = self._producer.send(
                    self._topic, value=message.value, key=message.key, headers=message.headers
                )
            except MessageSizeTooLargeError as error:
                self._failed(error)
                continue
            except KafkaError:
                self._put_back(message)
                raise
            except ValueError as error:
                # kafka-python raises this if the topic vanished between two of its look-ups.
                self._put_back(message)
                raise KafkaError(str(error)) from error
            delivery.add_callback(partial(self._delivered, self._replaced, message))
            delivery.add_errback(partial(self._given_up, self._replaced))

    def _run(self) -> None:
        wait_s = FIRST_WAIT_S
        while not self._stopping.is_set():
            with self._changed:
                self._changed.wait_for(self._ready, STUCK_S)
            try:
                self.pump()
                wait_s = FIRST_WAIT_S
            except (KafkaError, SinkError) as error:
                if isinstance(error, Misconfigured):
                    # A quick retry would look like someone guessing passwords.
                    self._log.error("reports are not sent", cause=str(error))
                    wait_s = LONGEST_WAIT_S
                self._stopping.wait(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _ready(self) -> bool:
        sendable = bool(self._unsent) and self._in_flight < IN_FLIGHT
        return sendable or self._stopping.is_set()

    def _take(self) -> Message | None:
        with self._changed:
            if not self._unsent or self._in_flight >= IN_FLIGHT:
                return None
            if self._in_flight == 0:
                self._moved_at = self._clock()
            self._in_flight += 1
            return self._unsent.pop(next(iter(self._unsent)))

    def _put_back(self, message: Message) -> None:
        with self._changed:
            self._in_flight -= 1
            if message.key in self._unsent:
                self._counts.superseded += 1
            else:
                self._unsent[message.key] = message

    def _is_stuck(self) -> bool:
        with self._changed:
            return self._in_flight > 0 and self._clock() - self._moved_at > STUCK_S

    def _replace(self, producer: Producer) -> None:
        with self._changed:
            lost, self._in_flight = self._in_flight, 0
            self._counts.failed += lost
            self._replaced += 1
            self._producer = None
        self._log.warning("the Kafka client is stuck and is replaced", reports=lost)
        with suppress(KafkaError):
            producer.close(FIRST_WAIT_S)

    def _delivered(self, replaced: int, message: Message, _metadata: object) -> None:
        message.arrived()
        with self._changed:
            if replaced == self._replaced:
                self._counts.delivered += 1
                self._ended()

    def _given_up(self, replaced: int, _error: object) -> None:
        with self._changed:
            if replaced == self._replaced:
                self._counts.failed += 1
                self._ended()

    def _failed(self, error: object) -> None:
        self._given_up(self._replaced, error)

    def _ended(self) -> None:
        self._in_flight -= 1
        self._moved_at = self._clock()
        self._changed.notify_all()
