"""Operator ② without its engine: what a cluster remembers, what arrives, when a round is due.

receive(rows):  intents change the settings; changes of ownership replace records and end moves in
                flight; snapshots replace their broker's.
round(now):     drop silent brokers, assemble the view, decide, remember the moves, tell the sinks.

State is reached through two mappings, so that the same code runs on Spark's MapState and on dicts
(replay, tests): broker to packed Snapshot, namespace to its packed records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from trimtab.assemble import Holdings, assemble
from trimtab.intents import obeyed
from trimtab.memory import Flight, Memory
from trimtab.model import namespace_of
from trimtab.ownership import Event, State
from trimtab.plan import Plan
from trimtab.recording import Context, recorded
from trimtab.round import decide
from trimtab.settings import Settings
from trimtab.snapshot import Snapshot
from trimtab.tiling import flaws
from trimtab.tunable import InvalidSettings
from trimtab.wire.columns import pack, unpack
from trimtab.wire.control import Intent, Kind
from trimtab.wire.ownership import Change, Record
from trimtab.wire.rows import Intake, Row, Tag, json_row, parsed


@dataclass(slots=True)
class Cluster:
    """One cluster's state while a batch works on it; ``memory`` is replaced, never changed."""

    name: str
    snapshots: MutableMapping[str, bytes]
    namespaces: MutableMapping[str, bytes]
    memory: Memory
    defaults: Settings

    @property
    def settings(self) -> Settings:
        """The job's settings with the cluster's own changes on top."""
        return self._resolved()[0]

    def _resolved(self) -> tuple[Settings, list[str]]:
        """The settings, and why the cluster's own are left out, if they are.

        They were valid when they came; a job started with other settings may contradict them.
        """
        try:
            return self.defaults.changed(self.memory.overrides), []
        except InvalidSettings as error:
            return self.defaults, [f"changed settings are left out: {p}" for p in error.problems]

    @property
    def interval_ms(self) -> int:
        """Between rounds; 0 means one in every batch that changed a snapshot."""
        return round(self.settings.round.interval * 1000)

    def take(self, rows: Iterable[Row], now_ms: int) -> tuple[list[Row], int]:
        """A batch's rows: what goes on to the sinks, and the timer to set (0: none)."""
        changed, out = self.receive(rows)
        if not self.name:
            return out, 0
        if changed and self.interval_ms == 0:
            out.append(self.hold_round(now_ms))
        return out, self._set_timer(now_ms)

    def wake(self, now_ms: int) -> tuple[Row, int]:
        """The timer fired: the round, and the next timer.

        A round even where the interval has become 0 since: a batch that changes the state must be
        seen by the sinks, or nobody could run it again.
        """
        self.memory = replace(self.memory, due_ms=0)
        return self.hold_round(now_ms), self._set_timer(now_ms)

    def _set_timer(self, now_ms: int) -> int:
        """When to wake for the next round, or 0 if a timer is set already or none is wanted."""
        if self.memory.due_ms or not self.interval_ms:
            return 0
        self.memory = replace(self.memory, due_ms=now_ms + self.interval_ms)
        return self.memory.due_ms

    def receive(self, rows: Iterable[Row]) -> tuple[bool, list[Row]]:
        """Take a batch's rows; whether a snapshot changed, and the rows that go on to the sinks."""
        by_tag: dict[str, list[Row]] = {tag: [] for tag in Tag}
        for row in rows:
            by_tag[row.tag].append(row)
        out = by_tag[Tag.DEAD_LETTER]
        # The engine promises no order within a batch; LogAppendTime and the position give one.
        for intent in parsed(sorted(by_tag[Tag.INTENT], key=_order), Intent, out):
            self._intend(intent)
        self._change(parsed(by_tag[Tag.CHANGE], Change, out))
        changed = self._hear(by_tag[Tag.SNAPSHOT])
        if self.name and any(by_tag[tag] for tag in (Tag.SNAPSHOT, Tag.INTENT, Tag.CHANGE)):
            # Also where nothing was reported: a batch that changes the state must be seen by the
            # sinks, or nobody could run it again.
            out.append(self._intake(by_tag[Tag.SNAPSHOT]))
        return changed, out

    def _intend(self, intent: Intent) -> None:
        self.memory = obeyed(self.memory, intent, self.defaults)
        if intent.kind is Kind.BROKER_LOST:
            self.snapshots.pop(intent.broker, None)

    def _change(self, changes: Iterable[Change]) -> None:
        touched: dict[str, dict[str, Record]] = {}
        in_flight, halves = dict(self.memory.in_flight), dict(self.memory.round.halves)
        for change in changes:
            namespace = namespace_of(change.bundle)
            if namespace not in touched:
                touched[namespace] = self.records(namespace)
            known = touched[namespace].get(change.bundle)
            if known is None or change.record.epoch > known.epoch:
                touched[namespace][change.bundle] = change.record
                if change.event is Event.RETIRE and change.record.state is State.OWNED:
                    halves[change.bundle] = change.record.since
                flight = in_flight.get(change.bundle)
                if flight and change.record.epoch > (flight.generation, flight.counter):
                    del in_flight[change.bundle]
        self._tile(touched)
        halves = halves if self.settings.split.unload_children else {}
        state = replace(self.memory.round, halves=halves)
        self.memory = replace(self.memory, in_flight=in_flight, round=state)

    def _tile(self, touched: Mapping[str, dict[str, Record]]) -> None:
        flawed, sizes = dict(self.memory.flawed), dict(self.memory.sizes)
        for namespace, records in touched.items():
            self.namespaces[namespace] = pack(records)
            standing = [b for b, record in records.items() if record.state is not State.DELETED]
            flawed[namespace] = flaws(standing)
            sizes[namespace] = len(standing)
        flawed = {namespace: found for namespace, found in flawed.items() if found}
        self.memory = replace(self.memory, flawed=flawed, sizes=sizes)

    def records(self, namespace: str) -> dict[str, Record]:
        """The records of a namespace, by bundle."""
        packed = self.namespaces.get(namespace)
        return unpack(packed, dict[str, Record]) if packed else {}

    def _hear(self, rows: Iterable[Row]) -> bool:
        changed = {row.subject: row for row in rows if row.payload}
        for broker, row in changed.items():
            self.snapshots[broker] = row.payload
        appended = {broker: row.appended_ms for broker, row in changed.items()}
        self.memory = replace(self.memory, appended=self.memory.appended | appended)
        return bool(changed)

    def _intake(self, rows: list[Row]) -> Row:
        intake = Intake(
            cluster=self.name,
            accepted=sum(row.accepted for row in rows),
            duplicate=sum(row.duplicate for row in rows),
            old=sum(row.old for row in rows),
            newest_ms=max(self.memory.appended.values(), default=0),
        )
        return json_row(self.name, Tag.INTAKE, intake)

    def hold_round(self, now_ms: int) -> Row:
        """Decide once; the round's record for the sinks. ``now_ms`` is the batch timestamp."""
        settings = self.settings
        self._forget(now_ms, settings)
        # One pass over each mapping: a read by key costs Spark a round trip to the JVM.
        packed, namespaces = dict(self.snapshots.items()), dict(self.namespaces.items())
        snapshots = [unpack(packed[broker], Snapshot) for broker in self._live(settings)]
        holdings = None if settings.round.observe_only else self._holdings(namespaces)
        view, obstacles = assemble(self.name, snapshots, holdings)
        view = replace(view, policies=self.memory.policies, now_ms=now_ms)
        state = replace(self.memory.round, paused=self.memory.paused)
        rng = np.random.default_rng([crc32(self.name.encode()), state.number])
        plan, state = decide(view, state, settings, now_ms, rng)
        if not settings.round.observe_only:
            self._launch(plan, now_ms, settings)
        self.memory = replace(self.memory, round=state)
        state_hash = self.fingerprint(packed, namespaces)
        context = Context(
            now_ms=now_ms,
            number=state.number,
            settings=settings,
            settings_version=self.memory.settings_version,
            problems=self._problems(),
            state_hash=state_hash,
        )
        self.memory = replace(self.memory, problems=[])
        return json_row(self.name, Tag.ROUND, recorded(plan, view, obstacles, context))

    def _problems(self) -> tuple[str, ...]:
        flaws = [
            f"{namespace}: {flaw}"
            for namespace, found in sorted(self.memory.flawed.items())
            for flaw in found
        ]
        return (*self._resolved()[1], *self.memory.problems, *flaws)

    def _forget(self, now_ms: int, settings: Settings) -> None:
        in_flight = {b: f for b, f in self.memory.in_flight.items() if f.until_ms > now_ms}
        # What never reached the journal did not happen: the bundle need not rest for it.
        missed = self.memory.in_flight.keys() - in_flight.keys()
        recent = {b: ms for b, ms in self.memory.round.recent.items() if b not in missed}
        newest = max(self.memory.appended.values(), default=0)
        horizon = newest - settings.round.forget * 1000
        appended = {b: ms for b, ms in self.memory.appended.items() if ms >= horizon}
        for broker in self.memory.appended.keys() - appended.keys():
            self.snapshots.pop(broker, None)
        self.memory = replace(
            self.memory,
            in_flight=in_flight,
            appended=appended,
            round=replace(self.memory.round, recent=recent),
        )

    def _live(self, settings: Settings) -> list[str]:
        """Brokers heard of lately, by Kafka's clock: a backlog after a downtime silences nobody."""
        newest = max(self.memory.appended.values(), default=0)
        horizon = newest - settings.round.silence * 1000
        return sorted(broker for broker, ms in self.memory.appended.items() if ms >= horizon)

    def _holdings(self, namespaces: Mapping[str, bytes]) -> Holdings:
        records: dict[str, Record] = {}
        for packed in namespaces.values():
            records.update(unpack(packed, dict[str, Record]))
        flights = {bundle: flight.destination for bundle, flight in self.memory.in_flight.items()}
        return Holdings(records, frozenset(self.memory.flawed), self.memory.sizes, flights)

    def _launch(self, plan: Plan, now_ms: int, settings: Settings) -> None:
        until = now_ms + round(settings.round.move_deadline * 1000)
        changes = [(move.bundle, move.destination, move.epoch) for move in plan.moves]
        changes += [(split.bundle, split.broker, split.epoch) for split in plan.splits]
        flights = {
            bundle: Flight(owner, epoch.counter, epoch.generation, until)
            for bundle, owner, epoch in changes
        }
        self.memory = replace(self.memory, in_flight=self.memory.in_flight | flights)

    def fingerprint(self, *mappings: Mapping[str, bytes]) -> str:
        """Hash of everything ② remembers: equal in a replay of the same batches."""
        digest = hashlib.blake2b(pack(self.memory), digest_size=8)
        for mapping in mappings:
            for key, value in sorted(mapping.items()):
                digest.update(key.encode())
                digest.update(value)
        return digest.hexdigest()


def _order(row: Row) -> tuple[int, str, int]:
    place, offset = row.subject.rsplit("/", 1)
    return row.appended_ms, place, int(offset)
