"""What a broker does for its clients: stores what producers send, delivers it to consumers.

all frames that a connection has sent meanwhile, under one lock:
  those of topics whose bundle is served here: one transaction of the log, each under its token
  after the commit, and only then: what is answered, and what consumers may read now
  the others: their topics are astray, and looked up outside the lock
A producer or consumer that was refused once is closed: what its client sent after that is not
looked at, else a message could be stored before one that was sent earlier.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from agent.migration.port import AskAgain
from simulation.traffic.attached import Attached, Key
from simulation.traffic.frames import (
    NONE,
    Ack,
    FromBroker,
    FromClient,
    Migrated,
    Part,
    Produce,
    Producing,
    Receipt,
    Retry,
    Send,
    Subscribe,
    Subscribed,
    Unreadable,
    fit,
)
from simulation.traffic.places import Places
from simulation.traffic.session import Session
from simulation.traffic.standing import IllegalStep, Standing, Step
from simulation.traffic.topic_log import Fenced, Moved, Topic, TopicLog
from trimtab.migration.migration import Target
from trimtab.model import Epoch
from trimtab.wire.lookup import Avoid

WITHHELD_MS: Final = 200
UNREADABLE_MS: Final = 1000
"""The same line will not be read later either: its client has to change it."""
AGAIN_MS: Final = 100
"""Until the record of a new topic may be there."""


class Astray(NamedTuple):
    """A client asks for a topic that is not served here."""

    topic: str
    name: str
    part: Part
    avoid: Avoid | None = None


class _Work:
    """The results of one connection's frames."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.answers: list[FromBroker] = []
        self.stored: dict[Key, int] = {}
        """Producer to the highest sequence that it gets a receipt for."""
        self.wake: set[str] = set()
        """Topics that consumers may read more of."""
        self.astray: list[Astray] = []


class Desk:
    """One broker's; any thread may use it, and holds ``lock`` for what is more than a call."""

    def __init__(
        self,
        log: TopicLog,
        token: Callable[[str], Epoch | None],
        green_for: Callable[[str], Target | None] = lambda _: None,
    ) -> None:
        """``token``: of a bundle, as `agent.agent.Agent.token`. ``green_for``: of a topic that does
        not exist, the cluster on which it is made; None: here. It may raise AskAgain."""
        self.lock = threading.RLock()
        self.log = log
        self.attached = Attached()
        self.places = Places()
        self.withheld: set[str] = set()
        """Topics that take no writes for now, and no new subscription, as other regions lack some
        of what they have. Who owns the bundle next is told again."""
        self.restores: dict[str, tuple[Step, Target]] = {}
        """What a topic's record says of it, received before its bundle was served: it holds
        for all that is done with the topic."""
        self.taken: Counter[str] = Counter()
        self.given: Counter[str] = Counter()
        """Messages by topic, in and out, since somebody cleared it."""
        self._token, self._green_for = token, green_for

    def token(self, topic: str) -> Epoch | None:
        """The token by which this broker writes the topic; None if it may not."""
        bundle = self.places.bundle_of(topic)
        return None if bundle is None else self._token(bundle)

    def handle(self, session: Session, frames: Sequence[FromClient | Unreadable]) -> list[Astray]:
        """Do what a client asks, and return what is not asked here; raises `sqlite3.Error`."""
        work = _Work(session)
        with self.lock:
            with self.log.transaction():
                for frame in frames:
                    self._one(work, frame)
            receipts = [Receipt(*key, sequence) for key, sequence in work.stored.items()]
            session.put([*receipts, *(fit(each, session.version) for each in work.answers)])
            for topic in work.wake:
                self.deliver(topic)
        return work.astray

    def deliver(self, topic: str) -> None:
        """Send the topic's consumers the messages that they may have; nothing if this broker does
        not serve the topic now."""
        if self.token(topic) is not None:
            self.given[topic] += self.attached.deliver(self.log, topic)

    def find(self, name: str) -> Topic | None:
        """The topic, if it is served here and exists."""
        token = self.token(name)
        try:
            return None if token is None else self._found(name, token)
        except (Fenced, IllegalStep):
            return None

    def _found(self, name: str, token: Epoch) -> Topic | None:
        found, told = self.log.find(name, token), self.restores.get(name)
        return found if found is None or told is None else self.log.step(found, *told)

    def _one(self, work: _Work, frame: FromClient | Unreadable) -> None:
        match frame:
            case Unreadable(topic, name, part, says):
                work.answers.append(Retry(topic, name, part, UNREADABLE_MS, says))
            case Produce() | Subscribe():
                self._open(work, frame)
            case Send():
                self._send(work, frame)
            case Ack():
                self._acknowledge(work, frame)

    def _open(self, work: _Work, frame: Produce | Subscribe) -> None:
        part = Part.PRODUCER if isinstance(frame, Produce) else Part.CONSUMER
        key = Key(frame.topic, frame.name)
        try:
            found = self._make(frame.topic)
        except AskAgain as error:
            work.answers.append(Retry(*key, part, AGAIN_MS, str(error)))
            return
        if found is None:
            work.astray.append(Astray(*key, part, frame.avoid))
        elif isinstance(found, Target):
            work.answers.append(Migrated(*key, part, found))
        elif part is Part.PRODUCER:
            self._produce(work, found, key)
        else:
            self._subscribe(work, found, key)

    def _make(self, name: str) -> Topic | Target | None:
        """The topic, new if need be, or where it is to be made; None: not served here. Raises
        AskAgain."""
        token = self.token(name)
        if token is None:
            return None
        try:
            return self._found(name, token) or self._green_for(name) or self.log.make(name, token)
        except (Fenced, IllegalStep):
            return None

    def _produce(self, work: _Work, topic: Topic, key: Key) -> None:
        if topic.standing is not Standing.ACTIVE:
            work.answers.append(self.moved(topic, key.name))
        elif key.topic in self.withheld:
            work.answers.append(withheld(key))
        else:
            self.attached.open_producer(key, work.session)
            work.answers.append(Producing(*key, self.log.highest(topic, key.name)))

    def moved(self, topic: Topic, producer: str) -> Migrated:
        """A producer's redirect. What it names as stored is final: the topic stores no more."""
        stored = self.log.highest(topic, producer)
        return Migrated(topic.name, producer, Part.PRODUCER, topic.urls, stored)

    def migrated(self, asked: Astray, target: Target) -> Migrated:
        """Redirect a client whose topic has migrated, by a lookup. Any broker may: what the log has
        of a producer is final by then."""
        with self.lock:
            known = self.log.look(asked.topic)
            stored = NONE if known is None else self.log.highest(known, asked.name)
        return Migrated(asked.topic, asked.name, asked.part, target, stored)

    def _send(self, work: _Work, frame: Send) -> None:
        key = Key(frame.topic, frame.name)
        if not self.attached.produces(key, work.session):
            return
        topic = self.find(frame.topic)
        if topic is None:
            work.astray.append(Astray(*key, Part.PRODUCER))
            self.attached.end_producer(key)
            return
        try:
            self.log.append(topic, frame.name, frame.sequence, frame.key, frame.value)
        except Moved:
            work.answers.append(self.moved(topic, key.name))
            self.attached.end_producer(key)
        else:
            work.stored[key] = frame.sequence
            work.wake.add(frame.topic)
            self.taken[frame.topic] += 1

    def _subscribe(self, work: _Work, topic: Topic, key: Key) -> None:
        entry = self.log.subscription(topic, key.name)
        if topic.standing is Standing.ACTIVE:
            if entry is None and key.topic in self.withheld:
                work.answers.append(withheld(key, Part.CONSUMER))
                return
            entry = self.log.subscribe(topic, key.name, topic.next)
        elif entry in (None, topic.next):
            # New here, or drained: its next message is on the other cluster.
            work.answers.append(Migrated(*key, Part.CONSUMER, topic.urls))
            return
        assert entry is not None
        self.attached.attach(key, work.session, entry, topic.fence)
        # A topic that is deleted and made again has other entries.
        numbered = f"{self.log.identity}/{topic.id}"
        work.answers.append(Subscribed(*key, self.log.cluster, entry, numbered))
        work.wake.add(topic.name)

    def _acknowledge(self, work: _Work, frame: Ack) -> None:
        key = Key(frame.topic, frame.name)
        reader = self.attached.reader(key, work.session)
        if reader is None:
            return
        topic = self.find(frame.topic)
        if topic is None:
            self.attached.detach(key)
            work.astray.append(Astray(*key, Part.CONSUMER))
            return
        self.log.acknowledge(topic, frame.name, frame.entry)
        reader.done = max(reader.done, min(frame.entry + 1, reader.after))
        work.wake.add(frame.topic)


def withheld(key: Key, part: Part = Part.PRODUCER) -> Retry:
    """Answer a producer, or who would make a subscription, of a topic whose replicators have not
    come to its end."""
    return Retry(*key, part, WITHHELD_MS, "it is about to go to another cluster")
