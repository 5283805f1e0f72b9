"""Waits until a fleet has reached the state that a benchmark needs."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], what: str, seconds: float, pause_s: float = 0.01) -> None:
    """Wait for the condition, asked again after each pause; raises RuntimeError, which names
    ``what``, after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {seconds:.0f} s without success for {what}")
        time.sleep(pause_s)
