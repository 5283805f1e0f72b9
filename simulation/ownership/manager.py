"""A stand-in for the job: asks for anything that the table allows, and makes repairs in between.

It sees the store through its own link and by its own clock, bundle by bundle at several moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np

from simulation.ownership.links import JobLink
from sinks.errors import Closed, Fenced, GenerationSpent, SinkError, StoreUnavailable
from sinks.redis.cluster_gate import CLOSED_FOR_MS, Closure
from streaming.watch.server_clock import ServerClock
from trimtab.model import HashRange, InvalidName, merge_names, parse_bundle
from trimtab.ownership import JOB_EVENTS, LONGEST_LEASE_MS, TRANSITIONS, Event, State
from trimtab.store.rebuild import newest_of, rebuild_records
from trimtab.store.requests import issue_commands
from trimtab.wire.command import Command, CommandKind, Division
from trimtab.wire.ownership import Neighbour, Record, Transition

DEADLINE_MS = 20_000
DIVISION = Division(
    algorithm="range_equally_divide", max_rate=1e3, max_throughput=1e9, difference=0.1
)
_TOLD = {
    Event.TRANSFER: CommandKind.TRANSFER,
    Event.UNLOAD: CommandKind.UNLOAD,
    Event.SPLIT: CommandKind.SPLIT,
    Event.MERGE: CommandKind.MERGE,
    Event.KEEP: CommandKind.OWN,
}
_NARROWEST: Final = 1 << 24
_AT_ONCE: Final = 300
"""Bundles that a batch looks at."""
_MORE: Final = 60
"""This many bundles above the fewest, every batch merges two."""
_FASTEST: Final = 0.02

Records = Mapping[str, Record]


@dataclass(frozen=True, slots=True)
class Kafka:
    """The job's data in Kafka."""

    journal: Mapping[str, Mapping[str, Record]]
    """By cluster and bundle."""
    claim: Callable[[int], int]
    """The next generation for the holder of this one (0: of none); raises Fenced if that is not
    the highest any more."""
    issued: Callable[[Command], object]
    """Called with each command."""
    rebuilt: Callable[[int], object] = lambda _: None
    """Called at each rebuild, with the number of records it restored."""


@dataclass(slots=True)
class Manager:
    """One driver."""

    link: JobLink
    kafka: Kafka
    clusters: tuple[str, ...]
    brokers: tuple[str, ...]
    rng: np.random.Generator
    name: str
    fewest: int = 16
    """With this few bundles none are merged."""
    generation: int = 0
    fenced: bool = False
    drift: float = 0.0
    _opened_on: dict[str, str] = field(default_factory=dict)
    _batch: int = 0
    _last: dict[str, list[Transition]] = field(default_factory=dict)
    _watch: ServerClock = field(init=False)

    def __post_init__(self) -> None:
        self.drift = float(self.rng.uniform(-_FASTEST, _FASTEST))
        self._watch = ServerClock(self.link.time, self._time, LONGEST_LEASE_MS / 1000, 1.0)

    def _time(self) -> float:
        return 5000.0 + self.link.clock.now * (1 + self.drift)

    def turn(self, *, calm: bool = False) -> None:
        """Run a batch; ``calm``: only repairs, for every cluster."""
        if self.fenced:
            return
        drawn = self.clusters[self.rng.integers(len(self.clusters))]
        try:
            self._claim()
            self._watch.look()
            for cluster in self.clusters if calm else (drawn,):
                if self._opened(cluster):
                    if (server_ms := self._watch.estimate_ms()) is not None:
                        self.link.vouch(cluster, server_ms)
                    self._write(cluster, calm)
        except GenerationSpent:
            # The next turn claims another generation.
            self.generation = -self.generation
        except Fenced:
            self.fenced = True
        except (Closed, StoreUnavailable, SinkError):
            return

    def _claim(self) -> None:
        if self.generation <= 0:
            self.generation = self.kafka.claim(-self.generation)
            self._opened_on.clear()

    def _opened(self, cluster: str) -> bool:
        closure = self._open(cluster, "")
        if closure is not None and closure.wait_ms == 0:
            closure = self._rebuild(cluster, closure)
        return closure is None

    def _open(self, cluster: str, rebuilt_on: str) -> Closure | None:
        known = self._opened_on.get(cluster, "")
        closure, history = self.link.open(
            cluster, self.generation, known, rebuilt_on, CLOSED_FOR_MS
        )
        if closure is None:
            self._opened_on[cluster] = history
        return closure

    def _rebuild(self, cluster: str, closure: Closure) -> Closure | None:
        """Rebuild a store as `streaming.leader.store_opening.Opener` does."""
        link = self.link
        stored = link.records(cluster, link.bundles(cluster))
        said = link.asserted(cluster, closure.history).values()
        unrelayed = link.unrelayed(cluster)
        journal = newest_of(self.kafka.journal[cluster], unrelayed)
        lacking = rebuild_records(stored, journal, [told.records for told in said], self.generation)
        restored = link.restore(cluster, self.generation, lacking.records, lacking.unjournalled)
        link.note_owned(cluster, self.generation, sorted({*stored, *lacking.records}))
        self.kafka.rebuilt(restored)
        return self._open(cluster, closure.history)

    def _write(self, cluster: str, calm: bool) -> None:
        if calm or self.rng.random() < 0.85:
            bundles = self.link.bundles(cluster)
            records = self._read(cluster, bundles, len(bundles) if calm else _AT_ONCE)
            living = self.link.living(cluster)
            self._batch += 1
            asked = self._repairs(cluster, records, living)
            asked += [] if calm else self._wishes(cluster, records, living)
            self._last[cluster] = asked
        last = self._last.get(cluster, [])
        done = self.link.apply_batch(
            cluster,
            last,
            self.generation,
            "sim",
            self.generation * 1_000_000 + self._batch,
            self._watch.estimate_ms(),
        )
        for command in issue_commands(last, done.outcomes):
            self.kafka.issued(command)

    def _read(self, cluster: str, bundles: list[str], most: int) -> dict[str, Record]:
        """Records of bundles; of many, only some neighbours."""
        if len(bundles) > most:
            start = int(self.rng.integers(len(bundles)))
            bundles = sorted(bundles)
            bundles = [*bundles[start:], *bundles[:start]][:most]
        return self.link.records(cluster, bundles)

    def _wishes(self, cluster: str, records: Records, living: set[str]) -> list[Transition]:
        """Requests that are legal now, or were a moment ago."""
        names = sorted(b for b, record in records.items() if record.state is not State.DELETED)
        wishes = []
        for row in self.rng.integers(len(names), size=4).tolist() if names else []:
            bundle = names[row]
            record = records[bundle]
            legal = [event for event in TRANSITIONS[record.state] if event in JOB_EVENTS]
            legal = [event for event in legal if event is not Event.MERGE]
            if legal:
                event = legal[self.rng.integers(len(legal))]
                wishes.append(self._asked(cluster, bundle, record, event, living))
        wishes += self._merges(cluster, names, records, living)
        return [wish for wish in wishes if wish.event is not Event.SPLIT or _wide(wish.bundle)]

    def _merges(
        self, cluster: str, names: list[str], records: Records, living: set[str]
    ) -> list[Transition]:
        """Merge a bundle with the one above it, sometimes although their owners differ."""
        fewest = min(self.fewest, int(0.9 * _AT_ONCE))
        if len(names) < self.rng.integers(fewest, fewest + _MORE):
            return []
        owned = [bundle for bundle in names if records[bundle].state is State.OWNED]
        pairs = [pair for pair in pairwise(owned) if _beside(*pair)]
        mine = [pair for pair in pairs if len({records[b].owner for b in pair}) == 1]
        chosen = mine if mine and self.rng.random() < 0.9 else pairs
        if not chosen:
            return []
        lower, upper = chosen[self.rng.integers(len(chosen))]
        asked = self._asked(cluster, lower, records[lower], Event.MERGE, living)
        commands = [msgspec.structs.replace(told, neighbour=upper) for told in asked.commands]
        beside = Neighbour(upper, records[upper].epoch)
        return [msgspec.structs.replace(asked, neighbour=beside, commands=tuple(commands))]

    def _repairs(self, cluster: str, records: Records, living: set[str]) -> list[Transition]:
        now = self._watch.estimate_ms() or 0
        asked: list[tuple[str, Record, Event]] = []
        for bundle, record in records.items():
            gone = record.owner is not None and record.owner not in living
            overdue = now - record.since > DEADLINE_MS
            match record.state:
                case State.FREE:
                    asked.append((bundle, record, Event.ASSIGN))
                case State.QUARANTINED:
                    asked.append((bundle, record, Event.READMIT))
                case State.ASSIGNING if gone or overdue:
                    asked.append((bundle, record, Event.ASSIGN))
                case State.RELEASING | State.SPLITTING | State.MERGING if overdue and not gone:
                    asked.append((bundle, record, Event.KEEP))
                case State.OWNED | State.RELEASING | State.SPLITTING | State.MERGING if gone:
                    asked.append((bundle, record, Event.ASSIGN))
        return [self._asked(cluster, *each, living) for each in asked]

    def _asked(
        self, cluster: str, bundle: str, record: Record, event: Event, living: Iterable[str]
    ) -> Transition:
        chosen = sorted(living) or list(self.brokers)
        to = chosen[self.rng.integers(len(chosen))]
        name = f"{self.name}/{self.generation}/{self._batch}/{bundle}/{event.value}"
        told = {}
        if event is Event.ASSIGN:
            told = {to: CommandKind.OWN}
        elif event in _TOLD and record.owner is not None:
            told = {record.owner: _TOLD[event]}
        if event is Event.TRANSFER:
            told |= {to: CommandKind.PREPARE} if to != record.owner else {}
        commands = tuple(
            Command(
                id=f"{name}/{kind.value}",
                cluster=cluster,
                broker=broker,
                kind=kind,
                bundle=bundle,
                destination=to if event is Event.TRANSFER else None,
                division=DIVISION if kind is CommandKind.SPLIT else None,
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
        return bool(merge_names(lower, upper))
    except InvalidName:
        return False


def _wide(bundle: str) -> bool:
    _, (low, high) = parse_bundle(bundle)
    return high - low > _NARROWEST


def names_of(namespace: str, edges: list[int]) -> list[str]:
    """Names of the bundles between these edges."""
    return [f"{namespace}/{HashRange(*pair)}" for pair in pairwise(edges)]
