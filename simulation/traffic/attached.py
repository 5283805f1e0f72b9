"""Whose producers and consumers are open at a broker, and what each consumer has been sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, NamedTuple

from simulation.traffic.frames import FromBroker, Message, Migrated, Part, Retry, fit
from simulation.traffic.session import Session
from simulation.traffic.topic_log import TopicLog
from trimtab.model import Epoch

WINDOW: Final = 100
"""Entries that a consumer may have without an acknowledgement."""
SOON_MS: Final = 50


class Key(NamedTuple):
    """``name`` is the producer's or the subscription's."""

    topic: str
    name: str


class Reader:
    """An attached consumer."""

    def __init__(self, session: Session, entry: int, token: Epoch) -> None:
        self.session = session
        self.token = token
        """By which the topic was served then: under another one there may be entries that this
        broker has not seen."""
        self.after = entry
        """The entry that is delivered next."""
        self.done = entry
        """All before it are acknowledged."""


class Attached:
    """One broker's; its lock is the desk's."""

    def __init__(self) -> None:
        self._producers: defaultdict[str, dict[str, Session]] = defaultdict(dict)
        self._readers: defaultdict[str, dict[str, Reader]] = defaultdict(dict)
        """Both by topic, then by name."""

    def produces(self, key: Key, session: Session) -> bool:
        """Whether the producer is open, on this connection."""
        return self._producers[key.topic].get(key.name) is session

    def open_producer(self, key: Key, session: Session) -> None:
        """Open a producer; one of the name that is open on another connection is closed."""
        if self._producers[key.topic].get(key.name) not in (None, session):
            self.close(key, Part.PRODUCER, "a newer producer has the name")
        self._producers[key.topic][key.name] = session

    def end_producer(self, key: Key) -> None:
        """Close it without a word: its client has got its answer."""
        self._producers[key.topic].pop(key.name, None)

    def reader(self, key: Key, session: Session) -> Reader | None:
        """The consumer, if it is attached on this connection."""
        reader = self._readers[key.topic].get(key.name)
        return reader if reader is not None and reader.session is session else None

    def attach(self, key: Key, session: Session, entry: int, token: Epoch) -> None:
        """Attach a consumer from ``entry`` on; an older one is closed."""
        older = self._readers[key.topic].get(key.name)
        if older is not None and older.session is not session:
            self.close(key, Part.CONSUMER, "a newer consumer is attached")
        self._readers[key.topic][key.name] = Reader(session, entry, token)

    def detach(self, key: Key) -> Session | None:
        """The connection of the consumer that was attached, if one was."""
        reader = self._readers[key.topic].pop(key.name, None)
        return None if reader is None else reader.session

    def deliver(self, log: TopicLog, topic: str) -> int:
        """Send the topic's consumers what they may have now; how many messages that is."""
        delivered = 0
        for name, reader in self._readers[topic].items():
            room = WINDOW - (reader.after - reader.done)
            entries = log.read(topic, reader.after, room) if room > 0 else []
            if entries:
                reader.session.put([Message(topic, name, *entry) for entry in entries])
                reader.after = entries[-1].entry + 1
                delivered += len(entries)
        return delivered

    def answer_producers(self, topic: str, answer: Callable[[str], FromBroker]) -> None:
        """Close the topic's producers with an answer for each, made of its name."""
        for name, session in self._producers.pop(topic, {}).items():
            session.put([fit(answer(name), session.version)])

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        """The subscriptions of a topic that have a consumer."""
        return tuple(self._readers[topic])

    def redirect(self, frame: Migrated) -> None:
        """Send the subscription's consumer away, if it has one."""
        session = self.detach(Key(frame.topic, frame.name))
        if session is not None:
            session.put([fit(frame, session.version)])

    def close(self, key: Key, part: Part, why: str) -> None:
        """Have the client of a producer or consumer ask again."""
        if part is Part.PRODUCER:
            session = self._producers[key.topic].pop(key.name, None)
        else:
            session = self.detach(key)
        if session is not None:
            session.put([Retry(*key, part, SOON_MS, why)])

    def close_where(self, gone: Callable[[str], bool], why: str) -> None:
        """Close all producers and consumers of such topics."""
        for part, of in ((Part.PRODUCER, self._producers), (Part.CONSUMER, self._readers)):
            for topic in [topic for topic in of if gone(topic)]:
                for name in tuple(of[topic]):
                    self.close(Key(topic, name), part, why)
                del of[topic]

    def close_stale(self, token: Callable[[str], Epoch | None]) -> None:
        """Close consumers of topics that have another token by now, or none."""
        for topic, readers in self._readers.items():
            now = token(topic) if readers else None
            for name in [name for name, reader in readers.items() if reader.token != now]:
                self.close(Key(topic, name), Part.CONSUMER, "its broker has changed")

    def forget(self, session: Session) -> None:
        """Forget the producers and consumers of a closed connection."""
        for producers in self._producers.values():
            for name in [name for name, of in producers.items() if of is session]:
                del producers[name]
        for readers in self._readers.values():
            for name in [name for name, reader in readers.items() if reader.session is session]:
                del readers[name]
