"""Every benchmark: a function that returns its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import (
    api,
    decisions,
    exposition,
    failover,
    intake,
    intents,
    latency,
    lookup,
    memory,
    ownership,
    page,
    plans,
    restart,
    scale,
    starts,
    why,
)
from benchmarks.figures import Figure

Benchmark = Callable[[Path], Sequence[Figure]]
"""Called with an empty folder, removed afterwards; its module's docstring goes to the document."""

BENCHMARKS: Final[Mapping[str, Benchmark]] = {
    "intake": intake.measure,
    "latency": latency.measure,
    "intents": intents.measure,
    "memory": memory.measure,
    "decisions": decisions.measure,
    "plans": plans.measure,
    "starts": starts.measure,
    "lookup": lookup.measure,
    "ownership": ownership.measure,
    "failover": failover.measure,
    "restart": restart.measure,
    "why": why.measure,
    "api": api.measure,
    "page": page.measure,
    "exposition": exposition.measure,
    "scale": scale.measure,
}

WHOLE: Final = tuple(name for name in BENCHMARKS if name != "scale")
"""What is measured together, in 40 minutes; `scale` takes half as long again."""

QUICK: Final = (
    "plans",
    "lookup",
    "ownership",
    "failover",
    "restart",
    "why",
    "api",
    "page",
    "exposition",
)
"""Benchmarks that need no job and end within a minute and a half each."""
