"""Files of nested control groups, as values, and a way to write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TOP = "sys/fs/cgroup"
POD = f"{TOP}/pods/pod1"
OWN = f"{POD}/broker"
INSIDE = {"proc/self/cgroup": "0::/pods/pod1/broker\n"}


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "ascii")


def cpu(group: str, limit: str, seconds: float = 0.0) -> dict[str, str]:
    stat = f"usage_usec {round(seconds * 1e6)}\nuser_usec 1\nsystem_usec 1\n"
    return {f"{group}/cpu.max": f"{limit}\n", f"{group}/cpu.stat": stat}


def memory(group: str, limit: str, held: int = 0, files: int = 0) -> dict[str, str]:
    return {
        f"{group}/memory.max": f"{limit}\n",
        f"{group}/memory.current": f"{held}\n",
        f"{group}/memory.stat": f"anon 1\ninactive_file {files}\nactive_file 7\n",
    }
