"""How much memory the job needs for a fleet, how often it begins a batch, and whether the machine
and the fleet fit.

heap  = 768 MiB + 4 KiB a broker + 1.6 KiB a bundle: the JVM's
all   = 1.25 heap + 512 MiB + 2.2 KiB a bundle: the Python processes too

Measured with 100 bundles a broker: 1 GiB is enough for 3,000 brokers, 2 GiB for 10,000, where the
JVM took 2.6 GiB and the Python processes 2.5 (docs/benchmarks.md has what a hundred brokers take).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import structlog
from pydantic import BaseModel, Field

from sinks.exposition import Exposition
from trimtab.metrics import job as metrics
from trimtab.wire.rounds import RoundRecord

log = structlog.get_logger()

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_CGROUP: Final = Path("/sys/fs/cgroup/memory.max")
"""A container's limit; "max" for none."""
_TRIGGER_S: Final = 3 / 10_000
"""Seconds between batches for each broker. Lower: batches cost more CPU; higher: commands come
later."""
_SHORTEST_S: Final = 1.0
_LONGEST_S: Final = 5.0
"""Bounds of the time between batches."""


class Size(BaseModel, extra="forbid"):
    """The largest fleet that the job is to carry, all clusters together."""

    brokers: int = Field(default=1_000, gt=0, le=1_000_000)
    bundles: int = Field(default=100_000, gt=0, le=100_000_000)
    """Both set the job's memory, brokers the time between batches. Small: the job may run out of
    memory; large: it takes more than it needs, and commands come later."""

    @property
    def heap_mib(self) -> int:
        """Size of the JVM's heap, in MiB."""
        return 768 + round((4 * _KIB * self.brokers + 1.6 * _KIB * self.bundles) / _MIB)

    @property
    def heap(self) -> str:
        """The heap in Java's notation."""
        return f"{self.heap_mib}m"

    @property
    def whole_mib(self) -> int:
        """Memory of all processes of the job together, in MiB."""
        return round(1.25 * self.heap_mib + 512 + 2.2 * _KIB * self.bundles / _MIB)

    @property
    def trigger_s(self) -> float:
        """Seconds between batches: a batch costs as much CPU time as some hundred reports, whatever
        it holds."""
        return min(max(_SHORTEST_S, _TRIGGER_S * self.brokers), _LONGEST_S)

    def __str__(self) -> str:
        return f"{self.brokers} brokers and {self.bundles} bundles"


def find_shortage(size: Size, machine_mib: int) -> str:
    """Why the machine is too small for the fleet, and what to change; empty if it is not."""
    if size.whole_mib <= machine_mib:
        return ""
    return (
        f"a fleet of {size} (`size`) needs {size.whole_mib} MiB, this machine has {machine_mib}: "
        "give it more memory, or set what the fleet really has"
    )


def machine_mib(cgroup: Path = _CGROUP) -> int:
    """The memory of this machine, or of the container."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = cgroup.read_text("ascii").strip()
    except OSError:
        limit = ""
    return min(whole, int(limit) if limit.isdecimal() else whole) // _MIB


class SizeWatch:
    """Warns once when the fleet outgrows its size: the job may run out of memory later."""

    def __init__(self, size: Size, shown: Exposition) -> None:
        self._size, self._shown = size, shown
        self._brokers: dict[str, float] = {}
        self._bundles: dict[str, float] = {}
        self._outgrown = False

    def note(self, record: RoundRecord) -> None:
        """Count a round's view."""
        self._brokers[record.cluster] = record.summary.get("brokers", 0.0)
        self._bundles[record.cluster] = record.summary.get("bundles", 0.0)
        brokers, bundles = sum(self._brokers.values()), sum(self._bundles.values())
        used = max(brokers / self._size.brokers, bundles / self._size.bundles)
        self._shown.set(metrics.SIZE_USED, used)
        if used > 1 and not self._outgrown:
            there = f"{brokers:.0f} brokers and {bundles:.0f} bundles"
            cure = "set `size.brokers` and `size.bundles`, and start the job again"
            log.warning("the fleet outgrew the job", there=there, size=str(self._size), next=cure)
        self._outgrown = used > 1
