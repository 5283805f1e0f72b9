"""A stand-in for the job: whatever the table allows, sensible or not, and repairs in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec
import numpy as np

from simulation.ownership.host import CLUSTER
from simulation.ownership.server import MemoryServer
from sinks.errors import Closed, Fenced, GenerationSpent
from sinks.gate import CLOSED_FOR_MS, Closure
from trimtab.issue import issued
from trimtab.model import HashRange, InvalidName, merged, parse_bundle
from trimtab.ownership import JOB_EVENTS, TRANSITIONS, Event, State
from trimtab.rebuild import rebuilt
from trimtab.wire.command import Command, Division, Kind
from trimtab.wire.ownership import Neighbour, Record, Transition

DEADLINE_MS = 20_000
DIVISION = Division(
    algorithm="range_equally_divide", max_rate=1e3, max_throughput=1e9, difference=0.1
)
_TOLD = {
    Event.TRANSFER: Kind.TRANSFER,
    Event.UNLOAD: Kind.UNLOAD,
    Event.SPLIT: Kind.SPLIT,
    Event.MERGE: Kind.MERGE,
    Event.KEEP: Kind.OWN,
}
_NARROWEST = 1 << 24
_FEW, _MANY = 16, 256
"""With so few bundles none are merged, with so many two in every batch."""


@dataclass(slots=True)
class Manager:
    """One driver; ``claim`` gives the next generation, ``journal`` is what Kafka has."""

    server: MemoryServer
    journal: dict[str, Record]
    brokers: tuple[str, ...]
    claim: Callable[[], int]
    rebuilt: Callable[[int], object]
    """Told of each rebuild, and how many records it restored."""
    issued: Callable[[Command], object]
    """Told of each command, as Kafka is."""
    rng: np.random.Generator
    name: str
    generation: int = 0
    fenced: bool = False
    _opened_on: str = ""
    _batch: int = 0
    _last: list[Transition] = field(default_factory=list)

    def turn(self, *, calm: bool = False) -> None:
        """A batch; ``calm``: repairs and nothing else."""
        if self.fenced:
            return
        if not self.generation:
            self.generation = self.claim()
        try:
            if self._opened():
                self._write(calm)
        except Closed:
            return
        except GenerationSpent:
            self.generation, self._opened_on = self.claim(), ""
        except Fenced:
            self.fenced = True

    def _opened(self) -> bool:
        server = self.server
        fresh = not self.journal and not server.contents.records
        closed_for = 0 if fresh else CLOSED_FOR_MS
        closure = server.open(self.generation, self._opened_on, "", closed_for)
        if closure is not None and closure.wait_ms == 0:
            closure = self._rebuild(closure, closed_for)
        if closure is None:
            self._opened_on = server.run
        return closure is None

    def _rebuild(self, closure: Closure, closed_for: int) -> Closure | None:
        contents = self.server.contents
        said = [
            told.records for (run, _), told in contents.assertions.items() if run == closure.run
        ]
        lacking = rebuilt(contents.records, self.journal, said, self.generation)
        self.rebuilt(self.server.restore(self.generation, lacking.records, lacking.unjournalled))
        return self.server.open(self.generation, self._opened_on, closure.run, closed_for)

    def _write(self, calm: bool) -> None:
        if calm or self.rng.random() < 0.85:
            self._batch += 1
            self._last = self._repairs() + ([] if calm else self._wishes())
        done = self.server.apply_batch(
            CLUSTER,
            self._last,
            generation=self.generation,
            query_id="sim",
            batch=self.generation * 1_000_000 + self._batch,
        )
        for command in issued(self._last, done.outcomes):
            self.issued(command)

    def _wishes(self) -> list[Transition]:
        """Legal at present, or by the epoch of a moment ago."""
        records = self.server.contents.records
        names = self._standing()
        wishes = []
        for row in self.rng.integers(len(names), size=4).tolist() if names else []:
            bundle = names[row]
            record = records[bundle]
            legal = [event for event in TRANSITIONS[record.state] if event in JOB_EVENTS]
            legal = [event for event in legal if event is not Event.MERGE]
            if legal:
                event = legal[self.rng.integers(len(legal))]
                wishes.append(self._asked(bundle, record, event))
        wishes += self._merges(names)
        return [wish for wish in wishes if wish.event is not Event.SPLIT or _wide(wish.bundle)]

    def _standing(self) -> list[str]:
        records = self.server.contents.records
        return sorted(b for b, record in records.items() if record.state is not State.DELETED)

    def _merges(self, names: list[str]) -> list[Transition]:
        """Of a bundle and the one above it, now and then though they have different owners."""
        if len(names) < self.rng.integers(_FEW, _MANY):
            return []
        records = self.server.contents.records
        owned = [bundle for bundle in names if records[bundle].state is State.OWNED]
        pairs = [pair for pair in pairwise(owned) if _beside(*pair)]
        mine = [pair for pair in pairs if len({records[b].owner for b in pair}) == 1]
        chosen = mine if mine and self.rng.random() < 0.9 else pairs
        if not chosen:
            return []
        lower, upper = chosen[self.rng.integers(len(chosen))]
        asked = self._asked(lower, records[lower], Event.MERGE)
        commands = [msgspec.structs.replace(told, neighbour=upper) for told in asked.commands]
        beside = Neighbour(upper, records[upper].epoch)
        return [msgspec.structs.replace(asked, neighbour=beside, commands=tuple(commands))]

    def _repairs(self) -> list[Transition]:
        now, asked = self.server.now_ms(), []
        for bundle, record in self.server.contents.records.items():
            gone = record.owner is not None and not self.server.alive(record.owner)
            overdue = now - record.since > DEADLINE_MS
            match record.state:
                case State.FREE:
                    asked.append(self._asked(bundle, record, Event.ASSIGN))
                case State.QUARANTINED:
                    asked.append(self._asked(bundle, record, Event.READMIT))
                case State.ASSIGNING if gone or overdue:
                    asked.append(self._asked(bundle, record, Event.ASSIGN))
                case State.RELEASING | State.SPLITTING | State.MERGING if overdue and not gone:
                    asked.append(self._asked(bundle, record, Event.KEEP))
                case State.OWNED | State.RELEASING | State.SPLITTING | State.MERGING if gone:
                    asked.append(self._asked(bundle, record, Event.ASSIGN))
        return asked

    def _asked(self, bundle: str, record: Record, event: Event) -> Transition:
        living = [name for name in self.brokers if self.server.alive(name)] or list(self.brokers)
        to = living[self.rng.integers(len(living))]
        name = f"{self.name}/{self.generation}/{self._batch}/{bundle}/{event.value}"
        told = {}
        if event is Event.ASSIGN:
            told = {to: Kind.OWN}
        elif event in _TOLD and record.owner is not None:
            told = {record.owner: _TOLD[event]}
        if event is Event.TRANSFER:
            told |= {to: Kind.PREPARE} if to != record.owner else {}
        commands = tuple(
            Command(
                id=f"{name}/{kind.value}",
                cluster=CLUSTER,
                broker=broker,
                kind=kind,
                bundle=bundle,
                destination=to if event is Event.TRANSFER else None,
                division=DIVISION if kind is Kind.SPLIT else None,
            )
            for broker, kind in told.items()
        )
        return Transition(
            id=name,
            bundle=bundle,
            event=event,
            expect=record.epoch,
            broker=to if event in (Event.ASSIGN, Event.TRANSFER) else None,
            commands=commands,
            within_ms=DEADLINE_MS,
        )


def _beside(lower: str, upper: str) -> bool:
    try:
        return bool(merged(lower, upper))
    except InvalidName:
        return False


def _wide(bundle: str) -> bool:
    _, (low, high) = parse_bundle(bundle)
    return high - low > _NARROWEST


def names_of(namespace: str, edges: list[int]) -> list[str]:
    """The bundles between edges."""
    return [f"{namespace}/{HashRange(*pair)}" for pair in pairwise(edges)]
