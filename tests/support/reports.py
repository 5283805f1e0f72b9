"""Builders of load reports, arrivals and snapshots: one line of set-up each."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.intake.fold import Arrival, fold
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.wire.reports.decode import LoadReport, decode
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode

EVERY_REPORT = IntakeSettings(half_life=10.0, sample_interval=0.0)
"""Each report is a sample."""


def bundle(index: int, count: int = 4, namespace: str = "t/ns") -> str:
    """The ``index``-th of ``count`` equal ranges (a power of two)."""
    width = (1 << 32) // count
    high = min((index + 1) * width, 0xFFFFFFFF)
    return f"{namespace}/0x{index * width:08x}_0x{high:08x}"


def report(
    rates: Mapping[str, float] | None = None, cpu: float = 50.0, start_ms: int = 1
) -> LoadReport:
    """A report with the given messages/s in of each bundle, of two topics; None: a heartbeat."""
    stats: dict[str, BundleStats] | None = None
    if rates is not None:
        stats = {name: BundleStats(msg_rate_in=rate, topics=2) for name, rate in rates.items()}
    data = LocalBrokerData(
        cpu=Resource(cpu, 100.0),
        last_stats=stats,
        bundles=list(rates or ()),
        msg_rate_in=sum((rates or {}).values()),
        num_topics=2 * len(rates or ()),
        start_timestamp=start_ms,
    )
    return decode(encode(data))


def arrival(
    sequence: int, said: LoadReport | None = None, *, seconds: float | None = None, session: int = 1
) -> Arrival:
    """The ``sequence``-th report of a session, appended so many seconds after the start."""
    at = sequence if seconds is None else seconds
    return Arrival(round(at * 1000), session, sequence, said or report({}))


def snapshot(broker: str, rates: Mapping[str, float], cpu: float = 50.0) -> Snapshot:
    """What operator ① knows of a broker after one report."""
    told, _ = fold(None, broker, [arrival(1, report(rates, cpu))], EVERY_REPORT)
    if told is None:
        raise AssertionError("the first report always counts")
    return told
