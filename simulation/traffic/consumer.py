"""A consumer: hands every message of its subscription on once, in the topic's order."""

from __future__ import annotations

from collections.abc import Callable

from simulation.traffic.frames import NONE, Ack, FromBroker, Message, Migrated, Part, Subscribed
from simulation.traffic.link import Link, Phase


class Consumer(Link):
    """Made by `simulation.traffic.client.Client.consumer`.

    What a broker delivers again, as an acknowledgement was lost, is recognised by its entry in the
    cluster's log, not by its producer's number: a message that is stored twice is handed on twice.
    """

    part = Part.CONSUMER

    def __init__(
        self, topic: str, name: str, listener: Callable[[Consumer, Message], None]
    ) -> None:
        """``listener``: gets each message, in a thread of the client that holds its lock."""
        super().__init__(topic, name)
        self.cluster = ""
        """Where it is attached."""
        self._log: tuple[str, str] = ("", "")
        """What its entries count up within: a log, or the cluster of a broker that names none."""
        self._listener = listener
        self._received = self._acknowledged = NONE

    def acknowledge(self, entry: int) -> None:
        """All up to ``entry`` is done with. The client's lock is held."""
        self._acknowledged = max(self._acknowledged, entry)
        if self.phase is Phase.OPEN and self.session is not None:
            self.session.put([Ack(self.topic, self.name, self._acknowledged)])

    def heard(self, frame: FromBroker) -> float | None:
        match frame:
            case Subscribed():
                self._begin(frame)
            case Message() if self.phase is Phase.OPEN:
                return self._take(frame)
        return None

    def migrated(self, frame: Migrated) -> None:
        """Nothing: its subscription there is drained."""

    def _begin(self, frame: Subscribed) -> None:
        self.opened()
        self.cluster, log = frame.cluster, (frame.cluster, frame.log)
        if log != self._log:
            self._log = log
            self._received = self._acknowledged = NONE
        # Another consumer of the subscription may have acknowledged more.
        self._received = max(self._received, frame.entry - 1)
        if self._acknowledged >= frame.entry:
            self.acknowledge(self._acknowledged)

    def _take(self, message: Message) -> float | None:
        if message.entry <= self._received:
            return None
        if message.entry > self._received + 1:
            return self.failed()
        self._received = message.entry
        self._listener(self, message)
        return None
