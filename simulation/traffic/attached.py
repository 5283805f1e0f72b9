"""Whose producers and consumers are open at a broker, and what each consumer has been sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, NamedTuple

from simulation.traffic.frames import FromBroker, Message, Part, Retry, fit
from simulation.traffic.session import Session
from simulation.traffic.topic_log import TopicLog

WINDOW: Final = 100
"""Entries that a consumer may have without an acknowledgement."""
SOON_MS: Final = 50


class Key(NamedTuple):
    """``name`` is the producer's or the subscription's."""

    topic: str
    name: str


class Reader:
    """An attached consumer."""

    def __init__(self, session: Session, entry: int) -> None:
        self.session = session
        self.after = entry
        """The entry that is delivered next."""
        self.done = entry
        """All before it are acknowledged."""


class Attached:
    """One broker's; its lock is the desk's."""

    def __init__(self) -> None:
        self._producers: dict[Key, Session] = {}
        self._readers: dict[Key, Reader] = {}
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        """Topic to the subscriptions that have a reader."""

    def produces(self, key: Key, session: Session) -> bool:
        """Whether the producer is open, on this connection."""
        return self._producers.get(key) is session

    def open_producer(self, key: Key, session: Session) -> None:
        """Open a producer; one of the name that is open on another connection is closed."""
        older = self._producers.get(key)
        if older not in (None, session):
            self.close(key, Part.PRODUCER, "a newer producer has the name")
        self._producers[key] = session

    def end_producer(self, key: Key) -> None:
        """Close it without a word: its client has got its answer."""
        self._producers.pop(key, None)

    def reader(self, key: Key, session: Session) -> Reader | None:
        """The consumer, if it is attached on this connection."""
        reader = self._readers.get(key)
        return reader if reader is not None and reader.session is session else None

    def attach(self, key: Key, session: Session, entry: int) -> None:
        """Attach a consumer from ``entry`` on; an older one is closed."""
        older = self._readers.get(key)
        if older is not None and older.session is not session:
            self.close(key, Part.CONSUMER, "a newer consumer is attached")
        self._readers[key] = Reader(session, entry)
        self._names[key.topic].add(key.name)

    def detach(self, key: Key) -> Session | None:
        """The connection of the consumer that was attached, if one was."""
        reader = self._readers.pop(key, None)
        if reader is None:
            return None
        self._names[key.topic].discard(key.name)
        if not self._names[key.topic]:
            del self._names[key.topic]
        return reader.session

    def deliver(self, log: TopicLog, topic: str) -> int:
        """Send the topic's consumers what they may have now; how many messages that is."""
        delivered = 0
        for name in self._names.get(topic, ()):
            reader = self._readers[Key(topic, name)]
            room = WINDOW - (reader.after - reader.done)
            entries = log.read(topic, reader.after, room) if room > 0 else []
            if entries:
                reader.session.put([Message(topic, name, *entry) for entry in entries])
                reader.after = entries[-1].entry + 1
                delivered += len(entries)
        return delivered

    def answer_producers(self, topic: str, answer: Callable[[str], FromBroker]) -> None:
        """Close the topic's producers with an answer for each, made of its name."""
        for key in [key for key in self._producers if key.topic == topic]:
            session = self._producers.pop(key)
            session.put([fit(answer(key.name), session.version)])

    def close(self, key: Key, part: Part, why: str) -> None:
        """Have the client of a producer or consumer ask again."""
        produces = part is Part.PRODUCER
        session = self._producers.pop(key, None) if produces else self.detach(key)
        if session is not None:
            session.put([Retry(*key, part, SOON_MS, why)])

    def close_where(self, gone: Callable[[str], bool], why: str) -> None:
        """Close all producers and consumers of such topics."""
        for topic in {key.topic for key in (*self._producers, *self._readers)}:
            if gone(topic):
                for key in [key for key in self._producers if key.topic == topic]:
                    self.close(key, Part.PRODUCER, why)
                for name in tuple(self._names.get(topic, ())):
                    self.close(Key(topic, name), Part.CONSUMER, why)

    def forget(self, session: Session) -> None:
        """The connection is closed."""
        for key in [key for key, of in self._producers.items() if of is session]:
            del self._producers[key]
        for key in [key for key, reader in self._readers.items() if reader.session is session]:
            self.detach(key)
