"""Carries a cluster's ownership journal from Redis to Kafka, and forgets only what Kafka has.

Carrying an entry twice is harmless: readers compare epochs.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import redis

from sinks.connections import translated
from sinks.publisher import Outgoing, Publisher
from trimtab.wire.keys import DEAD_LETTERS, OWNERSHIP, journal_key
from trimtab.wire.ownership import Change
from trimtab.wire.rows import DeadLetter, head_of

_PAGE: Final = 1000
"""Entries a call: about 300 kB."""

_change = msgspec.json.Decoder(Change)


class JournalRelay:
    """From one Redis to one Kafka; its owner calls it again and again."""

    def __init__(self, client: redis.Redis, publisher: Publisher) -> None:
        self._client = client
        self._publisher = publisher

    def relay(self, cluster: str) -> int:
        """Carry the oldest entries; how many, 0 if there were none.

        Raises StoreUnavailable, KafkaUnavailable and Misconfigured, with every entry that Kafka has
        not acknowledged still in the journal.
        """
        key = journal_key(cluster)
        with translated(self._client):
            # Any: the answer's type in redis-py is a union over protocols; ours is RESP2, bytes.
            entries: Any = self._client.xrange(key, count=_PAGE)
        if not entries:
            return 0
        self._publisher.publish(
            [_outgoing(cluster, entry, fields.get(b"change", b"")) for entry, fields in entries]
        )
        with translated(self._client):
            # By id: after a failover new ids may be smaller than those just carried.
            self._client.xdel(key, *(entry for entry, _ in entries))
        return len(entries)


def _outgoing(cluster: str, entry: bytes, value: bytes) -> Outgoing:
    try:
        change = _change.decode(value)
    except msgspec.MsgspecError as error:
        return _dead_letter(cluster, entry.decode(), value, error)
    return Outgoing(OWNERSHIP, f"{change.cluster}/{change.bundle}", value)


def _dead_letter(cluster: str, entry: str, value: bytes, error: msgspec.MsgspecError) -> Outgoing:
    """Someone wrote to the journal beside the script; what it says must not stop the others."""
    letter = DeadLetter(
        reason="bad-change",
        detail=str(error),
        topic=journal_key(cluster),
        partition=0,
        offset=int(entry.split("-")[0]),
        key=entry,
        size=len(value),
        head=head_of(value),
    )
    return Outgoing(DEAD_LETTERS, f"{cluster}/{entry}", msgspec.json.encode(letter))
