"""Holds one round of a cluster: assembles the view, finds what needs repair, decides, remembers the
issued changes, and builds the record for the sinks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from trimtab.cluster.intents.settings import resolve_settings
from trimtab.cluster.pending_intents import note_round
from trimtab.cluster.placement_hints import hints
from trimtab.cluster.plans.drains import follow_drains
from trimtab.cluster.plans.keeping import keep_plan
from trimtab.cluster.plans.progress import expire_plans, note_granted
from trimtab.cluster.round_record import Context, record_round
from trimtab.cluster.state import ClusterState, hash_state
from trimtab.explaining.rules.repairs import advise_partitions
from trimtab.explaining.rules.skips import resume
from trimtab.explaining.scene import Scene
from trimtab.explaining.shortages import find_shortages
from trimtab.explaining.telling import whys
from trimtab.explaining.witness import Witness
from trimtab.health.assessment import situation_of
from trimtab.health.repair import next_look
from trimtab.health.unsettled import learn_records
from trimtab.intake.assemble import Holdings, assemble
from trimtab.intake.latest import Latest, with_latest
from trimtab.intake.snapshot import Snapshot
from trimtab.plan import Plan
from trimtab.reasons import Rule
from trimtab.round.urgent import computable
from trimtab.settings import Settings
from trimtab.shadow.run import compare_shadow
from trimtab.splitting.busy_topics import BusyTopic
from trimtab.state.in_flight import launch_flights
from trimtab.state.liveness import heard
from trimtab.state.memory import Memory, set_apart
from trimtab.state.round_state import RoundState
from trimtab.view import View
from trimtab.wire.columns import inflate, pack, unpack
from trimtab.wire.hints import Hints
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.ownership import Record
from trimtab.wire.rows import Row, Tag, json_row

Deciding = Callable[[View, RoundState, Settings, int, np.random.Generator], tuple[Plan, RoundState]]
"""`trimtab.round.decide.decide`, or `trimtab.round.decide.repair_only` between two rounds."""


_SWEEP_ROUNDS: Final = 100
"""Rounds between two sweeps for forgotten brokers."""


class HeldRound(NamedTuple):
    """What a round leaves: the cluster's memory, the witness, and the record for the sinks."""

    memory: Memory
    witness: Witness
    record: Row
    learnt: bytes
    """What the memory has of rounds (`trimtab.state.memory.Learnt`), packed."""
    outcomes: tuple[IntentOutcome, ...] = ()
    """What the round made known of intents."""


def forget_old(cluster: ClusterState, now_ms: int) -> None:
    """Forget, before a round, what is too old for it: changes that never landed, silent brokers."""
    settings = cluster.settings
    in_flight = {b: f for b, f in cluster.memory.in_flight.items() if f.until_ms > now_ms}
    # A change that never reached the journal did not happen: its bundle needs no cooldown.
    missed = cluster.memory.in_flight.keys() - in_flight.keys()
    recent = {b: ms for b, ms in cluster.memory.round.recent.items() if b not in missed}
    newest = max(cluster.memory.appended.values(), default=0)
    horizon = newest - settings.round.forget * 1000
    cluster.set_aside({b for b, ms in cluster.memory.appended.items() if ms < horizon})
    # Not in every round: it reads every snapshot that was set aside.
    if cluster.memory.round.number % _SWEEP_ROUNDS == 0:
        cluster.drop_forgotten(now_ms)
    cluster.memory = replace(
        cluster.memory,
        in_flight=in_flight,
        paces={b: p for b, p in cluster.memory.paces.items() if b in cluster.memory.appended},
        round=replace(cluster.memory.round, recent=recent),
        liveness=cluster.memory.liveness.recent(settings.flapping, now_ms),
        controls=cluster.memory.controls.at(now_ms),
    )
    cluster.memory = expire_plans(cluster.memory, now_ms)


def hold_round(cluster: ClusterState, now_ms: int, deciding: Deciding) -> HeldRound:
    """Decide once on what the cluster knows. ``now_ms`` is the batch timestamp."""
    settings = cluster.settings
    # One pass over each mapping: a read by key costs Spark a round trip to the JVM. Decompressed
    # once for the view and for the hash.
    packed = {broker: inflate(each) for broker, each in cluster.snapshots.items()}
    latest = dict(cluster.latest.items())
    namespaces = dict(cluster.namespaces.items())
    records = {} if settings.round.observe_only else _all_records(namespaces)
    memory = learn_records(cluster.memory, records, settings, now_ms)
    found = situation_of(memory, records, settings, now_ms)
    snapshots = _snapshots(heard(memory.appended, memory.paces, settings), packed, latest)
    view, obstacles = _view(cluster.name, memory, snapshots, records, settings)
    view = replace(found.shown(view), now_ms=now_ms)
    state = replace(memory.round, paused=memory.paused)
    plan, state = deciding(view, state, settings, now_ms, state.draws(cluster.name))
    obstacles[Rule.NO_CANDIDATE] += len(found.trouble.needs) - len(plan.repairs) - plan.postponed
    look_ms = next_look(found.found, plan, memory, settings, now_ms)
    scene = Scene(view, memory, plan, state, settings, found)
    witness = Witness(scene)
    said = whys(witness)
    busy = tuple(witness.scene.busy_topics.values())
    memory, shadow = compare_shadow(memory, view, plan, settings)
    memory = replace(memory, round=state, repair_ms=look_ms)
    memory = _note_plan(memory, cluster.memory, scene, records)
    memory, outcomes = note_round(cluster.name, memory, plan, records, now_ms)
    rest, of_rounds = set_apart(memory)
    learnt = pack(of_rounds)
    context = Context(
        now_ms=now_ms,
        settings=settings,
        memory=memory,
        situation=found,
        problems=(
            *_problems(cluster.name, memory, cluster.defaults),
            *said.problems,
            *find_shortages(view, settings),
            *map(_advice, busy),
        ),
        state_hash=hash_state(rest, learnt, packed, latest, namespaces),
        hints=_hints(view, settings, state, memory),
        shadow=shadow,
        whys=said.of,
        busy_topics=busy,
    )
    record = record_round(plan, view, +obstacles, context)
    row = json_row(cluster.name, Tag.ROUND, record)
    return HeldRound(replace(memory, problems=[]), witness, row, learnt, outcomes)


def _note_plan(
    memory: Memory, before: Memory, scene: Scene, records: Mapping[str, Record]
) -> Memory:
    """The memory with the effects of the round's plan; ``before``: that before the round."""
    plan, settings, now_ms = scene.plan, scene.settings, scene.now_ms
    memory = keep_plan(note_granted(memory, plan, settings, now_ms), scene)
    memory = follow_drains(memory, records, settings, now_ms)
    if settings.round.observe_only:
        # It was shown no records: what must be repaired once it acts is not forgotten.
        memory = replace(memory, liveness=before.liveness, readmitted=before.readmitted)
        return replace(memory, created=before.created)
    flights = launch_flights(plan, records, settings, now_ms)
    return replace(memory, in_flight=memory.in_flight | flights)


def _snapshots(
    brokers: Iterable[str], packed: Mapping[str, bytes], latest: Mapping[str, bytes]
) -> list[Snapshot]:
    """Each broker's snapshot with its latest figures."""
    found = []
    for broker in brokers:
        snapshot = unpack(packed[broker], Snapshot)
        newer = latest.get(broker)
        found.append(with_latest(snapshot, unpack(newer, Latest)) if newer else snapshot)
    return found


def _view(
    cluster: str,
    memory: Memory,
    snapshots: Sequence[Snapshot],
    records: Mapping[str, Record],
    settings: Settings,
) -> tuple[View, Counter[Rule]]:
    holdings = None
    if not settings.round.observe_only:
        holdings = Holdings(
            records,
            frozenset(memory.flawed),
            memory.sizes,
            {bundle: flight.destination for bundle, flight in memory.in_flight.items()},
            memory.liveness.gone.keys(),
        )
    view, obstacles = assemble(cluster, snapshots, holdings)
    return replace(view, policies=memory.policies, controls=memory.controls), obstacles


def _hints(view: View, settings: Settings, state: RoundState, memory: Memory) -> Hints | None:
    if settings.round.observe_only or not computable(view.brokers, view.bundles):
        return None
    return hints(view, settings, state.number, state.histories, memory.in_flight)


def _advice(busy: BusyTopic) -> str:
    return f"{busy.bundle}: {advise_partitions(busy)}"


def _problems(cluster: str, memory: Memory, defaults: Settings) -> tuple[str, ...]:
    flaws = [
        f"{namespace}: {flaw}"
        for namespace, found in sorted(memory.flawed.items())
        for flaw in found
    ]
    end = resume(cluster)
    found = (f"frozen: {found}; {end} ends it" for found in memory.round.breaker.found)
    return (
        *resolve_settings(memory, defaults)[1],
        *memory.problems,
        *flaws,
        *found,
    )


def _all_records(namespaces: Mapping[str, bytes]) -> dict[str, Record]:
    records: dict[str, Record] = {}
    for packed in namespaces.values():
        records.update(unpack(packed, dict[str, Record]))
    return records
