"""A producer: numbers its messages, and keeps each until a broker has stored it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from simulation.traffic.frames import NONE, FromBroker, Migrated, Part, Producing, Receipt, Send
from simulation.traffic.link import Link, Phase


class Producer(Link):
    """Made by `simulation.traffic.client.Client.producer`; any thread may ``send``.

    Messages are stored in the order in which they were sent, each once: a broker drops what it has
    already by its number, and a redirect says what the cluster that is left has of them.
    """

    part = Part.PRODUCER

    def __init__(self, topic: str, name: str, stored: Callable[[str], None]) -> None:
        """``stored``: called with the value of each message that is stored, in their order."""
        super().__init__(topic, name)
        self._stored = stored
        self._floor = NONE
        """The highest number that any cluster has named."""
        self._next: int | None = None
        """The next message's; None until a broker has opened the producer for the first time, as
        an earlier process may have used its name."""
        self._unnumbered: deque[tuple[str, str]] = deque()
        self._pending: deque[Send] = deque()

    @property
    def waiting(self) -> int:
        """How many messages no broker has said to have stored."""
        return len(self._unnumbered) + len(self._pending)

    def send(self, key: str, value: str) -> None:
        """Have a message stored; returns at once. The client's lock is held."""
        self._unnumbered.append((key, value))
        sent = self._number()
        if self.phase is Phase.OPEN and self.session is not None:
            self.session.put(sent)

    def heard(self, frame: FromBroker) -> float | None:
        match frame:
            case Producing():
                self.opened()
                self._confirm(frame.sequence)
                if self._next is None:
                    self._next = self._floor + 1
                self._number()
                assert self.session is not None
                self.session.put(self._pending)
            case Receipt():
                self._confirm(frame.sequence)
        return None

    def migrated(self, frame: Migrated) -> None:
        self._confirm(frame.sequence)

    def _number(self) -> list[Send]:
        numbered: list[Send] = []
        while self._unnumbered and self._next is not None:
            key, value = self._unnumbered.popleft()
            numbered.append(Send(self.topic, self.name, self._next, key, value))
            self._next += 1
        self._pending += numbered
        return numbered

    def _confirm(self, sequence: int) -> None:
        self._floor = max(self._floor, sequence)
        while self._pending and self._pending[0].sequence <= sequence:
            self._stored(self._pending.popleft().value)
