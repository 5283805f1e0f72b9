"""How often each broker reports, and how long its silence is usual.

gap      = the time since a broker's last report, for each report that came in it
allowed  = 3 mean gaps + 8 deviations, but not below ``round.silence``
           nor above 12 mean gaps, where that is more than ``round.silence``
Reports that are lost or late make the gaps uneven, and so the allowance longer: the idea is that of
TCP's retransmission timer (RFC 6298). Kafka's clock measures the gaps.
"""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

from trimtab.settings import RoundSettings

_NEWS: Final = 1 / 16
"""The part of a new gap in the mean. Smaller: a new interval is learned late; larger: a few reports
without a loss make a lossy way look sure."""
_MEANS: Final = 3.0
"""The mean gaps that are usual on a way without losses. Fewer: one lost report takes a broker out
of the view; more: a broker that is stuck gets bundles for longer."""
_DEVIATIONS: Final = 8.0
"""With it a broker that loses a fifth of its reports is counted as silent about once in a million
reports. Lower: more often; higher: a broker that is stuck stays for longer."""
_MOST_MEANS: Final = 12.0
"""Bounds how much a single long gap widens the deviation."""


class Pace(NamedTuple):
    """The gaps between a broker's reports, in ms."""

    mean: float = 60_000.0
    variance: float = 60_000.0**2

    def after(self, gap_ms: float, reports: int) -> Pace:
        """After ``reports`` came in the time since the last; they are taken to be evenly apart."""
        kept = (1 - _NEWS) ** reports
        off = gap_ms / reports - self.mean
        return Pace(self.mean + (1 - kept) * off, kept * (self.variance + (1 - kept) * off**2))

    @property
    def usual_ms(self) -> float:
        """The longest silence that is usual at this pace."""
        most = _MOST_MEANS * self.mean
        return min(_MEANS * self.mean + _DEVIATIONS * sqrt(self.variance), most)


UNKNOWN: Final = Pace()
"""The pace of a broker with one report so far, or known from an older checkpoint: about once a
minute. The first gaps count as little as later ones: two reports in a row may come close together.
"""


def learn_pace(known: Pace | None, gap_ms: int, reports: int) -> Pace | None:
    """The pace after ``reports``, at least one, in the time since the broker's last report."""
    return (UNKNOWN if known is None else known).after(gap_ms, reports) if gap_ms > 0 else known


def allowed_silence(pace: Pace | None, settings: RoundSettings) -> float:
    """Seconds without a report after which a broker of this pace, none: after its first report,
    counts as silent; at most ``round.forget``."""
    usual = (_MEANS * UNKNOWN.mean if pace is None else pace.usual_ms) / 1000
    return min(max(settings.silence, usual), settings.forget)
