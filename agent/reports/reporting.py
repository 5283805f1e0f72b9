"""Load reports of one broker: when one is due, what it omits, and its number.

at each report interval, `Reporter.offer` gets the broker's figures and sends
  all of them, if they differ enough from what Kafka has, or that is older than REPEAT_S
    (Pulsar ModularLoadManagerImpl.needBrokerDataUpdate), or it names other bundles
  else a heartbeat, if nothing was sent for HEARTBEAT_S: the same without the bundles' statistics
  else nothing

Kafka has what it acknowledged. So a heartbeat never replaces lost figures: it confirms the bundles
of the last full report, which must therefore have arrived.
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
from trimtab.wire.reports.load_report import LocalBrokerData, encode

HEARTBEAT_S: Final = 15.0
"""The job considers a broker silent after `round.silence`, 60 s: three heartbeats may be lost, one
to each change of Kafka's leader, before a quiet broker gets no bundles. Shorter: a quiet fleet
costs the job as many records as a busy one; longer: decisions use older usage figures."""

REPEAT_S: Final = 62.0
"""Not Pulsar's 15 minutes: the job's averages take a bundle's sample once per
`intake.sample_interval`, 60 s, and only from this broker. Without repeats the average of a bundle
that went idle would stay high, and a change that is small in the sum would go unseen. A little more
than 60 s, so that each repeat gives a sample."""


@dataclass(frozen=True, slots=True)
class Cadence:
    """When a report is due; checked every ``report_interval`` of the agent."""

    changes: ReportingSettings = field(
        default_factory=lambda: ReportingSettings(max_interval=REPEAT_S)
    )
    heartbeat: float = HEARTBEAT_S
    """Seconds."""
    weights: WeightSettings = field(default_factory=WeightSettings)
    """The job's weights, if they are not the defaults."""


EVERY_BEAT: Final = Cadence(ReportingSettings(max_interval=0.0))
"""A report at every interval, for fleets that are watched live."""


class _Acknowledged(NamedTuple):
    data: LocalBrokerData
    at: float


class Reporter:
    """Numbers a broker's reports and puts them in the process's outbox. Never blocks."""

    def __init__(
        self, outbox: Outbox, cluster: str, broker: str, cadence: Cadence | None = None
    ) -> None:
        self._outbox = outbox
        self._key = f"{cluster}/{broker}".encode()
        self._cadence = cadence or Cadence()
        self._sequence = 0
        self._sent_at = 0.0
        self._acknowledged: _Acknowledged | None = None

    def offer(self, data: LocalBrokerData, now: float) -> None:
        """Send the due part of ``data``, gathered at ``now`` (seconds of one clock).

        ``data`` is kept for comparison: pass a new object each time.
        """
        last = self._acknowledged
        if last is None or self._is_due(last, data, now):
            self._send(data, partial(self._arrived, _Acknowledged(data, now)))
        elif now - self._sent_at >= self._cadence.heartbeat:
            self._send(msgspec.structs.replace(data, last_stats=msgspec.UNSET, bundles=[]))
        else:
            return
        self._sent_at = now

    def report(self, data: LocalBrokerData) -> None:
        """Send all of ``data``, due or not. A lost report leaves a gap in the numbers."""
        self._send(data)

    def _is_due(self, last: _Acknowledged, data: LocalBrokerData, now: float) -> bool:
        # Age by the agent's clock: the broker's wall clock may be set back.
        now_ms = last.data.last_update + round(1000 * (now - last.at))
        cadence = self._cadence
        due = is_due(last.data, data, now_ms, cadence.weights, cadence.changes)
        return due or _bundles(last.data) != _bundles(data)

    def _send(self, data: LocalBrokerData, arrived: Callable[[], None] = ignore) -> None:
        self._sequence += 1
        headers = [
            (SESSION_HEADER, str(data.start_timestamp).encode()),
            (SEQUENCE_HEADER, str(self._sequence).encode()),
        ]
        self._outbox.put(Message(self._key, encode(data), headers, arrived))

    def _arrived(self, arrived: _Acknowledged) -> None:
        """Note the acknowledged report, on the producer's thread. They may come out of order."""
        if self._acknowledged is None or arrived.at >= self._acknowledged.at:
            self._acknowledged = arrived


def _bundles(data: LocalBrokerData) -> tuple[frozenset[str], frozenset[str]]:
    """The bundles with statistics, and the bundles listed."""
    stats = data.last_stats if isinstance(data.last_stats, dict) else {}
    return frozenset(stats), frozenset(data.bundles)
