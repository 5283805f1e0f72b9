"""Load reports of one broker, numbered so that a reader can order them."""

from __future__ import annotations

from agent.outbox import Message, Outbox
from trimtab.wire.keys import SEQUENCE_HEADER, SESSION_HEADER
from trimtab.wire.load_report import LocalBrokerData, encode


class Reporter:
    """Numbers a broker's reports and leaves them with the process's outbox."""

    def __init__(self, outbox: Outbox, cluster: str, broker: str) -> None:
        self._outbox = outbox
        self._key = f"{cluster}/{broker}".encode()
        self._sequence = 0

    def report(self, data: LocalBrokerData) -> None:
        """Number and queue a report. Never blocks; a dropped report leaves a gap in the numbers."""
        self._sequence += 1
        headers = [
            (SESSION_HEADER, str(data.start_timestamp).encode()),
            (SEQUENCE_HEADER, str(self._sequence).encode()),
        ]
        self._outbox.put(Message(self._key, encode(data), headers))
