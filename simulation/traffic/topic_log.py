"""The topics of a cluster on disk, shared by its brokers and fenced by the ownership epoch.

Every change names the token of the broker that makes it (`agent.agent.Agent.token`). A topic
remembers the highest that it has seen, and refuses lower ones: what an earlier owner writes late is
never stored, as in Pulsar a broker that opens a ledger fences it. The file is SQLite's; a
transaction that was committed survives ``kill -9``, not the loss of the machine's power.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Final, NamedTuple

import msgspec

from simulation.traffic.frames import NONE
from simulation.traffic.standing import IllegalStep, Standing, Step, stand_after
from trimtab.migration.migration import Target
from trimtab.model import Epoch, namespace_of, parse_bundle
from trimtab.store.lookup import parse_topic
from trimtab.store.ring import clamped_position

BUSY_S: Final = 5.0
"""How long a transaction waits for another broker's."""

_SCHEMA: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "CREATE TABLE IF NOT EXISTS topics (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " name TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, position INTEGER NOT NULL,"
    " generation INTEGER NOT NULL, counter INTEGER NOT NULL, standing TEXT NOT NULL,"
    " urls BLOB NOT NULL, first INTEGER NOT NULL, next INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS ring ON topics (namespace, position)",
    "CREATE TABLE IF NOT EXISTS entries (topic INTEGER, entry INTEGER, producer TEXT,"
    " sequence INTEGER, key TEXT, value TEXT, PRIMARY KEY (topic, entry)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS producers (topic INTEGER, name TEXT, sequence INTEGER,"
    " PRIMARY KEY (topic, name)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS subscriptions (topic INTEGER, name TEXT, next INTEGER,"
    " here INTEGER, PRIMARY KEY (topic, name)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS identity (row INTEGER PRIMARY KEY CHECK (row = 1), id TEXT)",
)
_IDENTIFY: Final = "INSERT OR IGNORE INTO identity VALUES (1, ?)"
_FIND: Final = (
    "SELECT id, standing, urls, first, next, generation, counter FROM topics WHERE name = ?"
)
_MAKE: Final = "INSERT INTO topics VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, -1, 0)"
_FENCE: Final = "UPDATE topics SET generation = ?, counter = ? WHERE id = ?"
_STAND: Final = "UPDATE topics SET standing = ?, urls = ?, first = ? WHERE id = ?"
_HIGHEST: Final = "SELECT sequence FROM producers WHERE topic = ? AND name = ?"
_SUBSCRIPTION: Final = "SELECT next, here FROM subscriptions WHERE topic = ? AND name = ?"
_SUBSCRIPTIONS: Final = "SELECT name FROM subscriptions WHERE topic = ? ORDER BY name"
_MOVE_TO: Final = "UPDATE subscriptions SET next = ? WHERE topic = ? AND name = ? AND next < ?"
_BACKLOGS: Final = "SELECT name, ? - next FROM subscriptions WHERE topic = ? AND here"
_READ: Final = (
    "SELECT entry, producer, sequence, key, value FROM entries"
    " WHERE topic = (SELECT id FROM topics WHERE name = ?) AND entry >= ? ORDER BY entry LIMIT ?"
)
_NAMES: Final = (
    "SELECT name, standing FROM topics WHERE namespace = ? AND position >= ? AND position < ?"
)

_OF_TOPIC: Final = ("entries", "producers", "subscriptions")

_urls: Final = msgspec.json.Decoder(Target)


class Fenced(Exception):
    """A later owner of the topic has written: this broker owns it no longer."""


class Moved(Exception):
    """The topic takes no writes here for good; ``urls`` says where it does."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(f"{topic.name} is {topic.standing.value}")
        self.urls = topic.urls


class Topic(NamedTuple):
    """A topic as a transaction finds it."""

    name: str
    id: int
    standing: Standing
    urls: Target
    first: int
    """The next entry when another cluster handed it over last; below 0: none did."""
    next: int
    fence: Epoch
    """The highest token that it has seen."""

    @property
    def written(self) -> bool:
        """Whether it has taken a write since another cluster handed it over."""
        return self.next > max(self.first, 0)

    @property
    def is_foreign(self) -> bool:
        """Whether clients have made it here, and written it, before another cluster handed it over:
        what those wrote is not what its clients expect, nor are the numbers of its producers."""
        return self.standing is Standing.ACTIVE and self.first < 0 < self.next


class Entry(NamedTuple):
    """A message in a topic."""

    entry: int
    producer: str
    sequence: int
    key: str
    value: str


class TopicLog:
    """One broker's connection to its cluster's file; one thread at a time may use it.

    What changes something belongs in a ``transaction``. Each method raises `sqlite3.Error` where
    the file cannot be used.
    """

    def __init__(self, path: Path, cluster: str) -> None:
        self.cluster = cluster
        self._file = sqlite3.connect(
            path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        for statement in _SCHEMA:
            self._file.execute(statement)
        self._file.execute(_IDENTIFY, (token_hex(8),))
        [(found,)] = self._file.execute("SELECT id FROM identity")
        self.identity: str = found
        """The file's own; with a topic's id, its entries are numbered as no others are."""

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes of the block, or none."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._file.execute("COMMIT")
        except BaseException:
            self._file.execute("ROLLBACK")
            raise

    def find(self, name: str, fence: Epoch) -> Topic | None:
        """The topic, fenced from now on; None if there never was one. Raises Fenced."""
        found = self.look(name)
        if found is None:
            return None
        if fence < found.fence:
            raise Fenced(f"{name}: {tuple(fence)} is below {tuple(found.fence)}")
        if fence > found.fence:
            self._file.execute(_FENCE, (*fence, found.id))
        return found._replace(fence=fence)

    def look(self, name: str) -> Topic | None:
        """The topic as it is, for who changes nothing of it."""
        row = self._file.execute(_FIND, (name,)).fetchone()
        if row is None:
            return None
        number, standing, urls, first, after, *seen = row
        fence, urls = Epoch(*seen), _urls.decode(urls)
        return Topic(name, number, Standing(standing), urls, first, after, fence)

    def make(self, name: str, fence: Epoch) -> Topic:
        """The topic, made active if there never was one; raises Fenced and InvalidName."""
        found = self.find(name, fence)
        if found is not None:
            return found
        _, namespace = parse_topic(name)
        where = clamped_position(name)
        empty, active = msgspec.json.encode(Target()), Standing.ACTIVE
        made = self._file.execute(_MAKE, (name, namespace, where, *fence, active.value, empty))
        return Topic(name, made.lastrowid or 0, active, Target(), -1, 0, fence)

    def hand_over(self, topic: Topic) -> Topic:
        """The topic, which begins again for the clients of another cluster."""
        standing, urls = Standing.ACTIVE, Target()
        place = (standing.value, msgspec.json.encode(urls), topic.next, topic.id)
        self._file.execute(_STAND, place)
        self._file.execute("UPDATE subscriptions SET here = 1 WHERE topic = ?", (topic.id,))
        return topic._replace(standing=standing, urls=urls, first=topic.next)

    def step(self, topic: Topic, step: Step, urls: Target | None = None) -> Topic:
        """Carry out a step of `simulation.traffic.standing`; raises IllegalStep, also for the
        removal of what a subscription has still to read."""
        standing = stand_after(topic.name, topic.standing, step)
        left = sum(self.backlogs(topic).values()) if step is Step.REMOVE else 0
        if left:
            raise IllegalStep(f"{topic.name} has a backlog of {left}")
        if standing is topic.standing and urls in (None, topic.urls):
            return topic
        urls = topic.urls if urls is None else urls
        place = (standing.value, msgspec.json.encode(urls), topic.first, topic.id)
        self._file.execute(_STAND, place)
        if standing is Standing.REMOVED:
            self._file.execute("DELETE FROM entries WHERE topic = ?", (topic.id,))
            self._file.execute("UPDATE subscriptions SET here = 0 WHERE topic = ?", (topic.id,))
        if step is Step.REOPEN:
            self._file.execute("UPDATE subscriptions SET here = 1 WHERE topic = ?", (topic.id,))
        return topic._replace(standing=standing, urls=urls)

    def delete(self, topic: Topic) -> None:
        """Forget the topic with all that it has."""
        for table in _OF_TOPIC:
            self._file.execute(f"DELETE FROM {table} WHERE topic = ?", (topic.id,))
        self._file.execute("DELETE FROM topics WHERE id = ?", (topic.id,))

    def highest(self, topic: Topic, producer: str) -> int:
        """The producer's highest stored sequence."""
        row = self._file.execute(_HIGHEST, (topic.id, producer)).fetchone()
        return NONE if row is None else int(row[0])

    def append(self, topic: Topic, producer: str, sequence: int, key: str, value: str) -> Topic:
        """Store a message, unless it is stored already; raises Moved."""
        if topic.standing is not Standing.ACTIVE:
            raise Moved(topic)
        if sequence <= self.highest(topic, producer):
            return topic
        at = topic.next
        row = (topic.id, at, producer, sequence, key, value)
        self._file.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
        self._file.execute(
            "INSERT OR REPLACE INTO producers VALUES (?, ?, ?)", (topic.id, producer, sequence)
        )
        self._file.execute("UPDATE topics SET next = ? WHERE id = ?", (at + 1, topic.id))
        return topic._replace(next=at + 1)

    def subscription(self, topic: Topic, name: str) -> int | None:
        """The entry that the subscription reads next; None if it is not here."""
        row = self._file.execute(_SUBSCRIPTION, (topic.id, name)).fetchone()
        return int(row[0]) if row is not None and row[1] else None

    def subscriptions(self, topic: Topic) -> tuple[str, ...]:
        """All that there ever were, by name."""
        found = self._file.execute(_SUBSCRIPTIONS, (topic.id,))
        return tuple(str(name) for (name,) in found)

    def subscribe(self, topic: Topic, name: str, at: int) -> int:
        """The same, beginning at ``at`` if it is new here."""
        known = self.subscription(topic, name)
        if known is not None:
            return known
        row = (topic.id, name, at)
        self._file.execute("INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, 1)", row)
        return at

    def acknowledge(self, topic: Topic, name: str, entry: int) -> None:
        """The subscription has done with all up to ``entry``."""
        after = min(entry + 1, topic.next)
        self._file.execute(_MOVE_TO, (after, topic.id, name, after))

    def release(self, topic: Topic, name: str) -> None:
        """The subscription is no longer here; harmless if it never was. Raises IllegalStep while it
        has a backlog."""
        left = self.backlogs(topic).get(name, 0)
        if left:
            raise IllegalStep(f"{name} of {topic.name} has {left} entries left")
        self._file.execute(
            "UPDATE subscriptions SET here = 0 WHERE topic = ? AND name = ?", (topic.id, name)
        )

    def backlogs(self, topic: Topic) -> dict[str, int]:
        """Subscription to the entries that it has not done with."""
        return dict(self._file.execute(_BACKLOGS, (topic.next, topic.id)))

    def read(self, name: str, start: int, most: int) -> list[Entry]:
        """A topic's entries from ``start`` on."""
        rows: Iterable[tuple[int, str, int, str, str]]
        rows = self._file.execute(_READ, (name, start, most))
        return [Entry(*row) for row in rows]

    def names(self, bundle: str) -> dict[str, Standing]:
        """The bundle's topics, those that were removed too."""
        _, (low, high) = parse_bundle(bundle)
        rows = self._file.execute(_NAMES, (namespace_of(bundle), low, high))
        return {name: Standing(standing) for name, standing in rows}
