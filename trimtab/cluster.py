"""Operator ② without its engine: what a cluster remembers, what arrives, when a round is due.

receive(rows, now):  intents change the settings and what is known of brokers; changes of ownership
                     replace records and end moves in flight; snapshots replace their broker's.
hold_round(now):     assemble the view, see what must be mended, decide, remember what was issued,
                     tell the sinks.

A round is due every interval, and what cannot wait has one of its own in between: in the batch in
which it became known, or when its deadline passes. A batch holds one round at most.

State is reached through mappings, so that the same code runs on Spark's MapState and on dicts
(replay, tests): broker to packed Snapshot, namespace to its packed records. Now and then all of it
goes to the sinks too, for a replay to start from.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace

import numpy as np

from trimtab.assemble import Holdings, assemble
from trimtab.explaining.scene import Scene
from trimtab.explaining.telling import explanations, whys
from trimtab.explaining.witness import Witness
from trimtab.export import Held, due
from trimtab.flights import landed, launched
from trimtab.hints import hints
from trimtab.intents import obeyed, resolved
from trimtab.ledger import timed
from trimtab.liveness import heard
from trimtab.memory import Memory
from trimtab.model import namespace_of, within
from trimtab.ownership import Event, State
from trimtab.plan import Plan
from trimtab.reasons import Rule
from trimtab.recording import Context, recorded
from trimtab.repair import learnt, next_look, noticed
from trimtab.round import computable, decide, mend
from trimtab.round_state import RoundState
from trimtab.settings import Settings
from trimtab.shadow import compared
from trimtab.situation import situation_of
from trimtab.snapshot import Snapshot
from trimtab.tiling import flaws
from trimtab.view import View
from trimtab.wire.columns import pack, unpack
from trimtab.wire.control import Intent, Kind
from trimtab.wire.ownership import Change, Record
from trimtab.wire.rows import Intake, Row, Tag, json_row, parsed

Deciding = Callable[[View, RoundState, Settings, int, np.random.Generator], tuple[Plan, RoundState]]
"""`trimtab.round.decide`, or `trimtab.round.mend` between two rounds."""


@dataclass(slots=True)
class Cluster:
    """One cluster's state while a batch works on it; ``memory`` is replaced, never changed."""

    name: str
    snapshots: MutableMapping[str, bytes]
    namespaces: MutableMapping[str, bytes]
    memory: Memory
    defaults: Settings
    aside: MutableMapping[str, bytes] = field(default_factory=dict)
    """Broker to its Snapshot where rounds are not to see it and operator ① still goes on from it:
    read by exports alone."""
    explains: bool = True
    """Whether rounds tell the sinks why; their commands say so in any case."""
    witness: Witness | None = None
    """Of the last round that was held, for whoever asks why."""

    @property
    def settings(self) -> Settings:
        """The job's settings with the cluster's own changes on top."""
        return resolved(self.memory, self.defaults)[0]

    @property
    def interval_ms(self) -> int:
        """Between rounds; 0 means one in every batch that changed a snapshot."""
        return round(self.settings.round.interval * 1000)

    def take(self, rows: Iterable[Row], now_ms: int) -> tuple[list[Row], int]:
        """A batch's rows: what goes on to the sinks, and the timer to set (0: none)."""
        changed, out = self.receive(rows, now_ms)
        if not self.name:
            return out, 0
        if changed and self.interval_ms == 0:
            self.memory = replace(self.memory, round_ms=now_ms)
        # A timer that is due fires after the input of this very batch.
        if not 0 < self.memory.due_ms <= now_ms:
            out += self._due_round(now_ms)
        timer_ms = self._set_timer(now_ms)
        if not 0 < self.memory.due_ms <= now_ms:
            out += self._exported(now_ms)
        return out, timer_ms

    def wake(self, now_ms: int) -> tuple[list[Row], int]:
        """A timer fired: what goes on to the sinks, and the next timer."""
        if not 0 < self.memory.due_ms <= now_ms:
            # It was set before an earlier one was wanted.
            return [], 0
        self.memory = replace(self.memory, due_ms=0)
        # A batch that changes the state must be seen by the sinks, or nobody could run it again.
        out = self._due_round(now_ms) or [self._intake([])]
        timer_ms = self._set_timer(now_ms)
        return out + self._exported(now_ms), timer_ms

    def _due_round(self, now_ms: int) -> list[Row]:
        """The round that is due, if any: a whole one mends too."""
        if 0 < self.memory.round_ms <= now_ms:
            self.memory = replace(self.memory, round_ms=0)
            return [self.hold_round(now_ms), *self._explanations()]
        if 0 < self.memory.repair_ms <= now_ms:
            return [self.hold_round(now_ms, mend), *self._explanations()]
        return []

    def _set_timer(self, now_ms: int) -> int:
        """When to wake for what is due next, or 0 if a timer is set that is early enough."""
        memory, interval_ms = self.memory, self.interval_ms
        round_ms = memory.round_ms or (now_ms + interval_ms if interval_ms else 0)
        wanted = min(filter(None, (round_ms, memory.repair_ms)), default=0)
        late = wanted and not 0 < memory.due_ms <= wanted
        due_ms = wanted if late else memory.due_ms
        self.memory = replace(memory, round_ms=round_ms, due_ms=due_ms)
        return wanted if late else 0

    def _exported(self, now_ms: int) -> list[Row]:
        """What is held after this batch, if that is due: nothing may change it any more."""
        if not due(self.memory, self.settings, now_ms):
            return []
        self.memory = replace(self.memory, exported_ms=now_ms)
        return self.held().rows(self.name, now_ms)

    def held(self) -> Held:
        """All of it, and with it what operator ① holds of the cluster's brokers."""
        return Held(
            memory=pack(self.memory),
            snapshots=dict(self.snapshots.items()),
            aside=dict(self.aside.items()),
            namespaces=dict(self.namespaces.items()),
        )

    def receive(self, rows: Iterable[Row], now_ms: int) -> tuple[bool, list[Row]]:
        """Take a batch's rows; whether a snapshot changed, and the rows that go on to the sinks."""
        by_tag: dict[str, list[Row]] = {tag: [] for tag in Tag}
        for row in rows:
            by_tag[row.tag].append(row)
        out = by_tag[Tag.DEAD_LETTER]
        # The engine promises no order within a batch; LogAppendTime and the position give one.
        for row in sorted(by_tag[Tag.INTENT], key=_order):
            for intent in parsed([row], Intent, out):
                self._intend(intent, row.appended_ms, now_ms)
        self._change(parsed(by_tag[Tag.CHANGE], Change, out), now_ms)
        changed = self._hear(by_tag[Tag.SNAPSHOT])
        if self.name and any(by_tag[tag] for tag in (Tag.SNAPSHOT, Tag.INTENT, Tag.CHANGE)):
            # Also where nothing was reported: a batch that changes the state must be seen by the
            # sinks, or nobody could run it again.
            out.append(self._intake(by_tag[Tag.SNAPSHOT]))
        return changed, out

    def _intend(self, intent: Intent, at_ms: int, now_ms: int) -> None:
        returns = intent.kind is Kind.BROKER_JOINED and intent.broker in self.memory.liveness.gone
        liveness = self.memory.liveness.recent(self.settings.flapping, now_ms)
        memory = replace(self.memory, liveness=liveness)
        self.memory = obeyed(memory, intent, self.defaults, at_ms, now_ms)
        if intent.kind is Kind.READMIT and not self._quarantined(intent.bundle):
            problem = f"intent {intent.id}: {intent.bundle} is not quarantined"
            self.memory = replace(memory, problems=[*memory.problems, problem])
        if returns:
            # What it said before it was lost says nothing of it now.
            self._set_aside(intent.broker)
            appended = {b: ms for b, ms in self.memory.appended.items() if b != intent.broker}
            self.memory = replace(self.memory, appended=appended)

    def _quarantined(self, bundle: str) -> bool:
        record = self.records(namespace_of(bundle)).get(bundle)
        return record is not None and record.state is State.QUARANTINED

    def _change(self, changes: Collection[Change], now_ms: int) -> None:
        touched: dict[str, dict[str, Record]] = {}
        news: dict[str, Record] = {}
        halves = dict(self.memory.round.halves)
        for change in changes:
            namespace = namespace_of(change.bundle)
            if namespace not in touched:
                touched[namespace] = self.records(namespace)
            known = touched[namespace].get(change.bundle)
            if known is None or change.record.epoch > known.epoch:
                touched[namespace][change.bundle] = news[change.bundle] = change.record
                if change.event is Event.RETIRE and change.record.state is State.OWNED:
                    halves[change.bundle] = change.record.since
        self._tile(touched)
        settings = self.settings
        halves = _divided(halves, touched) if settings.split.unload_children else {}
        flying = self.memory.in_flight.items()
        in_flight = {b: f for b, f in flying if b not in news or not landed(f, news[b])}
        ledger = timed(self.memory.round.ledger, changes)
        state = replace(self.memory.round, halves=halves, ledger=ledger)
        self.memory = replace(self.memory, in_flight=in_flight, round=state)
        if news and not settings.round.observe_only:
            self.memory = noticed(self.memory, news, settings, now_ms)

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
            if broker not in self.memory.appended:
                self.aside.pop(broker, None)
        appended = {broker: row.appended_ms for broker, row in changed.items()}
        self.memory = replace(self.memory, appended=self.memory.appended | appended)
        return bool(changed)

    def _set_aside(self, broker: str) -> None:
        packed = self.snapshots.pop(broker, None)
        if packed is not None:
            self.aside[broker] = packed

    def _intake(self, rows: list[Row]) -> Row:
        intake = Intake(
            cluster=self.name,
            accepted=sum(row.accepted for row in rows),
            duplicate=sum(row.duplicate for row in rows),
            old=sum(row.old for row in rows),
            newest_ms=max(self.memory.appended.values(), default=0),
        )
        return json_row(self.name, Tag.INTAKE, intake)

    def hold_round(self, now_ms: int, deciding: Deciding = decide) -> Row:
        """Decide once; the round's record for the sinks. ``now_ms`` is the batch timestamp."""
        settings = self.settings
        self._forget(now_ms, settings)
        # One pass over each mapping: a read by key costs Spark a round trip to the JVM.
        packed, namespaces = dict(self.snapshots.items()), dict(self.namespaces.items())
        records = {} if settings.round.observe_only else _all_records(namespaces)
        self.memory = learnt(self.memory, records, settings, now_ms)
        found = situation_of(self.memory, records, settings, now_ms)
        view, obstacles = self._view(packed, records, settings)
        view = replace(found.shown(view), now_ms=now_ms)
        state = replace(self.memory.round, paused=self.memory.paused)
        plan, state = deciding(view, state, settings, now_ms, state.draws(self.name))
        obstacles[Rule.NO_CANDIDATE] += len(found.trouble.needs) - len(plan.repairs)
        look_ms = next_look(found.found, plan, self.memory, settings, now_ms)
        self.witness = Witness(Scene(view, self.memory, plan, state, settings, found))
        said = whys(self.witness)
        self.memory, shadow = compared(self.memory, view, plan, settings)
        self.memory = replace(self.memory, round=state, repair_ms=look_ms)
        if not settings.round.observe_only:
            flights = launched(plan, records, settings, now_ms)
            self.memory = replace(self.memory, in_flight=self.memory.in_flight | flights)
        hinted = computable(view) and not settings.round.observe_only
        context = Context(
            now_ms=now_ms,
            number=state.number,
            settings=settings,
            settings_version=self.memory.settings_version,
            problems=(*self._problems(), *said.problems),
            state_hash=self.fingerprint(packed, namespaces),
            liveness=self.memory.liveness,
            situation=found,
            hints=hints(view, settings, self.memory.sizes, state.number) if hinted else None,
            shadow=shadow,
            breaker=state.breaker,
            bias=state.ledger.bias,
            whys=said.of,
        )
        self.memory = replace(self.memory, problems=[])
        return json_row(self.name, Tag.ROUND, recorded(plan, view, +obstacles, context))

    def _explanations(self) -> list[Row]:
        told = explanations(self.witness) if self.explains and self.witness else None
        return [] if told is None else [json_row(self.name, Tag.WHY, told)]

    def _view(
        self, packed: Mapping[str, bytes], records: Mapping[str, Record], settings: Settings
    ) -> tuple[View, Counter[Rule]]:
        memory, holdings = self.memory, None
        snapshots = [unpack(packed[b], Snapshot) for b in heard(memory.appended, settings)]
        if not settings.round.observe_only:
            holdings = Holdings(
                records,
                frozenset(memory.flawed),
                memory.sizes,
                {bundle: flight.destination for bundle, flight in memory.in_flight.items()},
                memory.liveness.gone.keys(),
            )
        view, obstacles = assemble(self.name, snapshots, holdings)
        return replace(view, policies=memory.policies), obstacles

    def _problems(self) -> tuple[str, ...]:
        flaws = [
            f"{namespace}: {flaw}"
            for namespace, found in sorted(self.memory.flawed.items())
            for flaw in found
        ]
        found = (f"frozen: {found}" for found in self.memory.round.breaker.found)
        return (*resolved(self.memory, self.defaults)[1], *self.memory.problems, *flaws, *found)

    def _forget(self, now_ms: int, settings: Settings) -> None:
        in_flight = {b: f for b, f in self.memory.in_flight.items() if f.until_ms > now_ms}
        # What never reached the journal did not happen: the bundle need not rest for it.
        missed = self.memory.in_flight.keys() - in_flight.keys()
        recent = {b: ms for b, ms in self.memory.round.recent.items() if b not in missed}
        newest = max(self.memory.appended.values(), default=0)
        horizon = newest - settings.round.forget * 1000
        appended = {b: ms for b, ms in self.memory.appended.items() if ms >= horizon}
        for broker in self.memory.appended.keys() - appended.keys():
            self._set_aside(broker)
        self.memory = replace(
            self.memory,
            in_flight=in_flight,
            appended=appended,
            round=replace(self.memory.round, recent=recent),
            liveness=self.memory.liveness.recent(settings.flapping, now_ms),
        )

    def fingerprint(self, *mappings: Mapping[str, bytes]) -> str:
        """Hash of everything ② decides by: equal in a replay of the same batches."""
        digest = hashlib.blake2b(pack(self.memory), digest_size=8)
        for mapping in mappings:
            for key, value in sorted(mapping.items()):
                digest.update(key.encode())
                digest.update(value)
        return digest.hexdigest()


def _divided(
    born: Mapping[str, int], touched: Mapping[str, Mapping[str, Record]]
) -> dict[str, int]:
    """Those of the bundles ``born``, and when, that are not known to be made of several.

    What was merged lies within what it became and ended in the moment in which that began. The
    journal has each bundle on a partition of its own: the ends may be read before the beginning or
    after it, in this batch or another.
    """
    return {
        bundle: since
        for bundle, since in born.items()
        if not any(
            record.state is State.DELETED and record.since == since and within(bundle, part)
            for part, record in touched.get(namespace_of(bundle), {}).items()
        )
    }


def _all_records(namespaces: Mapping[str, bytes]) -> dict[str, Record]:
    records: dict[str, Record] = {}
    for packed in namespaces.values():
        records.update(unpack(packed, dict[str, Record]))
    return records


def _order(row: Row) -> tuple[int, str, int]:
    place, offset = row.subject.rsplit("/", 1)
    return row.appended_ms, place, int(offset)
