"""Serves an application on a port, as `trimtab api` does, and can be away for a while."""

from __future__ import annotations

import threading
import time

import uvicorn
from fastapi import FastAPI

from api.server import Server
from deploy.ports import free_port

PATIENCE_S = 60.0
"""On a machine that is busy with other tests."""


class Served:
    """A running server; ``stop`` and ``start`` keep the port."""

    def __init__(self, app: FastAPI) -> None:
        self._app, self.port = app, free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        self._app.state.watch.ending.clear()
        config = uvicorn.Config(self._app, port=self.port, log_config=None)
        self._server = Server(config, self._app.state.watch)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until = time.monotonic() + PATIENCE_S
        while not self._server.started:
            assert time.monotonic() < until
            self._thread.join(0.01)

    def stop(self) -> None:
        """Returns once all connections are closed."""
        self._app.state.watch.ending.set()
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
