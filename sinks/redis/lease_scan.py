"""Finds the brokers that hold a lease; cheap enough for several calls a second on a full Redis."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, Final, NamedTuple

import redis

from sinks.redis.leases import history_of, literal
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.scripts import run, vouch_script
from sinks.redis.server.connections import translate_errors
from trimtab.wire.keys import clock_key, lease_key, open_key

_PAGE: Final = 2000
"""Keys that a call scans for unknown leases: about a millisecond of the server's time."""


class Owners(NamedTuple):
    """Brokers that records name, and the bundles whose record cannot be read."""

    brokers: Set[str]
    unreadable: tuple[str, ...] = ()


class LeaseScan:
    """Scans one Redis, from one thread. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._store = OwnershipStore(client)
        self._cursors: dict[str, int] = {}

    def owners(self, cluster: str) -> Owners:
        """Brokers that a record names; reads all records."""
        read = self._store.readable_records(cluster)
        records = read.records.values()
        named = {broker for record in records for broker in (record.owner, record.destination)}
        return Owners({broker for broker in named if broker is not None}, read.unreadable)

    def vouch(self, cluster: str, server_ms: int) -> None:
        """Confirm in Redis that the server's clock agrees with the driver's."""
        run(self._client, vouch_script(), [clock_key(cluster)], [str(server_ms)])

    def alive(self, cluster: str, generation: int, known: Iterable[str]) -> dict[str, float] | None:
        """The brokers of ``known`` that hold a lease, with its seconds left; others as they are
        found, with 0.

        None while the cluster is not open to ``generation`` on the present history of the data: its
        leases then mean nothing. A newcomer is found within one cycle of the cursor: at once among
        a few thousand keys.
        """
        names = sorted(known)
        prefix = lease_key(cluster, "")
        # One connection: the history and the leases come from one server.
        with translate_errors(self._client), self._client.pipeline(transaction=False) as asked:
            asked.info("replication")
            asked.hmget(open_key(cluster), "generation", "replid")
            cursor = self._cursors.get(cluster, 0)
            asked.scan(cursor, match=f"{literal(prefix)}*", count=_PAGE)
            for name in names:
                asked.pttl(lease_key(cluster, name))
            answers: list[Any] = asked.execute()
        info, opened, (self._cursors[cluster], found), *held = answers
        if opened != [str(generation).encode(), history_of(info)]:
            return None
        found = (key.decode(errors="replace") for key in found)
        newcomers = dict.fromkeys((key.removeprefix(prefix) for key in found), 0.0)
        # Redis answers -2 for a key that does not exist.
        left = {name: ms / 1000 for name, ms in zip(names, held, strict=True) if ms >= 0}
        return newcomers | left
