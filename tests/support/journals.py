"""A cluster that keeps the rules of ownership, and what its relay makes of its journal.

Written for the auditor's tests, apart from the scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final

import msgspec

from trimtab.model import FULL_RANGE_END, NO_EPOCH, Epoch, HashRange, merge_names, parse_bundle
from trimtab.ownership import Event, State
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Change, Record

CLUSTER: Final = "c"
BROKERS: Final = ("a:8080", "b:8080", "c:8080")
NAMESPACE: Final = "t/n"
QUARTER: Final = FULL_RANGE_END // 4 + 1
EDGES: Final = (0, QUARTER, 2 * QUARTER, 3 * QUARTER, FULL_RANGE_END)

DEADLINE_MS: Final = 30_000
BEFORE_DEADLINE_MS: Final = 12_000
LEASE_MS: Final = 10_000
REBUILD_MS: Final = 300_000

Item = Change | Command

Step = Callable[["World", int, int], None]

IN_TRANSIT: Final = frozenset({State.ASSIGNING, State.RELEASING, State.SPLITTING, State.MERGING})


def named(low: int, high: int) -> str:
    return f"{NAMESPACE}/{HashRange(low, high)}"


QUARTERS: Final = tuple(named(low, high) for low, high in pairwise(EDGES))


@dataclass
class Run:
    """What one run of a script changed, and the records before it."""

    at: int
    changes: list[Change] = field(default_factory=list)
    before: dict[str, Record | None] = field(default_factory=dict)


@dataclass
class World:
    """All times in epoch milliseconds of Redis's clock."""

    now: int = 1_000_000
    generation: int = 3
    records: dict[str, Record] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    commands: list[tuple[int, Command]] = field(default_factory=list)
    """With the number of runs before which each was issued."""
    due: dict[str, int] = field(default_factory=dict)
    """When a bundle must be out of its transit."""

    def do(self, what: str, which: int, how: int) -> None:
        """One of STEPS, with ``which`` bundle or broker and ``how``."""
        self.now += 1 + 250 * how
        for bundle in [b for b, due in self.due.items() if due - self.now < BEFORE_DEADLINE_MS]:
            if bundle in self.due:
                self.proceed(bundle, 0)
        STEPS[what](self, which, how)

    def standing(self) -> list[str]:
        return sorted(b for b, record in self.records.items() if record.state is not State.DELETED)

    def claim(self, bundle: str, how: int) -> None:
        """Of a bundle without an owner."""
        broker = BROKERS[how % len(BROKERS)]
        if how % 2:
            self._write(Event.CLAIM, bundle, State.OWNED, broker)
        else:
            self._write(Event.ASSIGN, bundle, State.ASSIGNING, broker)

    def claim_again(self, bundle: str) -> None:
        """By its owner, after a restart of its process."""
        self._write(Event.CLAIM, bundle, State.OWNED, self._owner(bundle))

    def transfer(self, bundle: str, how: int) -> None:
        source = self._owner(bundle)
        others = [broker for broker in BROKERS if broker != source]
        there = others[how % len(others)]
        self._write(Event.TRANSFER, bundle, State.RELEASING, source, there)
        self._command(bundle, source, CommandKind.TRANSFER)
        self._command(bundle, there, CommandKind.PREPARE)

    def unload(self, bundle: str) -> None:
        self._write(Event.UNLOAD, bundle, State.RELEASING, self._owner(bundle))
        self._command(bundle, self._owner(bundle), CommandKind.UNLOAD)

    def split(self, bundle: str) -> None:
        low, high = parse_bundle(bundle)[1]
        if high - low > 1:
            self._write(Event.SPLIT, bundle, State.SPLITTING, self._owner(bundle))
            self._command(bundle, self._owner(bundle), CommandKind.SPLIT)

    def merge(self, bundle: str) -> None:
        """With its neighbour above, if that has the same owner and is at rest."""
        owner = self._owner(bundle)
        for above in self._above(bundle, State.OWNED):
            run = self._write(Event.MERGE, bundle, State.MERGING, owner)
            merging = self._record(State.MERGING, self._counter(above) + 1, owner)
            self._put(run, change_of(Event.MERGE, above, merging))
            self._command(bundle, owner, CommandKind.MERGE)

    def proceed(self, bundle: str, how: int) -> None:
        """The next step of a bundle in transit or without an owner; ``how`` 0 leads to an end."""
        record = self.records[bundle]
        if record.state is State.FREE:
            self.claim(bundle, how)
        elif record.state is State.SPLITTING and how % 4 != 3:
            self.retire(bundle, how)
        elif record.state is State.MERGING and how % 4 != 3 and self._above(bundle, record.state):
            self.unite(bundle)
        elif record.state is State.RELEASING and record.destination is None:
            self._write(Event.RELEASE, bundle, State.FREE)
        else:
            exits = EXITS[record.state]
            event, state, heir = exits[how // 3 % len(exits)]
            self._write(event, bundle, state, heir(record))

    def retire(self, bundle: str, how: int) -> None:
        """Divide it, in halves or thirds."""
        whole, (low, high) = self.records[bundle], parse_bundle(bundle)[1]
        parts = 2 if high - low < 3 else 2 + how % 2
        edges = [low + (high - low) * part // parts for part in range(parts + 1)]
        run = self._write(Event.RETIRE, bundle, State.DELETED)
        for child in (named(*span) for span in pairwise(edges)):
            counter = max(whole.epoch.counter, self._counter(child)) + 1
            self._put(
                run, change_of(Event.RETIRE, child, self._record(State.OWNED, counter, whole.owner))
            )

    def unite(self, bundle: str) -> None:
        """Make one of it and its neighbour above."""
        [above] = self._above(bundle, State.MERGING)
        whole, parts = merge_names(bundle, above), (bundle, above)
        owner, counters = self._owner(bundle), [self._counter(part) for part in (whole, *parts)]
        run = self._write(Event.RETIRE, bundle, State.DELETED)
        gone = self._record(State.DELETED, self._counter(above) + 1, None)
        self._put(run, change_of(Event.RETIRE, above, gone))
        born = self._record(State.OWNED, max(counters) + 1, owner)
        self._put(run, change_of(Event.RETIRE, whole, born))

    def crash(self, broker: str, how: int) -> None:
        """A broker loses its lease and returns at once; its bundles are taken from it."""
        self.now += LEASE_MS
        others = [other for other in BROKERS if other != broker]
        for bundle in self.standing():
            if self.records[bundle].owner == broker:
                if how % 3 == 0:
                    self._write(Event.LOSE, bundle, State.FREE)
                elif how % 3 == 1:
                    self._write(Event.ASSIGN, bundle, State.ASSIGNING, others[how % len(others)])
                else:
                    self._write(Event.QUARANTINE, bundle, State.QUARANTINED)

    def restart(self) -> None:
        """Of the job."""
        self.generation += 1

    def rebuild(self, lost: int, how: int) -> None:
        """The store forgets its last runs, which the relay had not carried; brokers remember all of
        them, or none, and the store is closed for a while."""
        forgotten = [self.runs.pop() for _ in range(min(lost, len(self.runs)))]
        remembered = dict(self.records)
        for run in forgotten:
            for bundle, before in run.before.items():
                self.records.pop(bundle, None)
                if before is not None:
                    self.records[bundle] = before
        self.commands = [(min(at, len(self.runs)), command) for at, command in self.commands]
        self.now += REBUILD_MS if how % 2 else LEASE_MS
        if how % 3:
            for restoring in [Run(self.now) for _ in range(1 + how % 2)]:
                for bundle in sorted({bundle for run in forgotten for bundle in run.before}):
                    self._put(restoring, change_of(Event.RESTORE, bundle, remembered[bundle]))
        self.restart()
        self.due = {
            bundle: self.now + DEADLINE_MS
            for bundle, record in self.records.items()
            if record.state in IN_TRANSIT
        }

    def rest(self) -> None:
        """Everything is owned, and the ring is covered."""
        for bundle in QUARTERS:
            if bundle not in self.records:
                self.claim(bundle, 1)
        for bundle in self.standing():
            while bundle in self.records and self.records[bundle].state not in {
                State.OWNED,
                State.DELETED,
            }:
                self.now += 10
                self.proceed(bundle, 1)

    def _above(self, bundle: str, state: State) -> list[str]:
        """The neighbour above, if it has this state and the same owner."""
        _, high = parse_bundle(bundle)[1]
        return [
            other
            for other in self.standing()
            if parse_bundle(other)[1].low == high
            and self.records[other].state is state
            and self.records[other].owner == self.records[bundle].owner
        ]

    def _owner(self, bundle: str) -> str:
        owner = self.records[bundle].owner
        assert owner is not None
        return owner

    def _write(
        self,
        event: Event,
        bundle: str,
        state: State,
        owner: str | None = None,
        destination: str | None = None,
    ) -> Run:
        record = self._record(state, self._counter(bundle) + 1, owner, destination)
        return self._put(Run(self.now), change_of(event, bundle, record))

    def _put(self, run: Run, change: Change) -> Run:
        if not run.changes:
            self.runs.append(run)
        bundle, record = change.bundle, change.record
        run.before[bundle] = self.records.get(bundle)
        run.changes.append(change)
        self.records[bundle] = record
        self.due.pop(bundle, None)
        if record.state in IN_TRANSIT:
            self.due[bundle] = self.now + DEADLINE_MS
        return run

    def _record(
        self, state: State, counter: int, owner: str | None, destination: str | None = None
    ) -> Record:
        return Record(
            state=state,
            epoch=Epoch(self.generation, counter),
            owner=owner,
            destination=destination,
            since=self.now,
            by=f"request-{len(self.runs)}-{self.now}",
        )

    def _counter(self, bundle: str) -> int:
        record = self.records.get(bundle)
        return (record.epoch if record else NO_EPOCH).counter

    def _command(self, bundle: str, broker: str, kind: CommandKind) -> None:
        epoch = self.records[bundle].epoch
        command = Command(
            id=f"{bundle}/{epoch.generation}.{epoch.counter}/{kind}",
            cluster=CLUSTER,
            broker=broker,
            kind=kind,
            bundle=bundle,
        )
        deadline = self.now + DEADLINE_MS
        self.commands.append((len(self.runs), command.stamped(epoch, self.now, deadline)))


EXITS: Final = {
    State.RELEASING: (
        (Event.HAND_OVER, State.ASSIGNING, lambda record: record.destination),
        (Event.KEEP, State.OWNED, lambda record: record.owner),
        (Event.DECLINE, State.OWNED, lambda record: record.owner),
    ),
    State.ASSIGNING: (
        (Event.SERVE, State.OWNED, lambda record: record.owner),
        (Event.DECLINE, State.FREE, lambda _: None),
    ),
    State.SPLITTING: (
        (Event.DECLINE, State.OWNED, lambda record: record.owner),
        (Event.KEEP, State.OWNED, lambda record: record.owner),
    ),
    State.MERGING: (
        (Event.DECLINE, State.OWNED, lambda record: record.owner),
        (Event.KEEP, State.OWNED, lambda record: record.owner),
    ),
    State.QUARANTINED: ((Event.READMIT, State.FREE, lambda _: None),),
}
"""How a bundle may leave a state, and who is named then; the usual way first."""


def _to_one(states: Set[State], act: Callable[[World, str, int], None]) -> Step:
    """Do it to one of the bundles in these states, if there is one."""

    def step(world: World, which: int, how: int) -> None:
        bundles = [b for b in world.standing() if world.records[b].state in states]
        if bundles:
            act(world, bundles[which % len(bundles)], how)

    return step


def _claim(world: World, which: int, how: int) -> None:
    """Bundles get their first records one after another."""
    unknown = [bundle for bundle in QUARTERS if bundle not in world.records]
    if unknown:
        world.claim(unknown[which % len(unknown)], how)


STEPS: Final[dict[str, Step]] = {
    "claim": _claim,
    "proceed": _to_one(IN_TRANSIT | {State.FREE, State.QUARANTINED}, World.proceed),
    "transfer": _to_one({State.OWNED}, World.transfer),
    "unload": _to_one({State.OWNED}, lambda world, bundle, _: world.unload(bundle)),
    "claim-again": _to_one(
        IN_TRANSIT | {State.OWNED}, lambda world, bundle, _: world.claim_again(bundle)
    ),
    "split": _to_one({State.OWNED}, lambda world, bundle, _: world.split(bundle)),
    "merge": _to_one({State.OWNED}, lambda world, bundle, _: world.merge(bundle)),
    "crash": lambda world, which, how: world.crash(BROKERS[which % len(BROKERS)], how),
    "restart": lambda world, _which, _how: world.restart(),
    "rebuild": World.rebuild,
}


def change_of(event: Event, bundle: str, record: Record) -> Change:
    return Change(cluster=CLUSTER, bundle=bundle, event=event, record=record)


def changed(change: Change, **record: object) -> Change:
    """With other values in its record."""
    return msgspec.structs.replace(change, record=msgspec.structs.replace(change.record, **record))


def carried(
    runs: Sequence[Run], commands: Sequence[tuple[int, Command]], rng: Random
) -> list[Item]:
    """The journal and the commands as a reader gets them: entries a few places late, runs of them
    twice, commands before or after their changes and some of them much later again."""
    places: list[tuple[float, Item]] = []
    for place, run in _places(runs, rng):
        places += ((place, change) for change in run.changes)
    places.sort(key=lambda placed: placed[0])
    if places and rng.random() < 0.5:
        # A driver that took over carries a page again, at once or after the other one's.
        first = rng.randrange(len(places))
        page = places[first : first + rng.randrange(1, 20)]
        again = page[-1][0] + rng.choice((0, 3))
        places += ((again, change) for _, change in page)
    for at, command in commands:
        places.append((at - 1 + rng.uniform(-2, 8), command))
        if rng.random() < 0.2:
            places.append((rng.uniform(at, len(runs) + 9), command))
    places.sort(key=lambda placed: placed[0])
    return [item for _, item in places]


def _places(runs: Sequence[Run], rng: Random) -> Iterator[tuple[float, Run]]:
    """No entry is so late that a much later one overtakes it."""
    base, last = 0, 0
    for number, run in enumerate(runs):
        if run.at - last > LEASE_MS // 2:
            base = number
        last = run.at
        yield max(base, number - rng.choice((0, 0, 0, 1, 2, 3))), run
