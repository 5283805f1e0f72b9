"""A broker's way to Redis, on which a play may act on a request, keep answers back or edit them."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Self
from urllib.parse import urlsplit

from deploy.ports import LOOPBACK

_CHUNK: Final = 1 << 16

_REFUSED: Final = re.compile(
    rb"^-(?!NOGROUP|BUSYGROUP)(?P<error>[^\r]+)\r"
    rb"|\*2\r\n\$\d+\r\n(?P<status>closed|isolated)\r\n\$\d+\r\n(?P<why>[^\r]*)\r"
    rb'|"id":"(?P<id>[^"]+)"[^{}]*"accepted":false,"reason":"(?P<reason>[^"]+)"',
    re.MULTILINE,
)
"""An error of the server that no first read causes, or what the transition script refused."""


class Line:
    """Forwards to a server from ``url`` on for as long as its block lasts."""

    def __init__(self, redis: str) -> None:
        """``redis`` is the server's URL; raises ValueError if it is not ``redis://``."""
        parts = urlsplit(redis)
        if parts.scheme != "redis" or not parts.hostname:
            raise ValueError(f"the kit needs a redis:// URL, to see what is asked; not {redis!r}")
        self._target = parts.hostname, parts.port or 6379
        self._listening = socket.create_server((LOOPBACK, 0))
        user, at, _ = parts.netloc.rpartition("@")
        port = self._listening.getsockname()[1]
        self.url = parts._replace(netloc=f"{user}{at}{LOOPBACK}:{port}").geturl()
        self.on_request: Callable[[bytes], object] = lambda _: None
        """Called with what the broker sends before it is forwarded."""
        self.edit_answer: Callable[[bytes], bytes] = bytes
        """What the broker gets instead of an answer."""
        self.refusal = ""
        """The last thing that the server refused, and why; empty if it refused nothing."""
        self._answers = threading.Event()
        self._answers.set()
        self._open = True
        self._sockets: set[socket.socket] = set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self.cut()
        self.release()

    def hold(self) -> None:
        """Keep all answers back; requests still arrive."""
        self._answers.clear()

    def release(self) -> None:
        """Let answers through, those that were kept back first."""
        self._answers.set()

    def cut(self) -> None:
        """End every connection with its requests under way, and refuse new ones."""
        self._open = False
        for end in tuple(self._sockets):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Accept connections again, and let answers through."""
        self._open = True
        self.release()

    def _accept(self) -> None:
        with suppress(OSError):  # The listening socket was closed.
            while True:
                client, _ = self._listening.accept()
                if not self._open:
                    client.close()
                    continue
                threading.Thread(target=self._join, args=(client,), daemon=True).start()

    def _join(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(self._target) as server:
            ends = {client, server}
            for end in ends:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets |= ends
            answers = threading.Thread(target=self._carry_answers, args=(server, client))
            answers.start()
            try:
                while data := client.recv(_CHUNK):
                    self.on_request(data)
                    server.sendall(data)
            finally:
                for end in ends:
                    with suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
                answers.join()
                self._sockets -= ends

    def _carry_answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                self._note_refusal(data)
                self._answers.wait()
                client.sendall(self.edit_answer(data))
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _note_refusal(self, answer: bytes) -> None:
        for found in _REFUSED.finditer(answer):
            said = {k: v.decode("utf-8", "replace") for k, v in found.groupdict().items() if v}
            match said:
                case {"reason": reason, "id": asked}:
                    self.refusal = f"{reason} (request {asked})"
                case _:
                    self.refusal = ": ".join(said.values())
