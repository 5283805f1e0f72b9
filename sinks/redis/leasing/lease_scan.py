"""Finds the brokers that hold a lease, several times a second, however many keys the server has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any, Final, NamedTuple

import redis

from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.scripts import vouch_script
from sinks.redis.server.connections import translate_errors
from sinks.redis.server.script import run_for_each
from sinks.redis.server.survey import history_of
from trimtab.wire.keys import clock_key, lease_key, open_key, sessions_key

_PAGE: Final = 2000
"""Session notes that a call reads in search of unknown brokers, those of many clusters in turn: a
millisecond of the server's time, and up to ten of the job's. More: the notes of a hundred clusters
of a hundred brokers cost it a twelfth of a core. Fewer: a new broker is found later."""
_LEASES: Final = 2500
"""Leases that a call asks for; of more, each is asked for in turn. More: ten thousand cost the job
20 ms, a twelfth of a core at four calls a second. Fewer: a lost lease of a large fleet is seen
later, at four calls a second and ten thousand brokers after one second at most."""


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
        self._turn = 0

    def owners(self, cluster: str) -> Owners:
        """Brokers that a record names; reads all records."""
        read = self._store.readable_records(cluster)
        records = read.records.values()
        named = {broker for record in records for broker in (record.owner, record.destination)}
        return Owners({broker for broker in named if broker is not None}, read.unreadable)

    def vouch(self, clusters: Iterable[str], server_ms: int) -> None:
        """Confirm in Redis, for each cluster, that the server's clock agrees with the driver's."""
        calls = [([clock_key(cluster)], [str(server_ms)]) for cluster in clusters]
        run_for_each(self._client, vouch_script(), calls)

    def changed(self, known: Mapping[str, Set[str]], generation: int) -> set[str]:
        """The clusters of ``known`` of which `alive` may say something new: those that are not open
        to ``generation``, and those in which not exactly the known brokers hold a lease. Of large
        fleets each call asks for a part of the brokers, and reads a part of the session notes.

        One round trip for all clusters, at a fifth of what `alive` costs a broker.
        """
        self._turn += 1
        part, searched = self._part(known), self._searched(known)
        # One connection: the history and the leases come from one server.
        with translate_errors(self._client), self._client.pipeline(transaction=False) as asked:
            asked.info("replication")
            for cluster in known:
                asked.hmget(open_key(cluster), "generation", "replid")
                # With the first one, as Redis refuses a call without a key.
                leases = (lease_key(cluster, broker) for broker in part[cluster])
                asked.exists(open_key(cluster), *leases)
            for cluster in searched:
                asked.hscan(sessions_key(cluster), self._cursors.get(cluster, 0), count=_PAGE)
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            answers: Any = asked.execute(raise_on_error=False)
        info, *each = answers
        if isinstance(info, Exception):
            # As below: `alive` meets it too, and raises it.
            return set(known)
        expected = [str(generation).encode(), history_of(info)]
        held, noted = each[: 2 * len(known)], each[2 * len(known) :]
        changed = {
            cluster
            for cluster, opened, exist in zip(known, held[::2], held[1::2], strict=True)
            if opened != expected or exist != 1 + len(part[cluster])
        }
        changed |= {
            cluster
            for cluster, page in zip(searched, noted, strict=True)
            if self._finds_others(cluster, known[cluster], page)
        }
        return changed

    def _part(self, known: Mapping[str, Set[str]]) -> dict[str, list[str]]:
        """The brokers of each cluster whose leases this call asks for."""
        parts = -(-sum(map(len, known.values())) // _LEASES) or 1
        return {
            cluster: [*islice(brokers, self._turn % parts, None, parts)]
            for cluster, brokers in known.items()
        }

    def _searched(self, known: Mapping[str, Set[str]]) -> list[str]:
        """The clusters of which this call reads a page of session notes."""
        turns = min(-(-sum(map(len, known.values())) // _PAGE), len(known)) or 1
        return [*islice(known, self._turn % turns, None, turns)]

    def _finds_others(self, cluster: str, known: Set[str], noted: Any) -> bool:
        """Whether another broker holds a lease, of those noted on this page, the answer ``noted``;
        the next call reads the next page if none does."""
        if isinstance(noted, Exception):
            return True
        cursor, names = noted
        others = {name.decode(errors="replace") for name in names}.difference(known)
        if any(left >= 0 for left in self._left(cluster, sorted(others))):
            # `alive` is to read this page.
            return True
        self._cursors[cluster] = cursor
        return False

    def alive(self, cluster: str, generation: int, known: Iterable[str]) -> dict[str, float] | None:
        """The brokers of ``known`` that hold a lease, and others as they are found, with the
        seconds that each lease has left.

        None while the cluster is not open to ``generation`` on the present history of the data: its
        leases then mean nothing. Others are found by the note of each session, at once where there
        are a few thousand.
        """
        names = sorted(known)
        # One connection: the history and the leases come from one server.
        with translate_errors(self._client), self._client.pipeline(transaction=False) as asked:
            asked.info("replication")
            asked.hmget(open_key(cluster), "generation", "replid")
            cursor = self._cursors.get(cluster, 0)
            asked.hscan(sessions_key(cluster), cursor, count=_PAGE)
            for name in names:
                asked.pttl(lease_key(cluster, name))
            answers: list[Any] = asked.execute()
        info, opened, (self._cursors[cluster], noted), *held = answers
        if opened != [str(generation).encode(), history_of(info)]:
            return None
        others = sorted({name.decode(errors="replace") for name in noted}.difference(names))
        held += self._left(cluster, others)
        # Redis answers -2 for a key that does not exist.
        every = zip([*names, *others], held, strict=True)
        return {name: ms / 1000 for name, ms in every if ms >= 0}

    def _left(self, cluster: str, brokers: Sequence[str]) -> list[int]:
        """Milliseconds left of each broker's lease; negative without one."""
        if not brokers:
            return []
        with translate_errors(self._client), self._client.pipeline(transaction=False) as asked:
            for broker in brokers:
                asked.pttl(lease_key(cluster, broker))
            left: list[int] = asked.execute()
        return left
