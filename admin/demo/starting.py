"""How far a demo's start has come, and what to say if it does not end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from admin.demo.processes import DemoFailed
from deploy.process import Process
from simulation.fleet import FleetSnapshot

_LOG_LINES: Final = 8

_STEPS: Final = (
    ("metrics are served", "the job checks Kafka and Redis"),
    ("job runs", "Spark starts"),
    ("query started", "the query starts"),
    ("ownership store is open", "the first batch runs and opens the ownership store"),
)
"""Lines of the job's log in their order, and what it does until each."""


def find_step(log: str, fleet: FleetSnapshot | None) -> str:
    """The step that the start waits for, from the job's log and the fleet's newest snapshot."""
    for line, doing in _STEPS:
        if line not in log:
            return doing
    if fleet is None:
        return "the fleet starts"
    unseeded = sum(not broker.seeded for broker in fleet.brokers.values())
    if unseeded:
        return f"{unseeded} of {len(fleet.brokers)} brokers claim their bundles"
    return "the job waits until it has a report of every broker"


def read_log(log: Path) -> str:
    """The text of a log; empty if it does not exist yet."""
    return log.read_text("utf-8", errors="replace") if log.exists() else ""


def fail_start(
    bound: float, step: str, job: Process, fleet: Process, shown: Callable[[Path], object]
) -> DemoFailed:
    """The error for a start that took longer than ``bound`` seconds; ``shown`` shortens a path."""
    which = fleet if step.startswith("the fleet") or "brokers claim" in step else job
    end = "\n".join(f"  {line}" for line in read_log(which.log).splitlines()[-_LOG_LINES:])
    return DemoFailed(
        f"no round saw the whole fleet within {bound:.0f} s; still missing: {step}\n"
        f"the end of {shown(which.log)}:\n{end}\n"
        f"Next: on a busy or slow machine, more time: trimtab demo --start-seconds {2 * bound:.0f}"
    )
