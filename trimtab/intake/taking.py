"""Takes a report's bundles into its broker's snapshot, and their averages along.

carry_over(old, new):
  put what is known of the bundles in the new report's order
  once an interval, and only from statistics that changed, add a sample to the averages
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trimtab.intake import averages
from trimtab.intake.latest import Latest, own_figures
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.wire.reports.decode import LoadReport


def snapshot_of(broker: str, latest: Latest, report: LoadReport) -> Snapshot:
    """A snapshot of this report alone."""
    taken = {"sampled_ms": latest.appended_ms, "taken_ms": latest.appended_ms}
    return Snapshot(
        broker=broker,
        **own_figures(latest) | taken,
        names=report.names,
        shown=report.shown,
        samples=np.ones(len(report.shown), np.int64),
        news=np.zeros(len(report.shown), np.bool_),
        stats=report.stats,
        short=report.stats,
        long=report.stats,
        counts=report.counts,
    )


def carry_over(old: Snapshot, new: Snapshot, settings: IntakeSettings) -> Snapshot:
    """``new`` with the bundle averages carried over from ``old``."""
    known = old if old.names == new.names else _align(old, new)
    # Brokers repeat a statistic until they refresh it: only a changed one is new. An idle bundle
    # repeats its zeros forever, and those must count or its averages never come down.
    news = known.news | (new.stats != known.stats).any(axis=0) | (new.stats == 0).all(axis=0)
    unseen = known.samples == 0
    due = new.appended_ms - old.sampled_ms >= settings.sample_interval * 1000
    mask = unseen | (news & due)
    if not mask.any():
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
