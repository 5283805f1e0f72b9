"""A Redis for simulations: records, leases and streams of one cluster in this process's memory.

It answers as the scripts do (`simulation.ownership.rules` judges), and it can lose its last
changes, or all, as a server that is restarted may.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from simulation.ownership.rules import FREE, Judgement, Standing, judge
from sinks.errors import Closed, Fenced, GenerationSpent, SinkError
from sinks.gate import LONGEST_LEASE_MS, Closure
from sinks.leases import Lease, Renewal
from sinks.ownership_store import BatchOutcome
from trimtab.ownership import Event, State
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change, Outcome, Record, Refused, Transition

_REMEMBERED: Final = 100
"""Changes that a restart may lose."""


@dataclass(slots=True)
class Contents:
    """What the server holds."""

    generation: int = 0
    open_run: str = ""
    rebuild: tuple[str, int] = ("", 0)
    """The run that is being rebuilt, and since when."""
    records: dict[str, Record] = field(default_factory=dict)
    journal: list[Change] = field(default_factory=list)
    commands: dict[str, tuple[tuple[str, Command], ...]] = field(default_factory=dict)
    """Broker to what it has not acknowledged, by entry."""
    leases: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Broker to its session and when it ends."""
    assertions: dict[tuple[str, str], Assertion] = field(default_factory=dict)
    """Run and broker to what was said."""
    placed: Counter[str] = field(default_factory=Counter)
    applied: dict[str, tuple[int, tuple[Outcome, ...]]] = field(default_factory=dict)
    """Query to its last batch."""

    def copy(self) -> Contents:
        return Contents(
            self.generation,
            self.open_run,
            self.rebuild,
            self.records.copy(),
            self.journal.copy(),
            self.commands.copy(),
            self.leases.copy(),
            self.assertions.copy(),
            self.placed.copy(),
            self.applied.copy(),
        )


class MemoryServer:
    """``now_ms`` is the server's own clock. One cluster: the names of others are not looked at."""

    def __init__(
        self, now_ms: Callable[[], int], accepted: Callable[[Change], object] = lambda _: None
    ) -> None:
        """``accepted`` is told of each change as it is made."""
        self.now_ms = now_ms
        self._accepted = accepted
        self.contents = Contents()
        self._runs = self._entries = 0
        self._before: deque[Contents] = deque(maxlen=_REMEMBERED)

    @property
    def run(self) -> str:
        return f"{self._runs:040x}"

    @property
    def is_open(self) -> bool:
        return self.contents.open_run == self.run

    def restart(self, lost: int | None = 0) -> None:
        """Begin another run; ``lost``: how many of the last changes are gone, None for all data."""
        self._runs += 1
        if lost is None:
            self.contents = Contents()
            self._before.clear()
        elif self._before and lost:
            self.contents = self._before[-min(lost, len(self._before))]
            self._before.clear()

    def alive(self, broker: str) -> bool:
        """Whether a broker holds a lease."""
        return self.contents.leases.get(broker, (0, 0))[1] > self.now_ms()

    def apply_batch(
        self,
        _cluster: str,
        transitions: Sequence[Transition],
        *,
        generation: int,
        query_id: str,
        batch: int,
    ) -> BatchOutcome:
        """As `OwnershipStore.apply_batch`."""
        here = self._writable()
        if generation > here.generation:
            raise Closed(f"it is open to generation {here.generation}")
        if generation < here.generation:
            raise Fenced(f"it is open to generation {here.generation}, ours is {generation}")
        last, outcomes = here.applied.get(query_id, (-1, ()))
        same = [(o.id, o.bundle) for o in outcomes] == [(t.id, t.bundle) for t in transitions]
        if last == batch and same:
            return BatchOutcome(outcomes, repeated=True)
        if last >= batch:
            return BatchOutcome(tuple(map(_older, transitions)))
        outcomes = tuple(map(self._apply, transitions))
        here.applied[query_id] = (batch, outcomes)
        return BatchOutcome(outcomes)

    def apply(self, _cluster: str, transition: Transition) -> Outcome:
        """As `OwnershipStore.apply`."""
        self._writable()
        return self._apply(transition)

    def record(self, _cluster: str, bundle: str) -> Record | None:
        """As `OwnershipStore.record`."""
        return self.contents.records.get(bundle)

    def records(self, _cluster: str) -> dict[str, Record]:
        """As `OwnershipStore.records`."""
        return self.contents.records.copy()

    def renew(self, _cluster: str, broker: str, session: int, ttl_ms: int) -> Lease:
        """As `Leases.renew`."""
        here = self._changing()
        before, until = here.leases.get(broker, (0, 0))
        said = str(before) if until > self.now_ms() else ""
        if said and before > session:
            return Lease(Renewal.SUPERSEDED, said, 0)
        if ttl_ms == 0:
            here.leases.pop(broker, None)
            return Lease(Renewal.RELEASED, said, 0)
        if not self.is_open and (self.run, broker) not in here.assertions:
            return Lease(Renewal.ASSERT, self.run, 0)
        granted = min(ttl_ms, LONGEST_LEASE_MS)
        here.leases[broker] = (session, self.now_ms() + granted)
        return Lease(Renewal.HELD if self.is_open else Renewal.ASSERTED, said, granted)

    def say(self, _cluster: str, broker: str, server_run: str, assertion: Assertion) -> None:
        """As `Leases.say`."""
        self._changing().assertions[server_run, broker] = assertion

    def open(
        self, generation: int, known_run: str, rebuilt_on: str = "", closed_for_ms: int = 0
    ) -> Closure | None:
        """As `Gate.open`; ``known_run`` is the one the caller opened this generation on, or ""."""
        here = self._changing()
        if here.generation > generation:
            raise Fenced(f"it is open to generation {here.generation}, ours is {generation}")
        spent = here.generation == generation and here.open_run not in ("", self.run)
        if spent or known_run not in ("", self.run):
            raise GenerationSpent(f"generation {generation} was opened on a lost run")
        here.generation = generation
        if self.is_open:
            return None
        since = here.rebuild[1] if here.rebuild[0] == self.run else self.now_ms()
        remaining = max(0, since + closed_for_ms - self.now_ms())
        if rebuilt_on != self.run or remaining > 0:
            here.open_run, here.rebuild = "", (self.run, since)
            return Closure(self.run, remaining)
        here.open_run, here.rebuild = self.run, ("", 0)
        return None

    def restore(
        self, generation: int, records: Mapping[str, Record], unjournalled: Set[str]
    ) -> int:
        """As `Gate.restore`."""
        here = self._changing()
        if here.generation != generation:
            raise Fenced(f"it is open to generation {here.generation}, ours is {generation}")
        if here.open_run or here.rebuild[0] != self.run:
            raise SinkError("it is not being rebuilt")
        newer = {
            bundle: record
            for bundle, record in records.items()
            if bundle not in here.records or record.epoch > here.records[bundle].epoch
        }
        here.records |= newer
        here.journal += [
            Change(cluster="", bundle=bundle, event=Event.RESTORE, record=record)
            for bundle, record in newer.items()
            if bundle in unjournalled
        ]
        return len(newer)

    def _changing(self) -> Contents:
        self._before.append(self.contents.copy())
        return self.contents

    def _writable(self) -> Contents:
        if not self.is_open:
            raise Closed("it was not opened on this run")
        return self._changing()

    def _apply(self, asked: Transition) -> Outcome:
        here = self.contents
        old = here.records.get(asked.bundle, FREE)
        if old.by == asked.id:
            fell = old.state is State.QUARANTINED and asked.event is not Event.QUARANTINE
            return _outcome(asked, Refused.QUARANTINED if fell else None, here.records)
        standing = Standing(here.records, here.generation, self.now_ms(), self.alive, here.placed)
        judged = judge(asked, standing)
        here.records |= judged.written
        for bundle, record in judged.written.items():
            change = Change(cluster="", bundle=bundle, event=judged.event, record=record)
            here.journal.append(change)
            self._accepted(change)
        if judged.refused is None:
            self._send(asked, judged)
        return _outcome(asked, judged.refused, here.records)

    def _send(self, asked: Transition, judged: Judgement) -> None:
        here, after = self.contents, judged.written[asked.bundle]
        deadline = self.now_ms() + asked.within_ms if asked.within_ms else 0
        for command in asked.commands:
            if not asked.candidates or command.broker == after.owner:
                self._entries += 1
                stamped = command.stamped(after.epoch, self.now_ms(), deadline)
                waiting = here.commands.get(command.broker, ())
                here.commands[command.broker] = (*waiting, (f"{self._entries}-0", stamped))
        if asked.candidates:
            here.placed[after.owner or ""] += 1


class MemoryCommands:
    """One broker's reading end, as `CommandStream`: what is not acknowledged comes again to the
    next reader, and to this one after its acknowledgement was lost."""

    def __init__(self, server: MemoryServer, broker: str) -> None:
        self._server = server
        self._broker = broker
        self._in_hand: set[str] = set()

    def read(self, block_ms: int) -> list[tuple[str, Command]]:  # noqa: ARG002 - nobody waits
        waiting = self._server.contents.commands.get(self._broker, ())
        fresh = [(entry, command) for entry, command in waiting if entry not in self._in_hand]
        self._in_hand.update(entry for entry, _ in fresh)
        return fresh

    def forget(self) -> None:
        """A new process reads: what is not acknowledged comes again."""
        self._in_hand.clear()

    def acknowledge(self, ids: Iterable[str]) -> None:
        done = set(ids)
        contents = self._server.contents
        waiting = contents.commands.get(self._broker, ())
        contents.commands[self._broker] = tuple(each for each in waiting if each[0] not in done)
        self._in_hand.difference_update(done)


def _outcome(asked: Transition, refused: Refused | None, records: Mapping[str, Record]) -> Outcome:
    named = (*asked.children, *(() if asked.neighbour is None else asked.neighbour[:1]))
    return Outcome(
        id=asked.id,
        bundle=asked.bundle,
        accepted=refused is None,
        reason=refused,
        record=records.get(asked.bundle),
        others={bundle: records[bundle] for bundle in named if bundle in records},
    )


def _older(asked: Transition) -> Outcome:
    return Outcome(id=asked.id, bundle=asked.bundle, accepted=False, reason=Refused.OLDER_BATCH)
