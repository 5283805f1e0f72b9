"""The process of a simulated Redis server: its data, its history, and what only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final, NamedTuple

from simulation.ownership.redis.contents import Asked, Contents, Data
from sinks.errors import Closed, Fenced, Isolated, StoreUnavailable
from trimtab.ownership import (
    LONGEST_LEASE_MS,
    REPLICA_LAG_S,
    REPLICA_WAIT_MS,
)
from trimtab.wire.assertion import Assertion
from trimtab.wire.ownership import Change, Record

_ASK_AGAIN_MS: Final = 250
"""Equal to the value in history.lua."""


class Acknowledged(NamedTuple):
    """The acknowledgement of a connected replica."""

    offset: int
    """The replica has the data up to here."""
    lag_s: float
    """Time since then, by its master's clock."""


class Replication(NamedTuple):
    """The figures of INFO replication."""

    offset: int = 0
    """The offset of the last write."""
    replicas: Sequence[Acknowledged] = ()


class MemoryProcess:
    """One Redis process; ``now_ms`` is its own clock."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        accepted: Callable[[str, Change], object] = lambda *_: None,
        replication: Callable[[], Replication] = Replication,
        numbers: count[int] | None = None,
    ) -> None:
        """``accepted`` is called with each record as it is written; ``numbers`` names histories and
        entries, and servers that may take each other's place share it."""
        self.now_ms = now_ms
        self._accepted = accepted
        self.replication = replication
        self._numbers = count() if numbers is None else numbers
        self.data = Data()
        self.is_master = True
        self.is_down = False
        self.knows_scripts = True
        self.history = ""
        """A master's ``master_replid``."""
        self._begin_history()

    def _begin_history(self) -> None:
        self.history = f"{next(self._numbers):040x}"

    def restart(self, lost: int | None = 0) -> None:
        """Restart as a master, on another history; ``lost``: how many of the last changes are gone,
        None for all."""
        self.data = Data() if lost is None else self.data.without(lost)
        self.is_master, self.is_down, self.knows_scripts = True, False, False
        self._begin_history()

    def promote(self, data: Data) -> None:
        """Become a master with a replica's data."""
        self.data = data
        self.restart()

    def demote(self) -> None:
        """Become a replica: it gets no requests from now on."""
        self.is_master, self.is_down = False, False

    def flush(self) -> None:
        """Delete all keys (FLUSHALL); the process keeps running, and keeps its history."""
        self.data = Data()

    def delete_records(self, cluster: str) -> None:
        """Delete the key of the records, as an eviction or an operator does."""
        self.data.begin()
        for bundle in list(self.of(cluster).records):
            self._put(cluster, "records", bundle, None)
        self._put(cluster, "marks", "", None)

    def delete_lease(self, cluster: str, broker: str) -> None:
        """Delete the key of a broker's lease."""
        self.data.begin()
        self._put(cluster, "leases", broker, None)

    def delete_commands(self, cluster: str, broker: str) -> None:
        """Do DEL of the stream of a broker's commands."""
        self.data.begin()
        self._put(cluster, "commands", broker, ())

    def of(self, cluster: str) -> Contents:
        return self.data.of(cluster)

    def is_open(self, cluster: str) -> bool:
        here = self.of(cluster)
        return self.is_master and here.opening.opened_on == self.history and bool(here.marks)

    def alive(self, cluster: str, broker: str) -> bool:
        """Whether a broker holds a lease."""
        lease = self.of(cluster).leases.get(broker)
        return lease is not None and lease[1] > self.now_ms()

    def living(self, cluster: str) -> set[str]:
        """Like `Leases.alive`."""
        self.answers()
        return {broker for broker in self.of(cluster).leases if self.alive(cluster, broker)}

    def holds(self, cluster: str, broker: str) -> bool:
        """Like `Leases.holds`."""
        self.answers()
        return self.alive(cluster, broker)

    def server_time(self) -> float:
        """Like `Leases.server_time`."""
        self.answers()
        return self.now_ms() / 1000

    def record(self, cluster: str, bundle: str) -> Record | None:
        """Like `OwnershipStore.record`."""
        self.answers()
        return self.of(cluster).records.get(bundle)

    def page(self, cluster: str, bundles: Iterable[str]) -> dict[str, Record]:
        """Like one HMGET."""
        self.answers()
        records = self.of(cluster).records
        return {bundle: records[bundle] for bundle in bundles if bundle in records}

    def bundles(self, cluster: str) -> list[str]:
        """Like HKEYS."""
        self.answers()
        return list(self.of(cluster).records)

    def owned(self, cluster: str, broker: str) -> frozenset[str]:
        """Like SMEMBERS of the broker's bundles."""
        self.answers()
        return self.of(cluster).owned.get(broker, frozenset())

    def asserted(self, cluster: str, history: str) -> dict[str, Assertion]:
        """Like `RebuildSources.assertions`."""
        self.answers()
        said = self.of(cluster).assertions
        return {broker: told for (on, broker), told in said.items() if on == history}

    def answers(self) -> None:
        """Raise if the server does not answer; a replica also answers requests that only read."""
        if self.is_down:
            raise StoreUnavailable("it is not running")

    def _put(self, cluster: str, table: str, key: object, value: object) -> None:
        self.data.put(cluster, table, key, value)

    def _master(self, cluster: str) -> Contents:
        self.answers()
        if not self.is_master:
            raise StoreUnavailable("it is a replica")
        return self.of(cluster)

    def _changing(self, cluster: str) -> Contents:
        here = self._master(cluster)
        self.data.begin()
        return here

    def _writable(self, cluster: str) -> Contents:
        here = self._changing(cluster)
        if not self.is_open(cluster):
            raise Closed("it was not opened on this history of its data, or its records are gone")
        self._require_replicas(cluster)
        return here

    def _require_not_fenced(self, here: Contents, generation: int) -> None:
        if here.opening.generation > generation:
            raise Fenced(f"it is open to {here.opening.generation}, ours is {generation}")

    def _require_replicas(self, cluster: str) -> None:
        here = self.of(cluster)
        offset, replicas = self.replication()
        noted = here.noted_replicas(self.history)
        most = max(noted.online, len(replicas))
        least = max(here.opening.replicas, majority_of(most))
        since = noted.alone or 0
        near = near_of(replicas, since)
        if near >= least > 0 and not self._are_in_touch(cluster, least):
            near = 0
        alone = (since or offset + 1) if near < least else None
        noted = here.noted_replicas(self.history)
        now = noted._replace(online=most, alone=alone)
        if noted != now:
            self._put(cluster, "replicas", "", now)
        if near < least:
            raise Isolated(f"it hears {near} of {least} replicas")

    def _are_in_touch(self, cluster: str, least: int) -> bool:
        """Whether so many replicas have acknowledged what was written lately; notes what they have
        to acknowledge next."""
        noted, now = self.of(cluster).noted_replicas(self.history), self.now_ms()
        offset, replicas = self.replication()
        at_ms, heard_ms, reached = now, now, True
        if noted.asked is not None:
            at_ms, asked, heard_ms = noted.asked
            reached = near_of(replicas, asked) >= least
            heard_ms = at_ms if reached else heard_ms
        in_touch = 0 <= now - heard_ms <= REPLICA_WAIT_MS
        due = not in_touch or now - at_ms >= _ASK_AGAIN_MS
        if noted.asked is None or (reached and due):
            again = noted._replace(asked=Asked(now, offset + 1, heard_ms))
            self._put(cluster, "replicas", "", again)
        return in_touch

    def _left(self, here: Contents, broker: str) -> int:
        """The rest of the lease that was noted last; 0 where it is over."""
        left = here.sessions.get(broker, (0, 0))[1] - self.now_ms()
        return left if 0 < left <= LONGEST_LEASE_MS else 0

    def _write(self, change: Change, *, journalled: bool = True) -> None:
        cluster, bundle, record = change.cluster, change.bundle, change.record
        here = self.of(cluster)
        before = here.records.get(bundle)
        was = None if before is None else before.owner
        self._put(cluster, "records", bundle, record)
        if was != record.owner:
            if was is not None:
                self._put(cluster, "owned", was, here.owned.get(was, frozenset()) - {bundle})
            if record.owner is not None:
                known = here.owned.get(record.owner, frozenset())
                self._put(cluster, "owned", record.owner, known | {bundle})
        if journalled:
            self._put(cluster, "journal", next(self._numbers), change)
        self._accepted(cluster, change)


def near_of(replicas: Iterable[Acknowledged], since: int = 0) -> int:
    """How many replicas were heard lately, and have the data up to ``since``."""
    return sum(0 <= lag < REPLICA_LAG_S + 1 and at >= since for at, lag in replicas)


def majority_of(replicas: int) -> int:
    """How many replicas form a majority of the servers, together with the master."""
    return (replicas + 1) // 2
