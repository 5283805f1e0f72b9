"""What a broker says of its machine, sampled from files and a clock that are values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import psutil
import pytest

from agent.reports.host import HostSampler, HostUsage
from tests.agent.cgroup_files import INSIDE, OWN, cpu, memory, write
from tests.agent.support import Clock
from trimtab.load import percentages
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import UNKNOWN_RESOURCE as UNKNOWN
from trimtab.wire.reports.load_report import LocalBrokerData, Resource, encode

MIB = 1024 * 1024


class Machine:
    """Two cores, 8 GiB of memory of which 2 GiB are available, and interfaces."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Clock()
        self.busy(0.0)
        kib = {"MemTotal": 8 << 20, "MemAvailable": 2 << 20}
        # psutil warns about any that it misses.
        kib |= dict.fromkeys(("MemFree", "Buffers", "Cached", "Shmem", "Active", "Inactive"), 1)
        meminfo = "".join(f"{name}: {size} kB\n" for name, size in kib.items())
        write(root, {"proc/meminfo": meminfo})

    def busy(self, seconds: float) -> None:
        """Core-seconds so far, half of them in the kernel; as many idle, waiting, and of guests."""
        ticks = round(seconds * 100)
        line = f"{ticks // 2} 0 {ticks // 2} {ticks} {ticks} 0 0 0 {ticks} {ticks}"
        stat = f"cpu  {line}\ncpu0 {line}\ncpu1 {line}\nbtime 1\n"
        write(self.root, {"proc/stat": stat})

    def nic(self, name: str, under: str = "pci0000:00", **more: str | int) -> None:
        """One below /sys/devices; ``more``: received and sent bytes, type, operstate, speed."""
        place = f"sys/devices/{under}/net/{name}"
        counts = {"rx": more.pop("received", 0), "tx": more.pop("sent", 0)}
        files = {"type": "1", "operstate": "up", "speed": "1000", **more}
        files |= {f"statistics/{way}_bytes": count for way, count in counts.items()}
        write(self.root, {f"{place}/{file}": f"{text}\n" for file, text in files.items()})
        link = self.root / "sys/class/net" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(self.root / place)

    def sampler(self, nic_speed: float | None = None) -> HostSampler:
        return HostSampler(nic_speed, self.clock, self.root)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    return Machine(tmp_path)


def after_ten_seconds(machine: Machine, nic_speed: float | None = None) -> HostUsage:
    """Of 5 core-seconds, and what eth0 carried."""
    sampler = machine.sampler(nic_speed)
    sampler.sample()
    machine.clock.now += 10
    machine.busy(5)
    machine.nic("eth0", received=1_250_000, sent=2_500_000)
    return sampler.sample()


def test_the_first_sample_knows_no_rate(machine: Machine) -> None:
    machine.nic("eth0")
    usage = machine.sampler().sample()
    assert usage == HostUsage(UNKNOWN, Resource(6144, 8192), UNKNOWN, UNKNOWN)


def test_what_is_not_known_is_no_load_and_no_poison(machine: Machine) -> None:
    told = decode(encode(LocalBrokerData(**machine.sampler().sample()._asdict())))
    assert percentages(*told.resources).tolist() == [0, 75, 0, 0, 0]


def test_a_machine_without_limits_tells_its_own_figures(machine: Machine) -> None:
    machine.nic("eth0")
    assert after_ten_seconds(machine) == HostUsage(
        cpu=Resource(50, 200),
        memory=Resource(6144, 8192),
        bandwidth_in=Resource(1000, 1_000_000),
        bandwidth_out=Resource(2000, 1_000_000),
    )


def test_a_control_group_with_less_than_the_machine_tells_its_own(machine: Machine) -> None:
    limited = INSIDE | memory(OWN, str(1024 * MIB), held=512 * MIB)
    write(machine.root, limited | cpu(OWN, "100000 100000", 3))
    sampler = machine.sampler()
    sampler.sample()
    machine.clock.now += 4
    write(machine.root, cpu(OWN, "100000 100000", 6))
    usage = sampler.sample()
    assert (usage.cpu, usage.memory) == (Resource(75, 100), Resource(512, 1024))


def test_a_limit_above_the_machine_is_none(machine: Machine) -> None:
    write(machine.root, INSIDE | memory(OWN, str(9000 * MIB)) | cpu(OWN, "400000 100000"))
    machine.nic("eth0")
    usage = after_ten_seconds(machine)
    assert (usage.cpu, usage.memory) == (Resource(50, 200), Resource(6144, 8192))


def test_a_limit_that_comes_in_between_makes_the_rate_unknown_once(machine: Machine) -> None:
    sampler = machine.sampler()
    sampler.sample()
    write(machine.root, INSIDE | cpu(OWN, "100000 100000", 500))
    machine.clock.now += 10
    assert sampler.sample().cpu == UNKNOWN
    machine.clock.now += 10
    assert sampler.sample().cpu == Resource(0, 100)


@pytest.mark.parametrize("elapsed", [0.0, 0.9, -5.0])
def test_a_rate_that_is_asked_for_again_too_soon_is_told_again(
    machine: Machine, elapsed: float
) -> None:
    machine.nic("eth0")
    sampler = machine.sampler()
    sampler.sample()
    machine.clock.now += 10
    machine.busy(5)
    first = sampler.sample()
    machine.clock.now += elapsed
    machine.busy(1000)
    assert sampler.sample() == first
    assert first.cpu == Resource(50, 200)


@pytest.mark.parametrize(
    ("under", "kind", "state"),
    [
        pytest.param("pci0000:00", "772", "up", id="loopback"),
        pytest.param("pci0000:00", "1", "down", id="down"),
        pytest.param("virtual", "1", "up", id="virtual"),
    ],
)
def test_interfaces_that_carry_nothing_of_their_own_are_left_out(
    machine: Machine, under: str, kind: str, state: str
) -> None:
    machine.nic("eth0")
    machine.nic("other", under, type=kind, operstate=state)
    assert after_ten_seconds(machine).bandwidth_in == Resource(1000, 1_000_000)


def test_in_a_container_whose_interfaces_are_all_virtual_they_count(machine: Machine) -> None:
    machine.nic("eth0", "virtual", speed="10000")
    sampler = machine.sampler()
    sampler.sample()
    machine.clock.now += 1
    machine.nic("eth0", "virtual", speed="10000", sent=125)
    assert sampler.sample().bandwidth_out == Resource(1, 10_000_000)


def test_a_speed_that_is_given_holds_for_each_interface(machine: Machine) -> None:
    machine.nic("eth0")
    machine.nic("eth1", operstate="unknown", speed="10")
    assert after_ten_seconds(machine, 3.0).bandwidth_in == Resource(1000, 6_000_000)


@pytest.mark.parametrize("speed", ["-1", ""])
def test_an_interface_that_does_not_say_its_speed_has_no_limit(
    machine: Machine, speed: str
) -> None:
    machine.nic("eth0")
    machine.nic("eth1", speed=speed)
    usage = after_ten_seconds(machine)
    assert usage.bandwidth_in == Resource(1000, -1)
    told = np.array([[usage.bandwidth_in.usage], [usage.bandwidth_in.limit]])
    assert percentages(*told).tolist() == [0]


def test_a_recreated_interface_starts_at_zero(machine: Machine) -> None:
    machine.nic("eth0", received=9_000_000, sent=0)
    machine.nic("gone", received=5)
    sampler = machine.sampler()
    sampler.sample()
    (machine.root / "sys/class/net/gone").unlink()
    machine.nic("new", received=7_000_000)
    machine.nic("eth0", received=1_250, sent=0)
    machine.clock.now += 10
    usage = sampler.sample()
    assert (usage.bandwidth_in, usage.bandwidth_out) == (Resource(1, 1e6), Resource(0, 1e6))


def test_this_machine_can_be_sampled() -> None:
    clock = Clock()
    sampler = HostSampler(clock=clock)
    sampler.sample()
    clock.now += 1
    usage = sampler.sample()
    assert usage.cpu.limit > 0
    assert 0 < usage.memory.usage <= usage.memory.limit
