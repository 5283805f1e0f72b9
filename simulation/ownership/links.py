"""What a broker's process and the job's ask of the store, through the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from simulation.ownership.network import Wire
from sinks.errors import StoreUnavailable
from sinks.redis.cluster_gate import Closure
from sinks.redis.leasing.lease import Lease, Renewal
from sinks.redis.ownership_store import BatchOutcome
from trimtab.ownership import LONGEST_LEASE_MS
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command
from trimtab.wire.ownership import Record, Transition, TransitionOutcome


@dataclass(slots=True)
class Link(Wire):
    """An agent's connection: its store, its leases and its commands."""

    cluster: str = ""
    broker: str = ""
    _in_hand: set[str] = field(default_factory=set)

    # Like `OwnershipStore`

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        server = self.server
        return self._through(lambda: server.apply_all(cluster, [transition], server_ms)[0])

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition]
    ) -> tuple[TransitionOutcome, ...]:
        server = self.server
        return self._through(lambda: server.apply_all(cluster, transitions))

    def record(self, cluster: str, bundle: str) -> Record | None:
        server = self.server
        return self._through(lambda: server.record(cluster, bundle))

    def records_of(
        self, cluster: str, broker: str, besides: Iterable[str] = ()
    ) -> dict[str, Record]:
        server = self.server
        owned = self._through(lambda: server.owned(cluster, broker))
        return self._pages(cluster, owned.union(besides))

    # Like `Leases`

    def renew(  # noqa: PLR0913 - as `Leases`
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        assertion: Assertion | None = None,
        asked_for_ms: int = LONGEST_LEASE_MS,
    ) -> Lease:
        server = self.server
        if not server.knows_scripts:
            return self._renew_unscripted(session, ttl_ms, assertion)
        return self._through(
            lambda: server.renew(cluster, broker, session, ttl_ms, assertion, asked_for_ms)
        )

    def _renew_unscripted(self, session: int, ttl_ms: int, said: Assertion | None) -> Lease:
        """Renew as `Leases` does on a server to which no job has come yet."""
        server, cluster, broker = self.server, self.cluster, self.broker
        seen = self._through(lambda: server.look(cluster, broker))
        now, history, before = seen.now_ms, seen.history, seen.session
        told = "" if before < 0 else str(before)
        if before > session:
            return Lease(Renewal.SUPERSEDED, told, 0, now, history)
        if 0 < before < session:
            return Lease(Renewal.WAITING, told, LONGEST_LEASE_MS, now, history)
        if said is None and not seen.has_said:
            return Lease(Renewal.ASSERT, history, 0, now, history)
        lease = session, max(1, ttl_ms)
        granted = self._through(lambda: server.put_lease(cluster, broker, lease, said, seen))
        return Lease(Renewal.ASSERTED, told, granted, now, history)

    def holds(self, cluster: str, broker: str) -> bool:
        server = self.server
        return self._through(lambda: server.holds(cluster, broker))

    # Like `CommandStream`

    def read(self, block_ms: int) -> list[tuple[str, Command]]:  # noqa: ARG002 - a simulated read never waits
        """Commands that are neither acknowledged nor held by this process."""
        # After a lost answer no process holds the commands: the real one reads again.
        if self.cut or self.rng.random() < self.odds.lost:
            raise StoreUnavailable("no way to the server")
        waiting = self._answered(lambda: self.server.waiting(self.cluster, self.broker))
        fresh = [(entry, command) for entry, command in waiting if entry not in self._in_hand]
        self._in_hand.update(entry for entry, _ in fresh)
        return fresh

    def acknowledge(self, ids: Iterable[str]) -> None:
        done, server = list(ids), self.server
        self._through(lambda: server.acknowledge(self.cluster, self.broker, done))
        self._in_hand.difference_update(done)

    def forget(self) -> None:
        """Start reading as a new process: unacknowledged commands come again."""
        self._in_hand.clear()


@dataclass(slots=True)
class JobLink(Wire):
    """The job's connection: batches, the gate and what it reads."""

    def time(self) -> float:
        server = self.server
        return self._through(server.server_time)

    def vouch(self, cluster: str, server_ms: int) -> None:
        server = self.server
        self._through(lambda: server.vouch(cluster, server_ms))

    def living(self, cluster: str) -> set[str]:
        server = self.server
        return self._through(lambda: server.living(cluster))

    def bundles(self, cluster: str) -> list[str]:
        server = self.server
        return self._through(lambda: server.bundles(cluster))

    def records(self, cluster: str, bundles: Iterable[str]) -> dict[str, Record]:
        return self._pages(cluster, bundles)

    def asserted(self, cluster: str, history: str) -> dict[str, Assertion]:
        server = self.server
        return self._through(lambda: server.asserted(cluster, history))

    def unrelayed(self, cluster: str) -> dict[str, Record]:
        server = self.server
        return self._through(lambda: server.unrelayed(cluster))

    def open(
        self, cluster: str, generation: int, known: str, rebuilt_on: str, closed_for_ms: int
    ) -> tuple[Closure | None, str]:
        """Like `ClusterGate.open`; also returns the history of the server that answered."""
        server = self.server
        return self._through(
            lambda: (
                server.open(cluster, generation, known, rebuilt_on, closed_for_ms),
                server.history,
            )
        )

    def restore(
        self, cluster: str, generation: int, records: Mapping[str, Record], untold: Set[str]
    ) -> int:
        server = self.server
        return self._through(lambda: server.restore(cluster, generation, records, untold))

    def note_owned(self, cluster: str, generation: int, bundles: Sequence[str]) -> None:
        server = self.server
        self._through(lambda: server.note_owned(cluster, generation, bundles))

    def apply_batch(  # noqa: PLR0913 - a batch, whose it is, and at what time
        self,
        cluster: str,
        transitions: Sequence[Transition],
        generation: int,
        query: str,
        batch: int,
        server_ms: int | None,
    ) -> BatchOutcome:
        server = self.server
        return self._through(
            lambda: server.apply_batch(
                cluster,
                transitions,
                generation=generation,
                query_id=query,
                batch=batch,
                server_ms=server_ms,
            )
        )
