"""Takes a value again and again on a thread while something else runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def sampled(take: Callable[[], T], every_s: float) -> Iterator[list[T]]:
    """A list that gets one value every ``every_s`` seconds until the block ends."""
    values: list[T] = []
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(every_s):
            values.append(take())

    thread = threading.Thread(target=run, name="sampling", daemon=True)
    thread.start()
    try:
        yield values
    finally:
        ended.set()
        thread.join()
