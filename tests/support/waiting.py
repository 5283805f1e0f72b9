"""Waiting for real processes: on a condition, with a deadline that fails the test."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(
    look: Callable[[], T | None], what: str, seconds: float = 180.0, pause: float = 0.05
) -> T:
    """What ``look`` returns once that is something; raises after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(pause)
    return found
