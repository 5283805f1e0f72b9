"""Ends a question to another server after a time, however its answer comes.

A socket's timeout is for one call: a server that sends a byte a second never runs into it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(
    seconds: float, call: Callable[[], T], give_up: Callable[[], object] = lambda: None
) -> T:
    """What ``call`` returns or raises; TimeoutError after so many seconds. ``give_up`` is called
    then, and should make the call end: until it does, it runs in a thread of its own."""
    answers = queue.SimpleQueue[tuple[list[T], BaseException | None]]()

    def run() -> None:
        try:
            answers.put(([call()], None))
        except BaseException as error:
            answers.put(([], error))

    threading.Thread(target=run, name="asks another server", daemon=True).start()
    try:
        found, error = answers.get(timeout=seconds)
    except queue.Empty:
        give_up()
        raise TimeoutError(f"no answer within {seconds:.3g} s") from None
    try:
        if error is not None:
            raise error
        return found[0]
    finally:
        # It has this frame: the connection that it holds would be closed late.
        del error
