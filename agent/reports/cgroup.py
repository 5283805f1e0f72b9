"""The limits that a process's control groups (version 2) set, and how much of them is used.

the groups: the one that /proc/self/cgroup names, and the visible ones above it
the limit of a resource: the lowest of theirs
its use: that of the group with this limit, as everything in the group shares it
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

_MOUNT: Final = "sys/fs/cgroup"


class Share(NamedTuple):
    """One resource, as ``group`` limits it."""

    limit: float
    """Cores, or bytes."""
    used: float
    """Core-seconds since the group was created, or bytes."""
    group: Path


def cpu_share(root: Path) -> Share | None:
    """The CPU share; None if no group limits it; ``root`` is the root of the file system."""
    return _tightest(root, _cores, lambda group: _entry(group / "cpu.stat", "usage_usec") / 1e6)


def memory_share(root: Path) -> Share | None:
    """The tightest share of memory. File pages that the kernel can reclaim count as free."""
    return _tightest(root, _bytes_allowed, _bytes_held)


def _tightest(
    root: Path, limit: Callable[[Path], float | None], used: Callable[[Path], float]
) -> Share | None:
    found = [(most, group) for group in _groups(root) if (most := limit(group)) is not None]
    if not found:
        return None
    # Among equals the outermost, which is first: it has the most users.
    most, group = min(found, key=lambda each: each[0])
    return Share(most, used(group), group)


def _groups(root: Path) -> list[Path]:
    """Groups, outermost first. Some may not exist: a container may see its group as the mount."""
    lines = _read(root / "proc/self/cgroup").splitlines()
    names = [line.removeprefix("0::") for line in lines if line.startswith("0::")]
    parts = names[0].strip("/").split("/") if names else []
    # A group outside this mount appears as a path upwards.
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
    # The two are read at different times: the part may seem larger than the whole.
    return max(0.0, held - _entry(group / "memory.stat", "inactive_file"))


def _entry(path: Path, name: str) -> float:
    """A figure of a flat keyed file, 0 if missing."""
    figures = dict(line.split() for line in _read(path).splitlines())
    return float(figures.get(name, 0))


def _read(path: Path) -> str:
    """Read a file, empty if missing: the root group has no limits, version 1 no such files."""
    try:
        return path.read_text("ascii")
    except OSError:
        return ""
