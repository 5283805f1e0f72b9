"""Runs the application until a signal; readers of events are let go first."""

from __future__ import annotations

from contextlib import suppress
from types import FrameType

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from api.page.live import Watch


class Server(uvicorn.Server):
    """uvicorn waits for all answers to end, and those to readers of events do not end by
    themselves."""

    def __init__(self, config: uvicorn.Config, watch: Watch) -> None:
        super().__init__(config)
        self._watch = watch

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._watch.ending.set()
        super().handle_exit(sig, frame)

    def serve_until_ended(self) -> None:
        """Run, and exit like `uvicorn.run` where it could not start."""
        with suppress(KeyboardInterrupt):
            self.run()
        if not self.started:
            raise SystemExit(STARTUP_FAILURE)
