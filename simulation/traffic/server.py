"""A broker's door: takes connections, greets clients, and looks up what it does not serve."""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from simulation.traffic.desk import Astray, Desk
from simulation.traffic.frames import (
    VERSION,
    Connect,
    Connected,
    Elsewhere,
    Malformed,
    Migrated,
    Refused,
    Retry,
    fit,
    of_client,
)
from simulation.traffic.session import Session
from trimtab.wire.lookup import Answer, AnswerKind, Avoid

LookUp = Callable[[str, Avoid | None], Answer]
"""`agent.lookup.server.Lookup.lookup`, which must not wait for hand-overs: a connection's other
topics would wait too."""

SWEEP_S: Final = 1.0
"""Between two looks for topics that others serve, or have served meanwhile: a consumer that only
waits would not notice."""
_AGAIN_MS: Final = 100


class Server:
    """Listens from its making on; ``start`` serves."""

    def __init__(
        self, desk: Desk, look_up: LookUp, name: str, address: tuple[str, int], needs: int = 1
    ) -> None:
        """``name``: the broker's id. ``needs``: the lowest version of clients that it takes."""
        self.needs = needs
        self._desk, self._look_up, self._name = desk, look_up, name
        self._door = socket.create_server(address)
        self.port: int = self._door.getsockname()[1]
        self._sessions: set[Session] = set()
        self._changing = threading.Lock()
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=each, name=f"{name} {each.__name__}", daemon=True)
            for each in (self._take, self._sweep)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Close the door and all connections; returns once no thread of it runs."""
        self._stopped.set()
        with suppress(OSError):
            # Wakes the thread that accepts; closing alone does not.
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for thread in self._threads:
            thread.join(10.0)
        with self._changing:
            open_ones = tuple(self._sessions)
        for session in open_ones:
            session.cut()
        for session in open_ones:
            session.join(10.0)

    def _take(self) -> None:
        while not self._stopped.is_set():
            try:
                line, _ = self._door.accept()
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                # This one client has gone again, or the server stops.
                continue
            session = Session(line, self._heard, self._left, self._name)
            with self._changing:
                self._sessions.add(session)
            session.start()

    def _sweep(self) -> None:
        while not self._stopped.wait(SWEEP_S):
            with self._desk.lock:
                self._desk.attached.close_stale(self._desk.token)

    def _left(self, session: Session) -> None:
        with self._desk.lock:
            self._desk.attached.forget(session)
        with self._changing:
            self._sessions.discard(session)

    def _heard(self, session: Session, lines: list[bytes]) -> None:
        try:
            frames = of_client(lines)
            if session.version == 0:
                frames = frames[1:] if self._greet(session, frames[0]) else []
            astray = self._desk.handle(session, frames) if frames else []
        except (Malformed, sqlite3.OperationalError):
            # The client comes again; of the transaction nothing is left.
            session.cut()
            return
        session.put([fit(self._direct(each), session.version) for each in astray])

    def _greet(self, session: Session, first: object) -> bool:
        """Whether the client is taken."""
        if not isinstance(first, Connect):
            raise Malformed("the first line of a client is connect")
        if first.version < self.needs:
            says = f"client version {first.version} is too old: this broker takes {self.needs}"
            session.put([Refused(self.needs, f"{says} and later")])
            session.end()
            return False
        session.version = first.version
        session.put([Connected(VERSION, self._desk.log.cluster)])
        return True

    def _direct(self, asked: Astray) -> Elsewhere | Retry | Migrated:
        topic, name, part, avoid = asked
        answer = self._look_up(topic, avoid)
        if answer.target is not None:
            return self._desk.migrated(asked, answer.target)
        pulsar = answer.urls.pulsar if answer.urls else None
        if answer.broker is None or answer.broker == self._name:
            # Its own: it is about to serve, or does no longer and will learn of that.
            return Retry(topic, name, part, answer.after_ms or _AGAIN_MS, answer.says)
        if pulsar is None:
            # It has just started. Its id is where its admin interface listens, not clients' port.
            says = f"{answer.broker} has not said yet where clients find it"
            return Retry(topic, name, part, answer.after_ms or _AGAIN_MS, says)
        decides = answer.kind is AnswerKind.REDIRECT
        return Elsewhere(topic, name, part, pulsar, "" if decides else answer.broker, answer.epoch)
