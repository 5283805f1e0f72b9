"""What a process's control groups (version 2) leave it: limits, and how much of them is used.

the groups: the one that /proc/self/cgroup names, and those above it that can be seen
the limit of a resource: the tightest of theirs
its use: that of the group with this limit, for all that is in the group shares it
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

_MOUNT: Final = "sys/fs/cgroup"


class Share(NamedTuple):
    """One resource, as ``group`` bounds it."""

    limit: float
    """Cores, or bytes."""
    used: float
    """Core-seconds since the group was made, or bytes."""
    group: Path


def cpu_share(root: Path) -> Share | None:
    """None where no group limits it; ``root`` is the root of the file system."""
    return _tightest(root, _cores, lambda group: _entry(group / "cpu.stat", "usage_usec") / 1e6)


def memory_share(root: Path) -> Share | None:
    """The same. File pages that the kernel gives back when asked count as free."""
    return _tightest(root, _bytes_allowed, _bytes_held)


def _tightest(
    root: Path, limit: Callable[[Path], float | None], used: Callable[[Path], float]
) -> Share | None:
    found = [(most, group) for group in _groups(root) if (most := limit(group)) is not None]
    if not found:
        return None
    # Of equals the outermost, the first: it has the most users.
    most, group = min(found, key=lambda each: each[0])
    return Share(most, used(group), group)


def _groups(root: Path) -> list[Path]:
    """Outermost first. Some may not be there: a container may see its own group as the mount."""
    lines = _read(root / "proc/self/cgroup").splitlines()
    names = [line.removeprefix("0::") for line in lines if line.startswith("0::")]
    parts = names[0].strip("/").split("/") if names else []
    # A group outside of what is mounted here shows as a way upwards.
    if ".." in parts:
        parts = []
    mount = root / _MOUNT
    return [mount.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]


def _cores(group: Path) -> float | None:
    quota, _, period = _read(group / "cpu.max").partition(" ")
    return None if quota in ("", "max") else int(quota) / int(period)


def _bytes_allowed(group: Path) -> float | None:
    most = _read(group / "memory.max").strip()
    return None if most in ("", "max") else float(most)


def _bytes_held(group: Path) -> float:
    held = float(_read(group / "memory.current") or 0)
    # Read one after the other, the part may seem larger than the whole.
    return max(0.0, held - _entry(group / "memory.stat", "inactive_file"))


def _entry(path: Path, name: str) -> float:
    """A figure of a flat keyed file, 0 where it has none."""
    figures = dict(line.split() for line in _read(path).splitlines())
    return float(figures.get(name, 0))


def _read(path: Path) -> str:
    """Empty where there is no such file: the root group has no limits, version 1 none of these."""
    try:
        return path.read_text("ascii")
    except OSError:
        return ""
