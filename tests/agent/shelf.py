"""Where reports go in place of Kafka: a producer that keeps what it is given."""

from __future__ import annotations

from collections.abc import Callable

from agent.reports.outbox import Message


class Sent:
    """The future of a record, resolved by hand."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._ended: dict[bool, Callable[[object], None]] = {}

    def add_callback(self, f: Callable[[object], None]) -> None:
        self._ended[True] = f

    def add_errback(self, f: Callable[[object], None]) -> None:
        self._ended[False] = f

    def end(self, *, delivered: bool) -> None:
        self._ended[delivered](None)


class Shelf:
    """A producer that keeps what it is given; ``error`` is what ``send`` raises."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.error: Exception | None = None
        self.closed = False
        self.meanwhile: Callable[[], None] = lambda: None
        """What the process does while ``send`` runs."""

    def send(self, topic: str, value: bytes, key: bytes, headers: list[tuple[str, bytes]]) -> Sent:
        assert topic == "trimtab.load-reports"
        self.meanwhile()
        if self.error is not None:
            raise self.error
        self.sent.append(Sent(Message(key, value, headers)))
        return self.sent[-1]

    def close(self, timeout: float) -> None:
        assert timeout > 0
        self.closed = True
