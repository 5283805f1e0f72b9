"""The clocks of an agent: the machine's, and the agent's estimate of Redis's."""

from __future__ import annotations

import time

from trimtab.ownership import CLOCK_MARGIN_MS, LONGEST_LEASE_MS
from trimtab.store.server_time import ServerTime


def watch_server_time() -> ServerTime:
    """A ServerTime to update at each look; certain after a lease's time."""
    return ServerTime(LONGEST_LEASE_MS / 1000, CLOCK_MARGIN_MS / 1000)


def boot_clock() -> float:
    """Seconds that include the machine's sleep, if the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
