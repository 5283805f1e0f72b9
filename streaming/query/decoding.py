"""Decodes load reports in the tasks that read them, so that 28 kB of JSON cross no shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from sources.records import Report
from sources.shards import parcel_up

PARCELS: Final = "shard int, parcel binary"
"""One row for a shard's reports in a record batch."""

_SUBJECT: Final = ("cluster", "broker")
_TYPES: Final = pa.schema([("shard", pa.int32()), ("parcel", pa.binary())])


def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `sources.load_reports.select_reports` as parcels; for ``mapInArrow``."""
    for batch in batches:
        subjects = zip(*(batch.column(name).to_pylist() for name in _SUBJECT), strict=True)
        columns = (batch.column(name).to_pylist() for name in Report.__slots__)
        reports = (Report(*values) for values in zip(*columns, strict=True))
        parcels = parcel_up(zip(subjects, reports, strict=True))
        yield pa.RecordBatch.from_pylist(
            [{"shard": shard, "parcel": parcel} for shard, parcel in parcels.items()],
            schema=_TYPES,
        )
