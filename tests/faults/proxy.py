"""A link to a server on the loopback interface that delays, throttles, holds back and cuts.

The network's faults are made in user space, for the kernel may have no netem. A TCP stream cannot
lose bytes in its middle, so a lossy link is a slow one: what is held back arrives late, as after
retransmissions, or with `cut` never.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Self

from deploy.ports import LOOPBACK, free_port

_CHUNK: Final = 1 << 16


@dataclass(slots=True)
class Way:
    """One direction of every connection. Times are in seconds, ``rate`` in bytes/s; 0: no limit."""

    delay: float = 0.0
    jitter: float = 0.0
    """Mean of an exponential that is added to the delay."""
    rate: float = 0.0
    passed: int = 0
    """Bytes so far."""
    seen: Callable[[bytes], object] | None = None
    """Called with what is about to be forwarded, on the proxy's thread."""
    free: asyncio.Event = field(default_factory=asyncio.Event)

    def seconds(self, size: int, rng: Random) -> float:
        jitter = rng.expovariate(1.0 / self.jitter) if self.jitter else 0.0
        return self.delay + jitter + (size / self.rate if self.rate else 0.0)


class Proxy:
    """Listens on ``port`` for as long as its block lasts, and forwards to ``target``."""

    def __init__(self, target: int, seed: int = 0) -> None:
        self.target = target
        self.port = free_port()
        self.up, self.down = Way(), Way()
        self._rng = Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._listening: socket.socket | None = None
        self._connections: set[asyncio.Task[None]] = set()

    def hold(self, *, up: bool = True, down: bool = True) -> None:
        """Forward nothing in that direction; connections stay open, and new ones are accepted."""
        self._set(self.up, free=not up)
        self._set(self.down, free=not down)

    def release(self) -> None:
        """Forward again, what was held back first."""
        self._set(self.up, free=True)
        self._set(self.down, free=True)

    def slow(self, delay: float, jitter: float = 0.0, rate: float = 0.0) -> None:
        """Delay both directions by so many seconds, and limit them to bytes/s (0: no limit).
        ``slow(0)`` ends it."""
        for way in (self.up, self.down):
            way.delay, way.jitter, way.rate = delay, jitter, rate

    def cut(self) -> None:
        """Close every connection, drop what is in transit, and refuse new connections."""
        self._do(self._cut())

    def mend(self) -> None:
        """Accept connections again after a `cut`."""
        self._do(self._listen())

    def __enter__(self) -> Self:
        self._thread.start()
        self.release()
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _set(self, way: Way, *, free: bool) -> None:
        self._loop.call_soon_threadsafe(way.free.set if free else way.free.clear)

    def _do(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(10.0)

    async def _listen(self) -> None:
        self._listening = socket.create_server((LOOPBACK, self.port))
        self._listening.setblocking(False)
        self._loop.add_reader(self._listening, self._accept, self._listening)

    async def _cut(self) -> None:
        if self._listening is not None:
            self._loop.remove_reader(self._listening)
            self._listening.close()
            self._listening = None
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        """Not by `asyncio.start_server`, which drops a connection that it accepts while it is
        closed."""
        with suppress(OSError):
            client, _ = listening.accept()
            task = self._loop.create_task(self._join(client))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            # Here, because a task that is cancelled before its first step runs none of its blocks.
            task.add_done_callback(lambda _: client.close())

    async def _join(self, client: socket.socket) -> None:
        with socket.socket() as server, suppress(OSError):
            for end in (client, server):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.sock_connect(server, (LOOPBACK, self.target))
            ways = [
                asyncio.ensure_future(self._carry(self.up, client, server)),
                asyncio.ensure_future(self._carry(self.down, server, client)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _carry(self, way: Way, source: socket.socket, target: socket.socket) -> None:
        while data := await self._loop.sock_recv(source, _CHUNK):
            if seconds := way.seconds(len(data), self._rng):
                await asyncio.sleep(seconds)
            await way.free.wait()
            if way.seen is not None:
                way.seen(data)
            way.passed += len(data)
            await self._loop.sock_sendall(target, data)
