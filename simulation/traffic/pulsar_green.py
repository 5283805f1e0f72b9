"""What a Pulsar that is green is asked beside what it has in common with brokers of trimtab.

Pulsar cannot give a topic back, but end it:
  was it written?   its counters begin at nothing whenever it is unloaded, and ledgers go once all
                    is read: what was written is seen by its last entry or by a cursor
  POST terminate    no write can follow; the answer is the last message, or entry -1
It then stays there, ended: a topic that is deleted is made again by the next client that is
attached, and takes writes. One that is to go there again is deleted and created again.
"""

from __future__ import annotations

from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from agent.migration.port import CannotMigrate
from simulation.traffic.green_line import GreenLine, Refused, path_of
from sinks.kafka.readable import MALFORMED

T = TypeVar("T")

UNKNOWN_PATH: Final = frozenset({404, 405})
"""Pulsar's answers to a path that it does not have, or not for this topic."""
_OWN: Final = ("pulsar.repl", "__")
"""Begin the names of subscriptions that are no client's."""
_LATE: Final = (
    "green took a write just before it was ended there: have it read there, then delete the topic "
    "there (pulsar-admin topics delete), and it comes back; or give green up (--without-green)"
)


class _Cursor(msgspec.Struct, frozen=True):
    markDeletePosition: str = ""


class _Internal(msgspec.Struct, frozen=True):
    """What is read of a topic's internal stats. A position is LEDGER:ENTRY; before the first
    message of a ledger its entry is -1."""

    entriesAddedCounter: int = 0
    numberOfEntries: int = 0
    lastConfirmedEntry: str = ""
    state: str = ""
    cursors: dict[str, _Cursor] = {}

    @property
    def is_terminated(self) -> bool:
        return self.state == "Terminated"

    @property
    def is_written(self) -> bool:
        """Whether it has ever taken a message, as far as anything there still shows it."""
        positions = [each.markDeletePosition for each in self.cursors.values()]
        return bool(
            self.entriesAddedCounter
            or self.numberOfEntries
            or any(_entry(each) >= 0 for each in (self.lastConfirmedEntry, *positions))
        )


class _Last(msgspec.Struct, frozen=True):
    entryId: int


class PulsarGreen:
    """One Pulsar, for one thread; raises CannotMigrate."""

    def __init__(self, line: GreenLine) -> None:
        self._line = line

    def end(self, topic: str) -> tuple[str, ...] | None:
        """End the topic, and return its subscriptions; None if it has taken a write, and stays."""
        if not topic.startswith("persistent:"):
            # There is no way to end it.
            return None
        path = path_of(topic)
        known = self._internal(topic)
        if known is None:
            # It was deleted there: a client that comes would make it again.
            self._line.ask("PUT", path)
        elif known.is_written:
            if known.is_terminated:
                raise CannotMigrate(_LATE)
            return None
        last = _read(self._line.ask("POST", f"{path}/terminate").body, _Last)
        if last.entryId >= 0:
            raise CannotMigrate(_LATE)
        return self._subscriptions(topic)

    def is_written(self, topic: str) -> bool:
        """Whether a topic that is there was written; False of what is no Pulsar."""
        known = self._internal(topic)
        return known is not None and known.is_written

    def open_again(self, topic: str) -> None:
        """Create a topic again that a rollback has ended there; nothing if none has."""
        known = self._internal(topic)
        if known is None or known.is_written or not known.is_terminated:
            return
        path, names = path_of(topic), self._subscriptions(topic)
        self._line.ask("DELETE", f"{path}?force=true")
        self._line.ask("PUT", path)
        for name in names:
            # From the first message on: it has none.
            self._line.ask("PUT", f"{path}/subscription/{quote(name, safe='')}", b'"earliest"')

    def tenant_body(self) -> bytes:
        """What a tenant is made with: it may be in the clusters that are there."""
        named = _read(self._line.ask("GET", "clusters").body, list[str])
        return msgspec.json.encode({"allowedClusters": [n for n in named if n != "global"]})

    def _internal(self, topic: str) -> _Internal | None:
        """None if it is not there, or green has no such path."""
        try:
            answer = self._line.ask("GET", f"{path_of(topic)}/internalStats")
        except Refused as error:
            if error.status in UNKNOWN_PATH:
                return None
            raise
        return _read(answer.body, _Internal)

    def _subscriptions(self, topic: str) -> tuple[str, ...]:
        answer = self._line.ask("GET", f"{path_of(topic)}/subscriptions")
        named = sorted(_read(answer.body, list[str]))
        return tuple(name for name in named if not name.startswith(_OWN))


def _entry(position: str) -> int:
    digits = position.rpartition(":")[2]
    return int(digits) if digits.isdigit() else -1


def _read(text: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except MALFORMED as error:
        raise CannotMigrate(f"green's answer cannot be read: {error}") from error
