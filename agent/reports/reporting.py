"""Load reports of one broker: when one is due, what it leaves out, and its number.

at each beat of the agent, `Reporter.offer` is given the broker's figures and sends
  all of them, if they differ enough from what Kafka has, or that is older than REPEAT_S
    (Pulsar ModularLoadManagerImpl.needBrokerDataUpdate), or it names other bundles
  else a heartbeat, if nothing was sent for HEARTBEAT_S: the same without the bundles' statistics
  else nothing

What Kafka has is what it acknowledged. So a heartbeat never takes the place of figures that were
lost: it says that the bundles told before stand, which must be true of what was told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import msgspec

from agent.reports.outbox import Message, Outbox, ignore
from trimtab.intake.report_cadence import ReportingSettings, is_due
from trimtab.settings import WeightSettings
from trimtab.wire.keys import SEQUENCE_HEADER, SESSION_HEADER
from trimtab.wire.load_report import LocalBrokerData, encode

HEARTBEAT_S: Final = 15.0
"""The job takes a broker for silent after `round.silence`, 60 s: three heartbeats may be lost, one
to each change of Kafka's leader, before a quiet broker is given nothing. Shorter: a quiet fleet
costs the job as many records as a busy one; longer: usage is judged by older figures."""

REPEAT_S: Final = 62.0
"""Not Pulsar's 15 minutes: the job's averages take a sample of a bundle once in
`intake.sample_interval`, 60 s, and from this broker alone. Without repeats the average of a bundle
that went idle would stay up, and a change that is small in the sum would not be seen. A little more
than 60 s, so that each repeat brings a sample."""


@dataclass(frozen=True, slots=True)
class Cadence:
    """When a report is due; how often that is asked is the agent's ``report_interval``."""

    changes: ReportingSettings = field(
        default_factory=lambda: ReportingSettings(max_interval=REPEAT_S)
    )
    heartbeat: float = HEARTBEAT_S
    """Seconds."""
    weights: WeightSettings = field(default_factory=WeightSettings)
    """The job's, where these are not the defaults."""


EVERY_BEAT: Final = Cadence(ReportingSettings(max_interval=0.0))
"""A report whenever one may be sent, for fleets that are watched as they change."""


class _Told(NamedTuple):
    data: LocalBrokerData
    at: float


class Reporter:
    """Numbers a broker's reports and leaves them with the process's outbox. Never blocks."""

    def __init__(
        self, outbox: Outbox, cluster: str, broker: str, cadence: Cadence | None = None
    ) -> None:
        self._outbox = outbox
        self._key = f"{cluster}/{broker}".encode()
        self._cadence = cadence or Cadence()
        self._sequence = 0
        self._sent_at = 0.0
        self._told: _Told | None = None

    def offer(self, data: LocalBrokerData, now: float) -> None:
        """Send what is due of ``data``, gathered at ``now`` (seconds, of any one clock).

        ``data`` is kept to compare with: give a new object each time.
        """
        told = self._told
        if told is None or self._is_due(told, data, now):
            self._send(data, partial(self._arrived, _Told(data, now)))
        elif now - self._sent_at >= self._cadence.heartbeat:
            self._send(msgspec.structs.replace(data, last_stats=msgspec.UNSET, bundles=[]))
        else:
            return
        self._sent_at = now

    def report(self, data: LocalBrokerData) -> None:
        """Send all of ``data``, due or not. A report that is lost leaves a gap in the numbers."""
        self._send(data)

    def _is_due(self, told: _Told, data: LocalBrokerData, now: float) -> bool:
        # The age by the agent's clock: the broker's wall clock may be set back.
        now_ms = told.data.last_update + round(1000 * (now - told.at))
        cadence = self._cadence
        due = is_due(told.data, data, now_ms, cadence.weights, cadence.changes)
        return due or _bundles(told.data) != _bundles(data)

    def _send(self, data: LocalBrokerData, arrived: Callable[[], None] = ignore) -> None:
        self._sequence += 1
        headers = [
            (SESSION_HEADER, str(data.start_timestamp).encode()),
            (SEQUENCE_HEADER, str(self._sequence).encode()),
        ]
        self._outbox.put(Message(self._key, encode(data), headers, arrived))

    def _arrived(self, told: _Told) -> None:
        """On the producer's thread. Acknowledgements may come out of order."""
        if self._told is None or told.at >= self._told.at:
            self._told = told


def _bundles(data: LocalBrokerData) -> tuple[frozenset[str], frozenset[str]]:
    """Those with statistics, and those listed."""
    stats = data.last_stats if isinstance(data.last_stats, dict) else {}
    return frozenset(stats), frozenset(data.bundles)
