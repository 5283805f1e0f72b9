"""A client's connections: one to each broker, shared by all of its topics there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from typing import Final

from simulation.traffic.frames import (
    Connect,
    FromBroker,
    Malformed,
    of_broker,
)
from simulation.traffic.session import Session

CONNECT_S: Final = 2.0
"""Longest wait for a broker's door. A broker that hangs is noticed by what it does not answer."""


class NoAnswer(ConnectionError):
    """There is no answer at the URL."""


def hosts_of(url: str) -> list[str]:
    """Each host of a service URL as a URL of its own: ``pulsar://a:1,b:2`` names two."""
    scheme, _, hosts = url.partition("://")
    return [f"{scheme}://{host}" for host in hosts.rstrip("/").split(",") if host]


class Connections:
    """Any thread may use them."""

    def __init__(
        self,
        name: str,
        version: int,
        heard: Callable[[Session, list[FromBroker]], None],
        lost: Callable[[Session], None],
    ) -> None:
        """``heard`` and ``lost`` are called by a connection's own thread."""
        self._name, self._version = name, version
        self._heard, self._lost = heard, lost
        self._open: dict[str, Session] = {}
        self._changing = threading.Lock()

    def to(self, url: str) -> Session:
        """The connection to a broker; raises NoAnswer, after two seconds at most."""
        with self._changing:
            known = self._open.get(url)
        if known is not None:
            return known
        host, _, port = url.rpartition("://")[2].rpartition(":")
        try:
            line = socket.create_connection((host, int(port)), timeout=CONNECT_S)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise NoAnswer(f"{url}: {error}") from error
        line.settimeout(None)
        session = Session(line, self._lines, self._closed(url), f"{self._name} to {url}")
        with self._changing:
            self._open[url] = session
        session.put([Connect(self._version, self._name)])
        session.start()
        return session

    def close(self) -> None:
        """Close all; returns once their threads have ended."""
        with self._changing:
            sessions = tuple(self._open.values())
        for session in sessions:
            session.cut()
        for session in sessions:
            session.join(10.0)

    def _lines(self, session: Session, lines: Iterable[bytes]) -> None:
        try:
            frames = of_broker(lines)
        except Malformed:
            session.cut()
            return
        self._heard(session, frames)

    def _closed(self, url: str) -> Callable[[Session], None]:
        def closed(session: Session) -> None:
            with self._changing:
                if self._open.get(url) is session:
                    del self._open[url]
            self._lost(session)

        return closed
