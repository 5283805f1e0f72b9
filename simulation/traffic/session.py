"""One connection: a thread reads its lines, another writes what is put for it.

What many threads put is written in the order in which it was put. No such thread waits for
the peer.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Final

from simulation.traffic.frames import LONGEST_LINE, FromBroker, FromClient, encode

_CHUNK: Final = 1 << 16


class Session:
    """An open connection of either side; ``closed`` is called once, by the thread that reads."""

    def __init__(
        self,
        line: socket.socket,
        heard: Callable[[Session, list[bytes]], None],
        closed: Callable[[Session], None],
        name: str,
    ) -> None:
        """``heard``: gets all lines that have come since it returned. An error that it raises ends
        the connection."""
        self.version = 0
        """The client's, once it has said so."""
        self.gone = False
        """Set before ``closed`` is called."""
        self._line, self._heard, self._closed = line, heard, closed
        self._out: SimpleQueue[bytes | None] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, name=f"{name} reads", daemon=True)
        self._writer = threading.Thread(target=self._write, name=f"{name} writes", daemon=True)

    def start(self) -> None:
        # The reader waits for the writer's end.
        self._writer.start()
        self._reader.start()

    def put(self, frames: Iterable[FromClient | FromBroker]) -> None:
        """Have frames written; harmless once the connection is closed."""
        lines = encode(frames)
        if lines:
            self._out.put(lines)

    def end(self) -> None:
        """Close once everything that was put is written."""
        self._out.put(None)

    def cut(self) -> None:
        """Close at once; both threads end."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._out.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait for its threads, from any other."""
        for thread in (self._reader, self._writer):
            if thread is not threading.current_thread():
                thread.join(timeout_s)

    def _read(self) -> None:
        rest = b""
        try:
            while chunk := self._line.recv(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > LONGEST_LINE:
                    break
                if lines:
                    self._heard(self, lines)
        except OSError:
            pass
        finally:
            self.cut()
            self._writer.join(1.0)
            self._line.close()
            self.gone = True
            self._closed(self)

    def _write(self) -> None:
        ended = False
        with suppress(OSError):
            while not ended:
                lines = [self._out.get()]
                while not self._out.empty():
                    lines.append(self._out.get())
                ended = None in lines
                # What was put after the end is not written.
                waiting = lines[: lines.index(None)] if ended else lines
                self._line.sendall(b"".join(filter(None, waiting)))
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
