"""Relays a cluster's ownership journal from Redis to Kafka; deletes only what Kafka has.

Relaying an entry twice is harmless: readers compare epochs. Brokers can write to their cluster's
journal without the script: entries that cannot be its changes go to the dead letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import redis
from redis.exceptions import ResponseError

from sinks.errors import Closed, Misconfigured
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.readable import MALFORMED
from sinks.redis.scripts import refill_script
from sinks.redis.server.connections import translate_errors
from sinks.redis.server.replies import REPAIR
from sinks.redis.server.script import run
from sinks.redis.server.survey import history_of
from trimtab.ownership import State
from trimtab.store.requests import is_of_a_broker
from trimtab.wire import keys
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change, decode_change
from trimtab.wire.rows import DeadLetter, head_of

PAGE: Final = 1000
"""Entries in a call: about 300 kB."""

_LARGEST: Final = 1 << 16
"""Most bytes of a change, usually some hundreds. Kafka refuses a page with one above 1 MB."""

_QUOTED: Final = 200
"""Most characters quoted of a name."""

_command = msgspec.json.Decoder(Command)
_texts = msgspec.json.Decoder(list[msgspec.Raw])


class Rejected(ValueError):
    """An entry that is not a change of this journal; ``reason`` goes to its dead letter."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class _Page(NamedTuple):
    """The oldest entries, and the generation that the cluster was open to when they were read."""

    entries: list[tuple[bytes, dict[bytes, bytes]]]
    generation: int
    history: bytes | None
    """The history of the data that they were read from; None on a replica."""


class JournalRelay:
    """Relays from one Redis to one Kafka; its owner calls it repeatedly."""

    def __init__(self, client: redis.Redis, publisher: Publisher) -> None:
        self._client = client
        self._publisher = publisher

    def find_waiting(self, clusters: Sequence[str]) -> list[str]:
        """Those of the clusters whose journal has entries, or has left records out, in one round
        trip; raises StoreUnavailable and Misconfigured."""
        with translate_errors(self._client), self._client.pipeline(transaction=False) as together:
            for cluster in clusters:
                together.xlen(keys.journal_key(cluster))
                together.scard(keys.unjournalled_key(cluster))
            answers = together.execute(raise_on_error=False)
        # An error is no 0: who then relays this cluster's journal meets it, and tells it.
        lengths = zip(clusters, answers[::2], answers[1::2], strict=True)
        return [cluster for cluster, entries, left_out in lengths if entries or left_out]

    def relay(self, cluster: str) -> int:
        """Relay the oldest entries; returns how many, 0 if there were none.

        Raises StoreUnavailable, KafkaUnavailable, Misconfigured and Closed; every entry that Kafka
        has not acknowledged then stays in the journal.
        """
        page = self._page(cluster)
        if not page.entries:
            return 0
        self._publisher.publish(
            outgoing
            for entry, fields in page.entries
            for outgoing in _outgoing(cluster, page.generation, entry, fields)
        )
        with translate_errors(self._client):
            # While Kafka took them another server may have become the master. If its clock is
            # behind, new entries there may have the ids of those just relayed.
            if self._history() == page.history:
                # By id: after a failover new ids may be smaller than those just relayed.
                self._client.xdel(keys.journal_key(cluster), *(entry for entry, _ in page.entries))
        return len(page.entries)

    def _history(self) -> bytes | None:
        # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
        info: Any = self._client.info("replication")
        return history_of(info)

    def refill(self, cluster: str) -> int:
        """Add the newest records of some bundles that the full journal left out; returns how many.

        For a journal that has room. Raises StoreUnavailable and Misconfigured.
        """
        names = [
            keys.ownership_key(cluster),
            keys.journal_key(cluster),
            keys.unjournalled_key(cluster),
        ]
        [refilled] = run(self._client, refill_script(), names, [cluster, str(PAGE)])
        return int(refilled)

    def _page(self, cluster: str) -> _Page:
        key = keys.journal_key(cluster)
        with translate_errors(self._client), self._client.pipeline(transaction=False) as together:
            # In order on one connection, so on one server: no entry that the script wrote has a
            # higher generation than the one read after it.
            together.xrange(key, count=PAGE)
            together.hget(keys.open_key(cluster), "generation")
            together.info("replication")
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            answers: Any = together.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, ResponseError) and "WRONGTYPE" in str(answer):
                    raise Misconfigured(
                        f"{key} is no stream, or {keys.open_key(cluster)} no hash ({answer}): "
                        f"{REPAIR}"
                    )
                if isinstance(answer, Exception):
                    raise answer
        entries, generation, info = answers
        if not entries:
            return _Page([], 0, None)
        if generation is None:
            raise Closed(f"{cluster} is open to no generation: its journal waits until it is")
        return _Page(entries, int(generation), history_of(info))


def _outgoing(
    cluster: str, generation: int, entry: bytes, fields: dict[bytes, bytes]
) -> Iterator[Outgoing]:
    value = fields.get(b"change", b"")
    try:
        change = checked_change(cluster, generation, value)
    except Rejected as error:
        yield _dead_letter(cluster, entry.decode(), value, error)
        return
    key = f"{change.cluster}/{change.bundle}"
    removed = change.pruned and change.record.state is State.DELETED
    # Where partitions were added, older records of the key are in another one: it must end there.
    yield Outgoing(keys.OWNERSHIP, key, value, everywhere=removed)
    if removed:
        yield Outgoing(keys.OWNERSHIP, key, b"", everywhere=True)
    issued = fields.get(b"commands", b"[]")
    try:
        yield from _issued(change, issued)
    except Rejected as error:
        yield _dead_letter(cluster, entry.decode(), issued, error)


def _issued(change: Change, value: bytes) -> list[Outgoing]:
    """The commands that a broker issued with its change, as the script sent them; all or none.

    Raises Rejected, also for the name of one of the job's: its batch alone publishes those.
    """
    if len(value) > _LARGEST:
        raise Rejected("size", f"{len(value)} bytes, the limit is {_LARGEST}")
    try:
        texts = _texts.decode(value)
        commands = [_command.decode(text) for text in texts]
    except MALFORMED as error:
        raise Rejected("bad-command", str(error)) from error
    for command in commands:
        about = command.cluster, command.bundle, command.epoch
        if about != (change.cluster, change.bundle, change.record.epoch) or command.flaw():
            raise Rejected("bad-command", "it does not belong to its change")
        if not is_of_a_broker(command.id):
            raise Rejected("bad-command", f"a broker's command is not named {command.id[:_QUOTED]}")
    return [
        Outgoing(keys.COMMANDS, f"{command.cluster}/{command.broker}", bytes(text))
        for command, text in zip(commands, texts, strict=True)
    ]


def checked_change(cluster: str, generation: int, value: bytes) -> Change:
    """Decode a journal entry and check it; ``generation``: what the cluster is open to. Raises
    Rejected."""
    if len(value) > _LARGEST:
        raise Rejected("size", f"{len(value)} bytes, the limit is {_LARGEST}")
    try:
        change = decode_change(value)
    except MALFORMED as error:
        raise Rejected("bad-change", str(error)) from error
    if change.cluster != cluster:
        raise Rejected("wrong-cluster", f"the change says {change.cluster!r}")
    found = change.record.epoch.generation
    if found > generation:
        raise Rejected("generation", f"{found} is above {generation}, which may write")
    return change


def _dead_letter(cluster: str, entry: str, value: bytes, error: Rejected) -> Outgoing:
    """The dead letter of an entry not written by the script; it must not stop the others."""
    letter = DeadLetter(
        reason=error.reason,
        detail=str(error),
        topic=keys.journal_key(cluster),
        partition=0,
        offset=int(entry.split("-")[0]),
        key=entry,
        size=len(value),
        head=head_of(value),
    )
    return Outgoing(keys.DEAD_LETTERS, f"{cluster}/{entry}", msgspec.json.encode(letter))
