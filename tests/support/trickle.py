"""A server whose answers never come to their end: a byte now and then."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread


@dataclass
class Trickle:
    """``url``: where it listens; ``heard_out``: who has waited for all ``BYTES`` of an answer."""

    url: str
    heard_out: list[str] = field(default_factory=list)
    over: Event = field(default_factory=Event)


BYTES = 100
"""Of a header. A client that waits for all of them waits for five seconds."""
BETWEEN_S = 0.05


@contextmanager
def trickle() -> Iterator[Trickle]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        it = Trickle(f"http://127.0.0.1:{door.getsockname()[1]}")
        thread = Thread(target=_serve, args=(door, it), daemon=True)
        thread.start()
        try:
            yield it
        finally:
            it.over.set()
            with suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(door: socket.socket, it: Trickle) -> None:
    while True:
        try:
            line, _ = door.accept()
        except OSError:
            return
        Thread(target=_answer, args=(line, it), daemon=True).start()


def _answer(line: socket.socket, it: Trickle) -> None:
    with line, suppress(OSError):
        asked = line.recv(65536).decode(errors="replace")
        line.sendall(b"HTTP/1.1 200 OK\r\nx: ")
        for _ in range(BYTES):
            if it.over.wait(BETWEEN_S):
                return
            line.sendall(b"a")
        it.heard_out.append(asked.split("\r\n")[0])
