"""Operator ① on a broker's reports: each one that is newer changes the broker's snapshot.

fold(snapshot, reports):
  order the batch's reports by (session, sequence); for each:
    count and drop a duplicate or an older one, unless the newer session has been silent
    take its resources, traffic and counts; decay the smoothed figures by the time since the last
    once per interval, and only from changed data, add a sample to the bundle averages
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from trimtab.arrays import Floats
from trimtab.intake import averages
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.load import percentages
from trimtab.wire.reports.decode import LoadReport


class Dropped(StrEnum):
    """Why a valid report changed nothing."""

    DUPLICATE = "duplicate"
    OLD = "old"


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """A checked report with its position: LogAppendTime in ms, session and sequence."""

    appended_ms: int
    session: int
    sequence: int
    report: LoadReport


def fold(
    snapshot: Snapshot | None,
    broker: str,
    arrivals: Iterable[Arrival],
    settings: IntakeSettings,
) -> tuple[Snapshot | None, list[tuple[Arrival, Dropped]]]:
    """The snapshot after a batch's arrivals in any order, and the arrivals that changed nothing."""
    dropped = []
    ordered = sorted(arrivals, key=_position)
    for arrival, resources in zip(ordered, _percentages(ordered), strict=True):
        verdict = _order(snapshot, arrival, settings)
        if verdict is None:
            snapshot = _advance(snapshot, broker, arrival, resources, settings)
        else:
            dropped.append((arrival, verdict))
    return snapshot, dropped


def _percentages(arrivals: Sequence[Arrival]) -> Iterable[Floats]:
    # Of all at once: NumPy's calls cost more than the arithmetic.
    if not arrivals:
        return ()
    figures = np.array([arrival.report.resources for arrival in arrivals])
    return percentages(figures[:, 0], figures[:, 1])


def _position(arrival: Arrival) -> tuple[int, int, int]:
    return (arrival.session, arrival.sequence, arrival.appended_ms)


def _order(snapshot: Snapshot | None, arrival: Arrival, settings: IntakeSettings) -> Dropped | None:
    if snapshot is None:
        return None
    last, position = (snapshot.session, snapshot.sequence), (arrival.session, arrival.sequence)
    if position > last:
        return None
    if position == last:
        return Dropped.DUPLICATE
    silent_ms = arrival.appended_ms - snapshot.appended_ms
    return None if silent_ms > settings.session_silence * 1000 else Dropped.OLD


def _advance(
    old: Snapshot | None,
    broker: str,
    arrival: Arrival,
    resources: Floats,
    settings: IntakeSettings,
) -> Snapshot:
    report = arrival.report
    figures = np.concatenate((resources, report.traffic))
    # A report reordered by the network may have been appended before the known one: time must not
    # run backwards in an average.
    appended = arrival.appended_ms if old is None else max(arrival.appended_ms, old.appended_ms)
    if old is not None:
        elapsed = (appended - old.appended_ms) / 1000
        figures = averages.decay(old.smoothed, figures, elapsed, settings.half_life)
    new = Snapshot(
        broker=broker,
        session=arrival.session,
        sequence=arrival.sequence,
        appended_ms=appended,
        sampled_ms=appended,
        start_ms=report.start_ms,
        version=report.version,
        load_manager=report.load_manager,
        persistent=report.persistent,
        non_persistent=report.non_persistent,
        topics=report.topics,
        listed=report.listed,
        resources=resources,
        traffic=report.traffic,
        smoothed=figures,
        names=report.names,
        shown=report.shown,
        samples=np.ones(len(report.shown), np.int64),
        news=np.zeros(len(report.shown), np.bool_),
        stats=report.stats,
        short=report.stats,
        long=report.stats,
        counts=report.counts,
        limits=np.maximum(report.resources[1], 0.0),
    )
    return new if old is None else _remember(old, new, report.heartbeat, settings)


def _remember(old: Snapshot, new: Snapshot, heartbeat: bool, settings: IntakeSettings) -> Snapshot:
    """``new`` with the bundle averages carried over from ``old``."""
    if heartbeat:
        return replace(
            new,
            sampled_ms=old.sampled_ms,
            listed=old.listed,
            names=old.names,
            shown=old.shown,
            samples=old.samples,
            news=old.news,
            stats=old.stats,
            short=old.short,
            long=old.long,
            counts=old.counts,
        )
    known = old if old.names == new.names else _align(old, new)
    # Brokers repeat a statistic until they refresh it: only a changed one is new. An idle bundle
    # repeats its zeros forever, and those must count or its averages never come down.
    news = known.news | (new.stats != known.stats).any(axis=0) | (new.stats == 0).all(axis=0)
    unseen = known.samples == 0
    due = new.appended_ms - old.sampled_ms >= settings.sample_interval * 1000
    mask = unseen | (news & due)
    if not mask.any():
        # The case for most reports: brokers report more often than averages are sampled.
        return replace(
            new,
            sampled_ms=old.sampled_ms,
            samples=known.samples,
            news=news,
            short=known.short,
            long=known.long,
        )
    short, _ = averages.sample(known.short, known.samples, new.stats, mask, averages.SHORT_SAMPLES)
    long, samples = averages.sample(
        known.long, known.samples, new.stats, mask, averages.LONG_SAMPLES
    )
    return replace(
        new,
        sampled_ms=new.appended_ms if (mask & ~unseen).any() else old.sampled_ms,
        samples=samples,
        news=news & ~mask,
        short=short,
        long=long,
    )


def _align(old: Snapshot, new: Snapshot) -> Snapshot:
    """``old`` with its bundles in the new report's order; 0 for bundles it did not know."""
    column = {bundle: i for i, bundle in enumerate(old.bundles)}
    # Unseen bundles read column -1: a column of zeros appended to each matrix.
    at = np.fromiter((column.get(b, -1) for b in new.bundles), np.int64, len(new.bundles))
    nothing = np.zeros((4, 1))
    return replace(
        old,
        samples=np.append(old.samples, 0)[at],
        news=np.append(old.news, False)[at],
        stats=np.hstack((old.stats, nothing))[:, at],
        short=np.hstack((old.short, nothing))[:, at],
        long=np.hstack((old.long, nothing))[:, at],
    )
