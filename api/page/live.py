"""/trimtab/v1/events: says as server-sent events that a cluster has a new round.

    event: clusters     what each cluster's newest round is; sent first, and when that changes
    event: away         why it cannot be known: Kafka is away
    : (a comment)       every few seconds, so that a reader notices a connection that is dead

It carries no figures: a reader asks the paths that have them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from threading import Event
from typing import Any, Final

import msgspec
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from api.refusal import RefusedRequest
from control.health import late_from
from control.plane import ControlPlane
from control.rounds import ClusterRounds
from sinks.errors import SinkError

own_live = APIRouter(prefix="/events", tags=["clusters"])

_LOOK_S: Final = 0.5
"""Between two looks. Shorter: more load on Kafka; longer: a new round is shown later."""
_BEAT_S: Final = 3.0
"""Between two lines at most."""
_LONGEST_S: Final = 600.0
"""After which a reader has to connect again, by a token that is still in force."""
_MOST: Final = 200
"""Readers at once; each costs a connection and little else."""


class Watch:
    """One look at the clusters for all readers; for one event loop."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._look: asyncio.Task[bytes] | None = None
        self._began = 0.0
        self._late: dict[str, tuple[ClusterRounds, float]] = {}
        self.readers = 0
        self.ending = Event()
        """Set when the server ends: readers would keep it waiting."""

    async def look(self) -> bytes:
        """The newest event, at most half a second old."""
        now = time.monotonic()
        if self._look is None or (self._look.done() and now - self._began >= _LOOK_S):
            self._began = now
            self._look = asyncio.create_task(run_in_threadpool(self._read))
        return await asyncio.shield(self._look)

    def _read(self) -> bytes:
        try:
            clusters = self._plane.clusters()
        except (SinkError, LookupError) as error:
            return _event("away", {"reason": str(error)})
        now_ms = time.time_ns() // 1_000_000
        return _event(
            "clusters",
            {
                name: {
                    "round": last.newest.round,
                    "at": last.newest.at,
                    "late": now_ms > self._late_from(name, last),
                    "waiting": list(last.waiting),
                }
                for name, last in sorted(clusters.items())
            },
        )

    def _late_from(self, name: str, last: ClusterRounds) -> float:
        """`late_from`, computed once a round."""
        known = self._late.get(name)
        if known is None or known[0] is not last:
            known = self._late[name] = last, late_from(last, last.settings())
        return known[1]


@own_live.get("", include_in_schema=False)
def follow(request: Request) -> StreamingResponse:
    """Server-sent events for as long as the reader stays, ten minutes at most."""
    watch: Watch = request.app.state.watch
    if watch.readers >= _MOST:
        raise RefusedRequest(503, f"{_MOST} readers follow events already")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(watch), media_type="text/event-stream", headers=headers)


async def _events(watch: Watch) -> AsyncIterator[bytes]:
    watch.readers += 1
    try:
        told, told_at, began = b"", 0.0, time.monotonic()
        while not watch.ending.is_set() and time.monotonic() - began < _LONGEST_S:
            event = await watch.look()
            now = time.monotonic()
            if event != told:
                told, told_at = event, now
                yield event
            elif now - told_at >= _BEAT_S:
                told_at = now
                yield b":\n\n"
            await asyncio.sleep(_LOOK_S)
    finally:
        watch.readers -= 1


def _event(name: str, data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data))
