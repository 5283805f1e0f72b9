"""A Redis for simulations: records, leases and streams in this process's memory.

It answers as the scripts do (`simulation.ownership.rules` judges). It can be restarted, become a
replica or a master, and lose its last changes or all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import count
from typing import Final, NamedTuple

from simulation.ownership.contents import Contents, Data, Opening
from simulation.ownership.rules import FREE, Judgement, Standing, judge
from sinks.errors import Closed, Fenced, GenerationSpent, Isolated, SinkError, StoreUnavailable
from sinks.redis.cluster_gate import Closure
from sinks.redis.leases import NO_SESSION, Lease, Renewal
from sinks.redis.ownership_store import BatchOutcome
from trimtab.ownership import (
    CLOCK_MARGIN_MS,
    LONGEST_LEASE_MS,
    REPLICA_LAG_S,
    REPLICA_WAIT_MS,
    Event,
    State,
)
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change, Record, Refused, Transition, TransitionOutcome


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


class MemoryServer:
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

    # Events of the process

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
        """Do FLUSHALL: the process keeps running, and keeps its history."""
        self.data = Data()

    def delete_records(self, cluster: str) -> None:
        """Do DEL of the records, which the server evicts or an operator deletes."""
        self.data.begin()
        for bundle in list(self.of(cluster).records):
            self._put(cluster, "records", bundle, None)
        self._put(cluster, "marks", "", None)

    def delete_lease(self, cluster: str, broker: str) -> None:
        """Do DEL of a broker's lease."""
        self.data.begin()
        self._put(cluster, "leases", broker, None)

    def delete_commands(self, cluster: str, broker: str) -> None:
        """Do DEL of the stream of a broker's commands."""
        self.data.begin()
        self._put(cluster, "commands", broker, ())

    # Reads

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
        """Like `ClusterGate.assertions`."""
        self.answers()
        said = self.of(cluster).assertions
        return {broker: told for (on, broker), told in said.items() if on == history}

    def answers(self) -> None:
        """Raise if the server does not answer; a replica also answers requests that only read."""
        if self.is_down:
            raise StoreUnavailable("it is not running")

    # Leases

    def renew(  # noqa: C901, PLR0913 - the script's cases, in its order
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        assertion: Assertion | None = None,
        asked_for_ms: int = LONGEST_LEASE_MS,
    ) -> Lease:
        """Like `Leases.renew` where the script is known."""
        here, now = self._changing(cluster), self.now_ms()

        def answer(renewal: Renewal, detail: str, ms: int = 0) -> Lease:
            left = REPLICA_WAIT_MS if here.opening.replicated else 0
            return Lease(renewal, detail, ms, now, self.history, left)

        before, until = here.leases.get(broker, (0, 0))
        noted, _ = here.sessions.get(broker, (session, 0))
        if broker not in here.leases and noted != session and self._left(here, broker):
            before, until = noted, now + self._left(here, broker)
        said = str(before) if until > now else ""
        waits, over, remembered = here.successors.get(broker, (0, 0, 0))
        waits = waits if remembered > now else 0
        if ttl_ms <= 0:
            if session in (before if said else noted, noted):
                self._put(cluster, "sessions", broker, None)
            if said == str(session):
                soon = now + (1000 if waits else 1)
                self._put(cluster, "leases", broker, (0, until if ttl_ms < 0 else soon))
            return answer(Renewal.RELEASED, said)
        for later in (before if said else 0, waits):
            if later > session:
                return answer(Renewal.SUPERSEDED, str(later))
        self._require_replicas(cluster)
        if said not in ("", NO_SESSION, str(session)):
            over = min(over if waits == session else until, now + LONGEST_LEASE_MS)
            left = over - now
            if left > 0:
                self._waits(cluster, broker, session, over)
                self._put(cluster, "leases", broker, (before, now + left + _TAKE_OVER_MS))
                return answer(Renewal.WAITING, said, left)
        last = noted if not said else int(said) or session
        if last != session and self._must_wait(here, asked_for_ms):
            left = LONGEST_LEASE_MS - asked_for_ms
            self._waits(cluster, broker, session, now)
            if said:
                self._put(cluster, "leases", broker, (before, now + left + _TAKE_OVER_MS))
            return answer(Renewal.WAITING, "", left)
        renewal = self._told(cluster, broker, assertion)
        if renewal is Renewal.ASSERT:
            return answer(renewal, self.history)
        granted = min(ttl_ms, LONGEST_LEASE_MS, here.opening.lease_ms)
        self._put(cluster, "leases", broker, (session, now + granted))
        self._put(cluster, "sessions", broker, (session, now + granted))
        return answer(renewal, said, granted)

    def _left(self, here: Contents, broker: str) -> int:
        """The rest of the lease that was noted last; 0 where it is over."""
        left = here.sessions.get(broker, (0, 0))[1] - self.now_ms()
        return left if 0 < left <= LONGEST_LEASE_MS else 0

    def _waits(self, cluster: str, broker: str, session: int, over: int) -> None:
        kept = session, over, self.now_ms() + 2 * LONGEST_LEASE_MS
        self._put(cluster, "successors", broker, kept)

    def _must_wait(self, here: Contents, asked_for_ms: int) -> bool:
        """Whether an older process may still serve, as far as this clock can tell."""
        noted = here.clock.get("", -1_000_000)
        vouched = 0 <= self.now_ms() - noted <= 1000
        return not vouched and asked_for_ms < LONGEST_LEASE_MS

    def vouch(self, cluster: str, server_ms: int) -> None:
        """Like `RollCall.vouch`."""
        self._changing(cluster)
        if abs(server_ms - self.now_ms()) <= CLOCK_MARGIN_MS:
            self._put(cluster, "clock", "", self.now_ms())

    def _told(self, cluster: str, broker: str, assertion: Assertion | None) -> Renewal:
        """Whether a lease may be held; a closed store first asks for what the broker saw."""
        if self.is_open(cluster):
            return Renewal.HELD
        if assertion is not None:
            self._put(cluster, "assertions", (self.history, broker), assertion)
        elif (self.history, broker) not in self.of(cluster).assertions:
            return Renewal.ASSERT
        return Renewal.ASSERTED

    def look(self, cluster: str, broker: str) -> tuple[int, str, int, bool]:
        """What `Leases` reads if no script is known: the time, the history, the session that
        holds the lease (-1: none), and whether the broker has reported what it saw."""
        here = self._changing(cluster)
        self._require_replicas(cluster)
        before, until = here.leases.get(broker, (0, 0))
        held = before if until > self.now_ms() else -1
        return self.now_ms(), self.history, held, (self.history, broker) in here.assertions

    def put_lease(
        self, cluster: str, broker: str, session: int, ttl_ms: int, assertion: Assertion | None
    ) -> int:
        """Write as `Leases` then does: SET, without looking at the old value."""
        self._changing(cluster)
        if assertion is not None:
            self._put(cluster, "assertions", (self.history, broker), assertion)
        granted = min(ttl_ms, LONGEST_LEASE_MS)
        self._put(cluster, "leases", broker, (session, self.now_ms() + granted))
        return granted

    # Transitions

    def apply_batch(  # noqa: PLR0913 - a batch, whose it is, and at what time
        self,
        cluster: str,
        transitions: Sequence[Transition],
        *,
        generation: int,
        query_id: str,
        batch: int,
        server_ms: int | None = None,
    ) -> BatchOutcome:
        """Like `OwnershipStore.apply_batch`."""
        here = self._writable(cluster)
        if generation > here.opening.generation:
            raise Closed(f"it is open to generation {here.opening.generation}")
        self._require_not_fenced(here, generation)
        last, outcomes = here.applied.get(query_id, (-1, ()))
        same = [(o.id, o.bundle) for o in outcomes] == [(t.id, t.bundle) for t in transitions]
        if last == batch and same:
            return BatchOutcome(outcomes, repeated=True)
        if last >= batch:
            return BatchOutcome(tuple(map(_older, transitions)))
        outcomes = tuple(self._apply(cluster, each, server_ms) for each in transitions)
        self._put(cluster, "applied", query_id, (batch, outcomes))
        return BatchOutcome(outcomes)

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        """Like `OwnershipStore.apply`."""
        return self.apply_all(cluster, [transition], server_ms)[0]

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition], server_ms: int | None = None
    ) -> tuple[TransitionOutcome, ...]:
        """Like `OwnershipStore.apply_all`."""
        if not self.knows_scripts:
            self._master(cluster)
            raise Closed("no job of this version has loaded the scripts")
        self._writable(cluster)
        return tuple(self._apply(cluster, each, server_ms) for each in transitions)

    # The gate

    def open(
        self,
        cluster: str,
        generation: int,
        known: str,
        rebuilt_on: str = "",
        closed_for_ms: int = 0,
    ) -> Closure | None:
        """Like `ClusterGate.open`; ``known``: the history this generation was opened on, or ""."""
        here, now = self._changing(cluster), self.now_ms()
        opening, is_open = here.opening, self.is_open(cluster)
        self._require_not_fenced(here, generation)
        lost = not is_open or opening.generation != generation
        elsewhere = opening.generation == generation and opening.opened_on and not is_open
        if (known and (known != self.history or lost)) or elsewhere:
            if opening.opened_on:
                self._opening(cluster, opening._replace(opened_on=""))
            raise GenerationSpent(f"generation {generation} was opened on data that is gone")
        self.knows_scripts = True
        is_of_here = opening.opened_on == self.history
        noted = here.noted_replicas(self.history)
        least = max(_majority(len(self.replication().replicas)), _majority(noted.online))
        if is_of_here or opening.rebuild_on == self.history:
            least = max(least, opening.replicas)
        replicated = opening.replicated or opening.replicas > 0 or noted.ever > 0
        if not is_open:
            since = opening.since if opening.rebuild_on == self.history else 0
            since = min(since, now + REPLICA_WAIT_MS)
            if not since:
                left_behind = closed_for_ms > 0 and (here.is_empty or replicated)
                since = now + (REPLICA_WAIT_MS if left_behind else 0)
            remaining = max(0, since + closed_for_ms - now)
            if rebuilt_on != self.history or remaining > 0 or not here.marks:
                self._put(cluster, "marks", "", True)
                self._opening(
                    cluster,
                    opening._replace(
                        generation=generation,
                        opened_on="",
                        rebuild_on=self.history,
                        since=since,
                        replicas=least,
                        replicated=replicated or least > 0,
                    ),
                )
                return Closure(self.history, remaining, since)
        self._opening(
            cluster,
            Opening(generation, self.history, replicas=least, replicated=replicated or least > 0),
        )
        return None

    def restore(
        self,
        cluster: str,
        generation: int,
        records: Mapping[str, Record],
        unjournalled: Set[str],
    ) -> int:
        """Like `ClusterGate.restore`."""
        here = self._rebuilding(cluster, generation)
        newer = {
            bundle: record
            for bundle, record in records.items()
            if bundle not in here.records or record.epoch > here.records[bundle].epoch
        }
        for bundle, record in newer.items():
            change = Change(cluster=cluster, bundle=bundle, event=Event.RESTORE, record=record)
            self._write(change, journalled=bundle in unjournalled)
        return len(newer)

    def note_owned(self, cluster: str, generation: int, bundles: Iterable[str]) -> None:
        """Like `ClusterGate.note_owned`."""
        here = self._rebuilding(cluster, generation)
        owned: dict[str, set[str]] = {}
        for bundle in bundles:
            record = here.records.get(bundle)
            if record is not None and record.owner is not None:
                owned.setdefault(record.owner, set()).add(bundle)
        for broker, theirs in owned.items():
            known = here.owned.get(broker, frozenset())
            self._put(cluster, "owned", broker, known | theirs)

    # Streams

    def waiting(self, cluster: str, broker: str) -> tuple[tuple[str, Command], ...]:
        """The commands that a broker has not acknowledged."""
        self._master(cluster)
        return self.of(cluster).commands.get(broker, ())

    def acknowledge(self, cluster: str, broker: str, ids: Iterable[str]) -> None:
        """Like `CommandStream.acknowledge`."""
        here, done = self._changing(cluster), set(ids)
        left = tuple(each for each in here.commands.get(broker, ()) if each[0] not in done)
        self._put(cluster, "commands", broker, left)

    def unrelayed(self, cluster: str) -> dict[str, Record]:
        """Like `ClusterGate.unrelayed`."""
        self.answers()
        # By entry, ascending: a bundle's last one counts.
        return {change.bundle: change.record for change in self.of(cluster).journal.values()}

    def take_journal(self, cluster: str, most: int) -> list[Change]:
        """Take the journal's oldest entries, as the relay carries them to Kafka."""
        here = self._changing(cluster)
        entries = [entry for entry, _ in zip(here.journal, range(most), strict=False)]
        changes = [here.journal[entry] for entry in entries]
        for entry in entries:
            self._put(cluster, "journal", entry, None)
        return changes

    # Parts

    def _put(self, cluster: str, table: str, key: object, value: object) -> None:
        self.data.put(cluster, table, key, value)

    def _opening(self, cluster: str, opening: Opening) -> None:
        self._put(cluster, "openings", "", opening)

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

    def _rebuilding(self, cluster: str, generation: int) -> Contents:
        here = self._changing(cluster)
        self._require_not_fenced(here, generation)
        closed = here.opening.generation == generation and not here.opening.opened_on
        if not closed or here.opening.rebuild_on != self.history:
            raise SinkError("it is not being rebuilt")
        return here

    def _require_not_fenced(self, here: Contents, generation: int) -> None:
        if here.opening.generation > generation:
            raise Fenced(f"it is open to {here.opening.generation}, ours is {generation}")

    def _require_replicas(self, cluster: str) -> None:
        here = self.of(cluster)
        offset, replicas = self.replication()
        noted = here.noted_replicas(self.history)
        most = max(noted.online, len(replicas))
        least = max(here.opening.replicas, _majority(most))
        since = noted.alone or 0
        near = sum(0 <= lag < REPLICA_LAG_S + 1 and at >= since for at, lag in replicas)
        alone = (since or offset) if near < least else None
        now = noted._replace(online=most, alone=alone)
        if noted != now:
            self._put(cluster, "replicas", "", now)
        if near < least:
            raise Isolated(f"it hears {near} of {least} replicas")

    def _apply(self, cluster: str, asked: Transition, server_ms: int | None) -> TransitionOutcome:
        here = self.of(cluster)
        old = here.records.get(asked.bundle, FREE)
        if old.by == asked.id:
            fell = old.state is State.QUARANTINED and asked.event is not Event.QUARANTINE
            return _outcome(asked, Refused.QUARANTINED if fell else None, here.records)
        standing = Standing(
            here.records,
            here.opening.generation,
            self.now_ms(),
            lambda broker: self.alive(cluster, broker) or self._left(here, broker) > 0,
            here.placed,
            lambda request: self._speaks_for(cluster, request),
            server_ms is not None and abs(server_ms - self.now_ms()) <= CLOCK_MARGIN_MS,
            lambda broker: here.leases.get(broker, (0, 0))[0] != 0,
            here.tallies,
        )
        judged = judge(asked, standing)
        for bundle, record in judged.written.items():
            self._write(Change(cluster=cluster, bundle=bundle, event=judged.event, record=record))
        if judged.refused is None:
            self._send(cluster, asked, judged)
        return _outcome(asked, judged.refused, here.records)

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

    def _speaks_for(self, cluster: str, asked: Transition) -> bool:
        session, until = self.of(cluster).leases.get(asked.actor or "", (0, 0))
        return until > self.now_ms() and session == asked.session

    def _send(self, cluster: str, asked: Transition, judged: Judgement) -> None:
        here, after = self.of(cluster), judged.written[asked.bundle]
        deadline = self.now_ms() + asked.within_ms if asked.within_ms else 0
        for command in asked.commands:
            if not asked.candidates or command.broker == after.owner:
                stamped = command.stamped(after.epoch, self.now_ms(), deadline)
                entry = f"{next(self._numbers)}-0", stamped
                waiting = (*here.commands.get(command.broker, ()), entry)
                self._put(cluster, "commands", command.broker, waiting[-_LONGEST_STREAM:])
        if asked.candidates:
            owner = after.owner or ""
            self._put(cluster, "placed", owner, here.placed.get(owner, 0) + 1)
            for tally in asked.tallies.get(owner, {}):
                self._put(cluster, "tallies", tally, here.tallies.get(tally, 0) + 1)


_TAKE_OVER_MS: Final = 3_000
"""The same as in lease.lua."""
_LONGEST_STREAM: Final = 10_000


def _majority(replicas: int) -> int:
    """How many replicas form a majority of the servers, together with the master."""
    return (replicas + 1) // 2


def _outcome(
    asked: Transition, refused: Refused | None, records: Mapping[str, Record]
) -> TransitionOutcome:
    named = (*asked.children, *(() if asked.neighbour is None else asked.neighbour[:1]))
    return TransitionOutcome(
        id=asked.id,
        bundle=asked.bundle,
        accepted=refused is None,
        reason=refused,
        record=records.get(asked.bundle),
        others={bundle: records[bundle] for bundle in named if bundle in records},
    )


def _older(asked: Transition) -> TransitionOutcome:
    return TransitionOutcome(
        id=asked.id, bundle=asked.bundle, accepted=False, reason=Refused.OLDER_BATCH
    )
