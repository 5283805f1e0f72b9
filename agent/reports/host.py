"""Measures how much of its machine a broker uses (Pulsar LinuxBrokerHostUsageImpl).

cpu, memory: of the control group with the lowest limit, if that is less than the machine has;
  else of the machine
bandwidth: over the machine's own Ethernet interfaces that are up; if all are virtual, as in a
  container, over those
A rate is the mean since the previous sample, so the first sample has none.

Pulsar intends to leave out virtual interfaces, but looks in the wrong path and counts all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from agent.reports.cgroup import cpu_share, memory_share
from trimtab.intake.report_cadence import bandwidth_limit
from trimtab.wire.reports.load_report import UNKNOWN, UNKNOWN_RESOURCE, Resource

SHORTEST_S: Final = 1.0
"""Shortest interval of a rate: the kernel counts a core's time in steps of 10 ms."""

_MIB: Final = 1024.0 * 1024.0
_ETHERNET: Final = "1"
_UP: Final = frozenset({"up", "unknown", "dormant"})


class HostUsage(NamedTuple):
    """Members of a report: ``LocalBrokerData(**usage._asdict(), ...)``.

    Cores in percent, 100 each; memory in MiB; bandwidth in kbit/s. An unknown resource has neither
    usage nor limit: usage -1 with a known limit would be a negative percentage.
    """

    cpu: Resource
    memory: Resource
    bandwidth_in: Resource
    bandwidth_out: Resource


class Processor(NamedTuple):
    """Core-seconds used so far, the number of cores, and the source of these figures."""

    used: float
    cores: float
    of: str


class Interface(NamedTuple):
    """Bytes so far, and Mbit/s: UNKNOWN if it does not report it."""

    received: int
    sent: int
    speed: float


class _Reading(NamedTuple):
    at: float
    processor: Processor
    interfaces: Mapping[str, Interface]


class HostSampler:
    """One per broker: the rates of a sample cover the time since the previous one."""

    def __init__(
        self,
        nic_speed_gbits: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        root: Path = Path("/"),
    ) -> None:
        """``nic_speed_gbits``: speed of each interface, overriding what it reports."""
        self._nic_speed = nic_speed_gbits
        self._clock = clock
        self._root = root
        self._last: _Reading | None = None
        self._rates = (UNKNOWN_RESOURCE, UNKNOWN_RESOURCE, UNKNOWN_RESOURCE)

    def sample(self) -> HostUsage:
        """Current figures. Within SHORTEST_S of the last rates it returns those again."""
        now = self._clock()
        if self._last is None or now - self._last.at >= SHORTEST_S:
            new = _Reading(now, processor(self._root), interfaces(self._root))
            if self._last is not None:
                self._rates = self._between(self._last, new)
            self._last = new
        cpu, received, sent = self._rates
        return HostUsage(cpu, memory(self._root), received, sent)

    def _between(self, last: _Reading, new: _Reading) -> tuple[Resource, Resource, Resource]:
        seconds = new.at - last.at
        both = [(last.interfaces[name], new.interfaces[name]) for name in _common(last, new)]
        if not both:
            return _cpu(last, new), UNKNOWN_RESOURCE, UNKNOWN_RESOURCE
        limit = bandwidth_limit([each.speed for _, each in both], self._nic_speed)
        received = sum(_grown(before.received, after.received) for before, after in both)
        sent = sum(_grown(before.sent, after.sent) for before, after in both)
        return (
            _cpu(last, new),
            Resource(received * 8 / 1000 / seconds, limit),
            Resource(sent * 8 / 1000 / seconds, limit),
        )


def processor(root: Path) -> Processor:
    """Processor figures of the control group if it limits, else of the machine."""
    cores = float(len(psutil.cpu_times(percpu=True)))
    share = cpu_share(root)
    if share is not None and share.limit < cores:
        return Processor(share.used, share.limit, str(share.group))
    times = psutil.cpu_times()._asdict()
    # The kernel also counts guests' time as user time.
    idle = ("idle", "iowait", "guest", "guest_nice")
    busy = sum(spent for kind, spent in times.items() if kind not in idle)
    return Processor(busy, cores, "machine")


def memory(root: Path) -> Resource:
    """Memory in MiB; pages that the kernel can reclaim count as free."""
    whole = psutil.virtual_memory()
    share = memory_share(root)
    if share is not None and share.limit < whole.total:
        return Resource(share.used / _MIB, share.limit / _MIB)
    return Resource((whole.total - whole.available) / _MIB, whole.total / _MIB)


def interfaces(root: Path) -> dict[str, Interface]:
    """The interfaces to measure, by name; none if the system is not Linux."""
    found = [nic for nic in (root / "sys/class/net").glob("*") if _carries(nic)]
    own = [nic for nic in found if "virtual" not in nic.resolve().parts]
    return {
        nic.name: Interface(
            received=int(_read(nic / "statistics/rx_bytes") or 0),
            sent=int(_read(nic / "statistics/tx_bytes") or 0),
            speed=float(_read(nic / "speed") or UNKNOWN),
        )
        for nic in own or found
    }


def _carries(nic: Path) -> bool:
    return _read(nic / "type") == _ETHERNET and _read(nic / "operstate") in _UP


def _cpu(last: _Reading, new: _Reading) -> Resource:
    before, after = last.processor, new.processor
    if before.of != after.of:
        # Moved to another group, or its limit was lifted: the two are not comparable.
        return UNKNOWN_RESOURCE
    used = (after.used - before.used) / (new.at - last.at)
    return Resource(100 * used, 100 * after.cores)


def _common(last: _Reading, new: _Reading) -> list[str]:
    return sorted(last.interfaces.keys() & new.interfaces.keys())


def _grown(before: int, after: int) -> int:
    """Bytes in between; an interface that was recreated counts from 0 again."""
    return after - before if after >= before else after


def _read(path: Path) -> str:
    """Read a file, empty if the kernel has no answer, as for the speed of an interface down."""
    try:
        return path.read_text("ascii").strip()
    except OSError:
        return ""
