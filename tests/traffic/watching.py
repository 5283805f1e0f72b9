"""What tests of whole clusters wait for: a migration's state; messages and clients in place."""

from __future__ import annotations

import time
from random import Random
from typing import Final

from tests.support.waiting import eventually
from tests.traffic.fleet import CrowdProcess
from tests.traffic.land import Land
from trimtab.migration.life import MigrationState

PATIENCE_S: Final = 500.0


def names(topics: int, namespaces: int) -> list[str]:
    return [f"persistent://t/ns-{n % namespaces}/topic-{n}" for n in range(topics)]


def await_state(
    it: Land, state: MigrationState, rng: Random, pause_s: float, wave: int = 0
) -> None:
    """Until the migration has come so far, killing something every so often."""
    killed_at = time.monotonic()

    def is_there() -> bool:
        nonlocal killed_at
        if time.monotonic() > killed_at + pause_s:
            it.shake(rng)
            killed_at = time.monotonic()
        if it.readmits:
            it.readmit()
        return it.is_in(state, wave)

    try:
        eventually(is_there, f"{state}, wave {wave}", PATIENCE_S, 0.2)
    except AssertionError as error:
        error.add_note(f"{it.migration()}; {it.counts()}; killed: {it.kills}")
        raise


def settle(crowd: CrowdProcess, seconds: float = PATIENCE_S) -> None:
    """Send nothing more, until everything has come."""
    crowd.be_quiet()
    quiet = crowd.status().sent

    def is_settled() -> bool:
        nonlocal quiet
        before, quiet = quiet, crowd.status().sent
        return before == quiet and crowd.status().missing == 0

    eventually(is_settled, "all has come", seconds, 1.5)


def await_clusters(crowd: CrowdProcess, wanted: dict[str, int]) -> None:
    """Until so many consumers are attached at each cluster."""
    eventually(lambda: crowd.status().clusters == wanted, f"clients at {wanted}", 120, 0.5)
