"""Which bundle of a namespace LARGEST and HOT mean (Pulsar NamespaceBundles)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from api.desk import Desk
from control.reports import readable
from trimtab.wire.ownership import Record


def choose_bundle(desk: Desk, records: Mapping[str, Record], *, largest: bool) -> str | None:
    """The bundle with the most topics, or with the most bytes a second, by its owner's newest
    report; None if none has a topic."""
    owners = {record.owner for record in records.values() if record.owner}
    values = desk.plane.report_values(desk.cluster(), owners)
    found: dict[str, float] = {}
    for broker, report in readable(values):
        figures = report.counts[0] if largest else np.sum(report.stats[2:], axis=0)
        for row, bundle in enumerate(report.bundles):
            record = records.get(bundle)
            if record is not None and record.owner == broker and report.counts[0][row] > 0:
                found[bundle] = float(figures[row])
    return max(sorted(found), key=found.__getitem__, default=None)
