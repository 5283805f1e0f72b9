"""The job beside a fleet of a hundred reporting brokers, which two benchmarks share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.fleet import SETTINGS, Receipt, StepFleet
from benchmarks.job import JobProcess
from deploy.stack import Stack
from sinks.kafka.topics import ensure_topics

PATIENCE: Final = 15.0
"""Seconds until a step counts as unanswered."""
_START_SECONDS: Final = 180.0
_RESTED: Final = 30
"""Steps of others before a broker steps again: its own moves must have ended."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A step and the command that answered it, with the number of the report that caused it."""

    broker: str
    sequence: int
    receipt: Receipt


@contextmanager
def fleet_on_stack(folder: Path) -> Iterator[tuple[Stack, StepFleet]]:
    """Kafka, Redis, and a fleet that reports; no job yet."""
    with Stack(folder / "run") as stack:
        ensure_topics(stack.kafka_bootstrap)
        with StepFleet(stack.kafka_bootstrap, stack.redis_url) as fleet:
            yield stack, fleet


@contextmanager
def balanced(
    stack: Stack, fleet: StepFleet, folder: Path, trigger_s: float = 0.0
) -> Iterator[JobProcess]:
    """The job over the fleet, once every bundle has its record."""
    with JobProcess(stack, folder / "job", SETTINGS, trigger_s) as job:
        deadline = time.monotonic() + _START_SECONDS
        while not fleet.seeded:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the fleet was not seeded in {_START_SECONDS:.0f} s")
            time.sleep(0.2)
        yield job


def steps(fleet: StepFleet, seed: int) -> Iterator[Answer | None]:
    """Yield steps without end, one broker after another, at uneven times; None: no answer."""
    rng = np.random.default_rng(seed)
    names = list(fleet.brokers)
    recent: list[str] = []
    while True:
        free = [name for name in names if name not in recent]
        broker = free[int(rng.integers(len(free)))]
        recent = [*recent, broker][-_RESTED:]
        receipt = fleet.step(broker, PATIENCE)
        sequence = fleet.brokers[broker].first_stepped
        yield Answer(broker, sequence, receipt) if receipt else None
        time.sleep(float(rng.uniform(0.3, 1.3)))
