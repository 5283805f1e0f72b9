"""Waits until a fleet has reached the state that a benchmark needs."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait for the condition; raises RuntimeError, which names ``what``, after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.01)
