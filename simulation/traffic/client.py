"""The client library: producers and consumers that find their broker, and come back by themselves.

```python
with Client("pulsar://127.0.0.1:6650,127.0.0.1:6651", "shop") as client:
    client.consumer(topic, "billing", on_message)
    producer = client.producer(topic, "till-1")
    client.send(producer, key="order-7", value="…")
```
One thread opens what is wanted (`simulation.traffic.link`), another for each connection hears the
broker. One lock guards all of it.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Final, Self, TypeVar

from simulation.traffic.connections import Connections, NoAnswer, hosts_of
from simulation.traffic.consumer import Consumer
from simulation.traffic.frames import (
    VERSION,
    Connected,
    Elsewhere,
    FromBroker,
    Message,
    Migrated,
    Part,
    Producing,
    Receipt,
    Refused,
    Retry,
    Subscribed,
)
from simulation.traffic.link import Link, Phase
from simulation.traffic.producer import Producer
from simulation.traffic.session import Session
from trimtab.migration.migration import Target
from trimtab.wire.lookup import Avoid

MOST_AT_ONCE: Final = 500
"""Links that are opened in one go: a broker that takes over thousands has other clients too."""
LONGEST_WAIT_S: Final = 1.0

ForLink = Producing | Receipt | Subscribed | Message | Elsewhere | Retry | Migrated
PART_OF: Final[Mapping[type, Part]] = {
    Producing: Part.PRODUCER,
    Receipt: Part.PRODUCER,
    Subscribed: Part.CONSUMER,
    Message: Part.CONSUMER,
}
"""The part that a frame is about, for frames that can be about only one."""

L = TypeVar("L", bound=Link)


class TooOld(RuntimeError):
    """A broker takes no client of this version; says which it takes."""


class Client:
    """Any thread may use it; ``with`` starts it and closes it."""

    def __init__(
        self, service_url: str, name: str, *, version: int = VERSION, tls: bool = False
    ) -> None:
        """``tls``: which of a redirect's URLs it takes."""
        self.redirects: dict[tuple[str, str], str] = {}
        """The service URL of the cluster that clients of a topic were redirected to last: of the
        topic and "" for all of its producers, of the topic and a subscription for a consumer. That
        has still to read what its own cluster has when producers write elsewhere."""
        self.refused: TooOld | None = None
        self.lock = threading.RLock()
        """Listeners are called with it held."""
        self._home, self._tls = service_url, tls
        self._links: dict[tuple[Part, str, str], Link] = {}
        self._by_session: defaultdict[Session, set[Link]] = defaultdict(set)
        self._due: list[tuple[float, int, Link]] = []
        self._order = count()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._connections = Connections(name, version, self._heard, self._lost)
        self._thread = threading.Thread(target=self._run, name=f"{name} opens", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._wake.set()
        self._thread.join(10.0)
        self._connections.close()

    def producer(
        self, topic: str, name: str, stored: Callable[[str], None] = lambda _: None
    ) -> Producer:
        """A producer that is opened in the background."""
        return self._want(Producer(topic, name, stored))

    def consumer(
        self, topic: str, name: str, listener: Callable[[Consumer, Message], None]
    ) -> Consumer:
        """A consumer of the subscription ``name`` that is attached in the background."""
        return self._want(Consumer(topic, name, listener))

    def send(self, producer: Producer, key: str, value: str) -> None:
        """Have a message stored; returns at once. Raises TooOld."""
        if self.refused is not None:
            raise self.refused
        with self.lock:
            producer.send(key, value)

    def acknowledge(self, consumer: Consumer, entry: int) -> None:
        """All of its messages up to ``entry`` are done with."""
        with self.lock:
            consumer.acknowledge(entry)

    def place_of(self, link: Link) -> Session | None:
        """The connection over which it is open; None while it is not."""
        with self.lock:
            return link.session if link.phase is Phase.OPEN else None

    def _want(self, link: L) -> L:
        with self.lock:
            self._links[link.part, link.topic, link.name] = link
            self._ask_in(link, 0.0)
        return link

    # The thread that opens

    def _run(self) -> None:
        while not self._stopped.is_set():
            due, pause_s = self._take_due()
            if due:
                self._open_all(due)
            else:
                self._wake.wait(pause_s)
                self._wake.clear()

    def _ask_in(self, link: Link, seconds: float) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, next(self._order), link))
        self._wake.set()

    def _take_due(self) -> tuple[list[Link], float]:
        """Links to open now; if there are none, the seconds until the next."""
        now, found = time.monotonic(), list[Link]()
        with self.lock:
            while self._due and self._due[0][0] <= now and len(found) < MOST_AT_ONCE:
                found.append(heapq.heappop(self._due)[2])
            return found, self._due[0][0] - now if self._due else LONGEST_WAIT_S

    def _open_all(self, links: list[Link]) -> None:
        by_url: defaultdict[str, list[Link]] = defaultdict(list)
        for link in links:
            by_url[self._url_for(link)].append(link)
        for url, wanted in by_url.items():
            try:
                # Without the lock: it may take two seconds.
                session = self._connections.to(url)
            except NoAnswer:
                with self.lock:
                    for link in wanted:
                        self._ask_in(link, link.failed())
                continue
            with self.lock:
                for link in wanted:
                    link.asked(session)
                self._by_session[session].update(wanted)
                session.put([link.asking() for link in wanted])
                if session.gone:
                    self._lost(session)

    def _url_for(self, link: Link) -> str:
        if link.broker is not None:
            return link.broker
        away = self.redirects.get(link.group)
        hosts = hosts_of(self._home if away is None or link.asks_home(True) else away)
        return hosts[link.turn % len(hosts)]

    # The connections' threads

    def _heard(self, session: Session, frames: Iterable[FromBroker]) -> None:
        with self.lock:
            for frame in frames:
                if isinstance(frame, Refused):
                    self.refused = TooOld(frame.says)
                elif not isinstance(frame, Connected):
                    self._one(session, frame)

    def _one(self, session: Session, frame: ForLink) -> None:
        part = PART_OF.get(type(frame)) or getattr(frame, "part")  # noqa: B009 - of all others
        link = self._links.get((part, frame.topic, frame.name))
        if link is None or link.session is not session:
            return
        again: float | None
        match frame:
            case Elsewhere():
                owner = Avoid(frame.broker, frame.epoch) if frame.broker else None
                again = link.sent_to(frame.url, owner)
            case Retry():
                again = link.failed(frame.after_ms / 1000)
            case Migrated():
                link.migrated(frame)
                again = self._send_on(link, self._chosen(frame.urls))
            case _:
                again = link.heard(frame)
        if again is not None:
            self._by_session[session].discard(link)
            self._ask_in(link, again)

    def _send_on(self, link: Link, url: str) -> float:
        """Have it ask the other cluster; seconds until then. One that lacks this client's kind of
        URL leaves it at home, where it asks again: there may be one later."""
        if not url:
            return link.failed()
        self.redirects[link.group] = url
        return link.redirected()

    def _chosen(self, urls: Target) -> str:
        return urls.brokerServiceUrlTls if self._tls else urls.brokerServiceUrl

    def _lost(self, session: Session) -> None:
        with self.lock:
            for link in self._by_session.pop(session, ()):
                if link.session is session and self.refused is None:
                    self._ask_in(link, link.failed())
