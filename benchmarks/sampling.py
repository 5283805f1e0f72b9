"""Takes a value again and again on a thread while something else runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def sampled(take: Callable[[], T], every_s: float) -> Iterator[list[T]]:
    """The list that grows by one value each ``every_s`` seconds until the end of the block."""
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
