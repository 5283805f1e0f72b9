"""A thread that repeats one action while the job runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

log = structlog.get_logger()


class Periodic:
    """Calls ``action`` ``seconds`` after it last ended; calls ``failed`` if it raises."""

    def __init__(
        self,
        name: str,
        seconds: float,
        action: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._seconds = seconds
        self._action = action
        self._failed = failed
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; returns once the action has ended."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self._action()
            except Exception as error:
                log.exception("a thread has ended with an error", thread=self._thread.name)
                self._failed(error)
                return
