"""The part of a broker's snapshot that every report changes: its own figures.

A snapshot's bundles change once in a sample interval. A report in between is stored and sent as its
Latest, a few hundred bytes where a snapshot of a hundred bundles has ten thousand. The snapshot
stays as it was, and both together are the broker's snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any, Final

from trimtab.arrays import Bools, Floats
from trimtab.intake.snapshot import Snapshot
from trimtab.wire.columns import pack_small, unpack

_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Latest:
    """A broker's own figures by its newest report; the fields of `Snapshot` of the same names."""

    session: int
    sequence: int
    appended_ms: int
    sampled_ms: int
    taken_ms: int
    start_ms: int
    version: str
    load_manager: str
    persistent: bool
    non_persistent: bool
    topics: int
    listed: int
    resources: Floats
    traffic: Floats
    smoothed: Floats
    limits: Floats
    bundles: bytes
    """A digest of the names and of which are shown: whether a report has others."""


_COMMON: Final = tuple(each.name for each in fields(Latest) if each.name != "bundles")


def own_figures(source: Latest | Snapshot) -> dict[str, Any]:
    """What both have of a broker, by field."""
    # Any: the type of a field depends on its name.
    return {name: getattr(source, name) for name in _COMMON}


def latest_of(snapshot: Snapshot) -> Latest:
    """The broker's own figures in a snapshot."""
    return Latest(**own_figures(snapshot), bundles=digest(snapshot.names, snapshot.shown))


def with_latest(snapshot: Snapshot, latest: Latest) -> Snapshot:
    """The snapshot with a later report's figures."""
    return replace(snapshot, **own_figures(latest))


def join(packed: bytes, latest: bytes | None) -> bytes:
    """A packed snapshot with the figures of a packed Latest."""
    if latest is None:
        return packed
    return pack_small(with_latest(unpack(packed, Snapshot), unpack(latest, Latest)))


def digest(names: str, shown: Bools) -> bytes:
    """Equal for equal bundles in the same order."""
    return blake2b(names.encode() + shown.tobytes(), digest_size=_DIGEST_BYTES).digest()
