"""Reports on their way to operator ①: decoded where Spark reads them, and together with those of
other brokers, because each of the operator's keys costs as much as several reports.

A shard is a part of all clusters' brokers, always the same ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

from sources.arrivals import sift
from sources.records import Report
from trimtab.intake.fold import Arrival
from trimtab.wire.columns import pack, unpack
from trimtab.wire.rows import Row

SHARDS: Final = 16
"""More: more keys; fewer: less work at once, as a shard is one task's. State is kept by shard, so
another number needs another checkpoint."""


@dataclass(slots=True)
class Parcel:
    """What some records of one shard say."""

    arrivals: dict[str, list[Arrival]] = field(default_factory=lambda: defaultdict(list))
    """By ``cluster/broker``, in the order in which they were read."""
    letters: list[Row] = field(default_factory=list)
    """The dead letters of those that are not valid."""


def shard_of(subject: str) -> int:
    """The shard of ``cluster/broker``: a key of operator ①."""
    return crc32(subject.encode()) % SHARDS


def parcel_up(reports: Iterable[tuple[tuple[str, str], Report]]) -> dict[int, bytes]:
    """A packed Parcel for each shard; the reports come with their cluster and broker."""
    parcels = defaultdict[int, Parcel](Parcel)
    for subject, report in reports:
        arrivals, letters = sift(subject, [report])
        name = "/".join(subject)
        parcel = parcels[shard_of(name)]
        parcel.letters += letters
        if arrivals:
            parcel.arrivals[name] += arrivals
    return {shard: pack(parcel) for shard, parcel in parcels.items()}


def unpack_all(packed: Sequence[bytes]) -> Parcel:
    """A shard's parcels as one."""
    whole = Parcel()
    for each in packed:
        parcel = unpack(each, Parcel)
        whole.letters += parcel.letters
        for subject, arrivals in parcel.arrivals.items():
            whole.arrivals[subject] += arrivals
    return whole
