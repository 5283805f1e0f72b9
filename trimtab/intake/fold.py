"""Operator ① on a broker's reports: each one that is newer changes what is known of the broker.

fold(snapshot, reports):
  order the batch's reports by (session, sequence); for each:
    count and drop a duplicate or an older one, unless the newer session has been silent
    take its resources, traffic and totals; decay the smoothed figures by the time since the last,
      or begin them with the first report of traffic
    once per interval, or if it has other bundles or the last one had no traffic, take its bundles'
      statistics and counts; once per interval, and only from changed data, add a sample to the
      bundle averages
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Floats
from trimtab.intake import averages
from trimtab.intake.latest import Latest, digest, latest_of, with_latest
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.intake.taking import carry_over, snapshot_of
from trimtab.load import percentages
from trimtab.wire.reports.decode import LoadReport

_OLDEST: Final = 1.5
"""Statistics are taken before they are older than so many sample intervals."""


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


class Folded(NamedTuple):
    """What a batch's arrivals made of what was known of a broker."""

    latest: Latest | None
    """None: nothing is known."""
    snapshot: Snapshot | None
    """The whole snapshot, if its bundles were taken."""
    dropped: list[tuple[Arrival, Dropped]]
    """The arrivals that changed nothing."""


def fold(
    snapshot: Snapshot | None,
    broker: str,
    arrivals: Iterable[Arrival],
    settings: IntakeSettings,
) -> tuple[Snapshot | None, list[tuple[Arrival, Dropped]]]:
    """The snapshot after a batch's arrivals in any order, and the arrivals that changed nothing."""
    if snapshot is None:
        _, after, dropped = fold_latest(None, _nothing, broker, arrivals, settings)
        return after, dropped
    before = latest_of(snapshot)
    latest, after, dropped = fold_latest(before, lambda: snapshot, broker, arrivals, settings)
    if latest is None or latest is before:
        return snapshot, dropped
    return after or with_latest(snapshot, latest), dropped


def fold_latest(
    latest: Latest | None,
    recall: Callable[[], Snapshot],
    broker: str,
    arrivals: Iterable[Arrival],
    settings: IntakeSettings,
) -> Folded:
    """The same, reading the snapshot that belongs to ``latest`` only if a report's bundles must be
    taken."""
    taken: Snapshot | None = None
    dropped = []
    ordered = sorted(arrivals, key=_position)
    for arrival, resources in zip(ordered, _percentages(ordered), strict=True):
        verdict = _order(latest, arrival, settings)
        if verdict is not None:
            dropped.append((arrival, verdict))
            continue
        newer = _advance(latest, arrival, resources, settings)
        if latest is None:
            taken = snapshot_of(broker, newer, arrival.report)
        elif not arrival.report.heartbeat and _must_take(latest, newer, settings):
            new = snapshot_of(broker, newer, arrival.report)
            taken = carry_over(taken or recall(), new, settings)
            newer = replace(newer, sampled_ms=taken.sampled_ms, taken_ms=taken.taken_ms)
        latest = newer
    if taken is not None and latest is not None:
        taken = with_latest(taken, latest)
    return Folded(latest, taken, dropped)


def _nothing() -> Snapshot:
    raise AssertionError("nothing is known of the broker")


def _percentages(arrivals: Sequence[Arrival]) -> Iterable[Floats]:
    # Of all at once: NumPy's calls cost more than the arithmetic.
    if not arrivals:
        return ()
    figures = np.array([arrival.report.resources for arrival in arrivals])
    return percentages(figures[:, 0], figures[:, 1])


def _position(arrival: Arrival) -> tuple[int, int, int]:
    return (arrival.session, arrival.sequence, arrival.appended_ms)


def _order(latest: Latest | None, arrival: Arrival, settings: IntakeSettings) -> Dropped | None:
    if latest is None:
        return None
    last, position = (latest.session, latest.sequence), (arrival.session, arrival.sequence)
    if position > last:
        return None
    if position == last:
        return Dropped.DUPLICATE
    silent_ms = arrival.appended_ms - latest.appended_ms
    return None if silent_ms > settings.session_silence * 1000 else Dropped.OLD


def _advance(
    old: Latest | None, arrival: Arrival, resources: Floats, settings: IntakeSettings
) -> Latest:
    """The broker's own figures by a report; a heartbeat does not say what bundles there are."""
    report = arrival.report
    figures = np.concatenate((resources, report.traffic))
    # A report reordered by the network may have been appended before the known one: time must not
    # run backwards in an average.
    appended = arrival.appended_ms if old is None else max(arrival.appended_ms, old.appended_ms)
    if old is not None and not _begins_to_count(old, report):
        elapsed = (appended - old.appended_ms) / 1000
        figures = _follow(old, figures, report, elapsed, settings.half_life)
    silent = old if report.heartbeat else None
    return Latest(
        session=arrival.session,
        sequence=arrival.sequence,
        appended_ms=appended,
        sampled_ms=appended if old is None else old.sampled_ms,
        taken_ms=appended if old is None else old.taken_ms,
        start_ms=report.start_ms,
        version=report.version,
        load_manager=report.load_manager,
        persistent=report.persistent,
        non_persistent=report.non_persistent,
        topics=report.topics,
        listed=report.listed if silent is None else silent.listed,
        resources=resources,
        traffic=report.traffic,
        smoothed=figures,
        limits=np.maximum(report.resources[1], 0.0),
        bundles=digest(report.names, report.shown) if silent is None else silent.bundles,
    )


def _follow(
    old: Latest, figures: Floats, report: LoadReport, elapsed: float, half_life: float
) -> Floats:
    """The averages after a report; of a broker that has started again, in parts of its new limits.

    Those of resources without a limit stay: what such a resource takes is not known, and not 0. One
    that was never known begins with what it takes now.
    """
    limits = report.resources[1]
    there, had, k = limits > 0, old.limits > 0, len(limits)
    if there.all() and np.array_equal(limits, old.limits):
        return averages.decay(old.smoothed, figures, elapsed, half_life)
    before = old.smoothed.copy()
    if report.start_ms != old.start_ms:
        # On other hardware what was used is another part. Limits that change otherwise may change
        # back at once, and are followed as usage is.
        np.multiply(before[:k], old.limits, out=before[:k], where=there & had)
        np.divide(before[:k], limits, out=before[:k], where=there & had)
    average = averages.decay(before, figures, elapsed, half_life)
    begins = there & ~had & (before[:k] == 0)
    average[:k] = np.where(begins, figures[:k], np.where(there, average[:k], before[:k]))
    return average


def _begins_to_count(old: Latest, report: LoadReport) -> bool:
    """Whether traffic is reported for the first time. A broker that has just started reports what
    it uses before its counters count: averages of both would not belong together."""
    return bool(report.traffic.any()) and not old.smoothed[-len(report.traffic) :].any()


def _must_take(old: Latest, new: Latest, settings: IntakeSettings) -> bool:
    """Whether a report has other bundles than the last, or counts traffic and the last did not, or
    their averages are due for a sample, or their statistics would be too old by the next report."""
    interval_ms = settings.sample_interval * 1000
    next_ms = 2 * new.appended_ms - old.appended_ms
    return bool(
        new.bundles != old.bundles
        or (new.traffic.any() and not old.traffic.any())
        or new.appended_ms - old.sampled_ms >= interval_ms
        or next_ms - old.taken_ms > _OLDEST * interval_ms
    )
