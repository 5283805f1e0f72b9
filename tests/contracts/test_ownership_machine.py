"""Redis and the server of simulations, side by side over random histories: they answer alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import TypeVar

import hypothesis.strategies as st
import msgspec
import redis
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from simulation.ownership.redis.rules import FREE
from simulation.ownership.redis.server import MemoryServer
from sinks.errors import SinkError
from sinks.redis.cluster_gate import Closure, ClusterGate
from sinks.redis.leasing.lease import FOR_THE_NEXT, Lease, Renewal
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import BatchOutcome, OwnershipStore
from tests.contracts.asking import commands, journal
from tests.support.examples import examples
from tests.support.opening import indexed, let_lapse
from trimtab.model import NO_EPOCH, Epoch, HashRange, merge_names, parse_bundle
from trimtab.ownership import JOB_EVENTS, TRANSITIONS, Event, State
from trimtab.wire import keys
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Candidate, Neighbour, Record, Transition, TransitionOutcome

BUNDLES = (
    "t/n/0x00000000_0x40000000",
    "t/n/0x40000000_0x80000000",
    "t/n/0x00000000_0x20000000",
    "t/n/0x20000000_0x40000000",
    "t/n/0x00000000_0x80000000",
)
"""Two bundles, the halves of the first, and what the two are together."""
ABOVE = {BUNDLES[0]: BUNDLES[1], BUNDLES[2]: BUNDLES[3]}
"""The neighbours that are merged."""
BROKERS = ("a", "b", "c")
LONG_MS = 10_000

T = TypeVar("T")

bundles = st.sampled_from(BUNDLES)
names = st.sampled_from(BROKERS)
events = st.sampled_from(Event)


def halves(bundle: str) -> tuple[str, ...]:
    namespace, (low, high) = parse_bundle(bundle)
    middle = (low + high) // 2
    return tuple(f"{namespace}/{HashRange(*part)}" for part in ((low, middle), (middle, high)))


def dividing(asked: Transition) -> Transition:
    return msgspec.structs.replace(asked, children=halves(asked.bundle))


def merging(asked: Transition, beside: Epoch) -> Transition:
    """With the neighbour at this epoch; at its end with what the two become."""
    above = ABOVE.get(asked.bundle)
    if above is None:
        return asked
    both = (merge_names(asked.bundle, above),) if asked.event is Event.RETIRE else ()
    return msgspec.structs.replace(asked, neighbour=Neighbour(above, beside), children=both)


def timeless(record: Record | None) -> Record | None:
    """Without its time: the two have clocks of their own."""
    return None if record is None else msgspec.structs.replace(record, since=0)


def bare(outcome: TransitionOutcome) -> TransitionOutcome:
    others = {bundle: timeless(record) for bundle, record in outcome.others.items()}
    return msgspec.structs.replace(outcome, record=timeless(outcome.record), others=others)


def told(lease: Lease | str) -> object:
    """Without what the two cannot have in common: times and the names of histories."""
    if isinstance(lease, str):
        return lease
    ms = 0 if lease.renewal is Renewal.WAITING else lease.ms
    return lease.renewal, "" if lease.renewal is Renewal.ASSERT else lease.detail, ms


def attempted(ask: Callable[[], T]) -> T | str:
    """The answer, or the name of the error."""
    try:
        return ask()
    except SinkError as error:
        return type(error).__name__


class Histories(RuleBasedStateMachine):
    client: redis.Redis
    numbers = count()

    def __init__(self) -> None:
        super().__init__()
        self.cluster = f"machine-{next(Histories.numbers)}"
        self.store, self.leases = OwnershipStore(self.client), Leases(self.client)
        self.gate = ClusterGate(self.client)
        self.model = MemoryServer(lambda: time.time_ns() // 1_000_000)
        self.known = ""
        """The model's history that this generation was opened on."""
        self.generation = 0
        self.batch = 0
        self.serial = 0
        self.requests: list[Transition] = []
        self.highest: dict[str, Epoch] = {}
        self.open_next()
        for name in BROKERS:
            self.renew(name)

    @rule(
        bundle=bundles,
        event=events,
        actor=names,
        other=names | st.none(),
        how=st.sampled_from(["on time", "late", "dividing", "merging"]),
    )
    def a_broker_asks(
        self, bundle: str, event: Event, actor: str, other: str | None, how: str
    ) -> None:
        asked = self._request(bundle, event, other, actor=actor, stale=how == "late")
        if how == "merging":
            asked = merging(asked, self._epoch(ABOVE.get(bundle, "")))
        self._ask_as_broker(dividing(asked) if how == "dividing" else asked)

    @rule(steps=st.lists(st.tuples(bundles, names, st.integers(0, 11)), min_size=4, max_size=12))
    def legal_steps_follow_each_other(self, steps: list[tuple[str, str, int]]) -> None:
        for bundle, other, choice in steps:
            old = self.model.of(self.cluster).records.get(bundle, FREE)
            legal = sorted(TRANSITIONS[old.state])
            event = legal[choice % len(legal)]
            merges = event is Event.MERGE or (old.state, event) == (State.MERGING, Event.RETIRE)
            if event in JOB_EVENTS:
                asked = self._request(bundle, event, other)
                beside = self._epoch(ABOVE.get(bundle, ""))
                self._ask_as_job([merging(asked, beside) if merges else asked])
            elif event is Event.CLAIM:
                self._ask_as_broker(self._request(bundle, event, other, actor=other))
            else:
                asked = self._request(bundle, event, old.destination, actor=old.owner)
                if merges:
                    asked = merging(asked, self._epoch(ABOVE.get(bundle, "")))
                elif event is Event.RETIRE:
                    asked = dividing(asked)
                self._ask_as_broker(asked)

    @rule(
        lower=st.sampled_from(sorted(ABOVE)),
        owners=names.map(lambda name: (name, name)) | st.tuples(names, names),
        end=st.sampled_from([Event.RETIRE, Event.RETIRE, Event.KEEP, Event.DECLINE, Event.LOSE]),
        divided=st.booleans(),
        stale=st.sampled_from([False, False, True]),
    )
    def two_neighbours_are_merged(
        self, lower: str, owners: tuple[str, str], end: Event, divided: bool, stale: bool
    ) -> None:
        """Perhaps of two owners, perhaps with one that has moved on meanwhile, or is divided."""
        upper = ABOVE[lower]
        for bundle, owner in zip((lower, upper), owners, strict=True):
            held = self.model.of(self.cluster).records.get(bundle, FREE)
            if held.owner not in (None, owner):
                self.a_broker_dies(held.owner)
                self._ask_as_job([self._request(bundle, Event.LOSE)])
                self.renew(held.owner)
            self._ask_as_broker(self._request(bundle, Event.CLAIM, actor=owner))
        asked = self._request(lower, Event.MERGE, owners[0])
        self._ask_as_job([merging(asked, self._epoch(upper))])
        if end is not Event.RETIRE:
            asked = self._request(upper, end, actor=None if end in JOB_EVENTS else owners[1])
            ask = self._ask_as_broker if asked.actor else lambda asked: self._ask_as_job([asked])
            ask(asked)
            if divided:
                self._ask_as_job([self._request(upper, Event.SPLIT)])
        asked = self._request(lower, Event.RETIRE, actor=owners[0])
        beside = self._epoch(upper)
        beside = Epoch(beside.generation, beside.counter + stale)
        self._ask_as_broker(merging(asked, beside))

    @rule(asked=st.lists(st.tuples(bundles, events, names | st.none(), st.booleans()), max_size=4))
    def the_job_asks(self, asked: list[tuple[str, Event, str | None, bool]]) -> None:
        self._ask_as_job(
            [
                self._request(bundle, event, other, stale=stale)
                for bundle, event, other, stale in asked
            ]
        )

    @rule(
        bundle=bundles,
        actor=names,
        loads=st.permutations((0.3, 0.4, 0.45)),
        seen=st.lists(st.integers(-1, 2), min_size=2, max_size=2),
    )
    def a_lookup_looks_for_an_owner(
        self, bundle: str, actor: str, loads: list[float], seen: list[int]
    ) -> None:
        asked = self._request(bundle, Event.ASSIGN, actor=actor)
        candidates = tuple(map(Candidate, BROKERS[1:], loads))
        told = tuple(self._own(asked.id, name, bundle) for name, _ in candidates)
        self._ask_as_broker(
            msgspec.structs.replace(
                asked,
                candidates=candidates,
                each=0.06,
                commands=told,
                tallies={
                    name: {f"n {name}": value, "g": -1}
                    for (name, _), value in zip(candidates, seen, strict=True)
                },
            )
        )

    @rule(name=names, session=st.integers(1, 3))
    def renew(self, name: str, session: int = 1) -> None:
        mine, model = self._renewals(name, session)
        if isinstance(mine, Lease) and mine.renewal is Renewal.ASSERT:
            said = Assertion(records=self.model.of(self.cluster).records.copy())
            mine, model = self._renewals(name, session, said)
        assert told(mine) == told(model)

    def _renewals(
        self, name: str, session: int, said: Assertion | None = None
    ) -> tuple[Lease | str, Lease | str]:
        asked = self.cluster, name, session, LONG_MS, said
        return (
            attempted(lambda: self.leases.renew(*asked)),
            attempted(lambda: self.model.renew(*asked)),
        )

    @rule(name=names, session=st.integers(1, 3), rest=st.sampled_from([0, FOR_THE_NEXT]))
    def a_process_ends(self, name: str, session: int, rest: int) -> None:
        mine = self.leases.renew(self.cluster, name, session, rest)
        model = self.model.renew(self.cluster, name, session, rest)
        assert (mine.renewal, mine.detail) == (model.renewal, model.detail)
        if mine.detail == str(session) and rest == 0:
            # It is gone within a millisecond or a second: at once, for both.
            self.a_broker_dies(name)

    @rule(name=names)
    def a_broker_dies(self, name: str) -> None:
        let_lapse(self.client, self.cluster, name)
        self.model.delete_lease(self.cluster, name)
        if noted := self.model.of(self.cluster).sessions.get(name):
            self.model.data.put(self.cluster, "sessions", name, (noted[0], 1))

    @rule(name=names)
    def a_lease_is_deleted(self, name: str) -> None:
        self.client.delete(keys.lease_key(self.cluster, name))
        self.model.delete_lease(self.cluster, name)

    @rule()
    def the_last_batch_is_repeated(self) -> None:
        self._run(self.requests)

    @rule()
    def an_older_job_asks(self) -> None:
        self._run([self._request(BUNDLES[0], Event.ASSIGN, "a")], self.generation - 1)

    @rule()
    def the_server_is_another(self) -> None:
        self.client.hset(keys.open_key(self.cluster), "replid", "f" * 40)
        opening = self.model.of(self.cluster).opening
        moved = opening._replace(opened_on="f" * 40)
        self.model.data.put(self.cluster, "openings", "", moved)

    @rule()
    def the_server_is_empty(self) -> None:
        for key in self.client.scan_iter(match=f"trimtab:{{{self.cluster}}}:*"):
            self.client.delete(key)
        self.model.flush()

    @rule()
    def its_records_are_deleted(self) -> None:
        self.client.delete(keys.ownership_key(self.cluster), keys.bundles_key(self.cluster))
        self.model.delete_records(self.cluster)

    @rule()
    def another_takes_its_place(self) -> None:
        """A replica with all of its data is promoted: it answers no client before that."""
        self.client.replicaof("127.0.0.1", 1)
        self.model.demote()
        try:
            self.renew("a")
            self._ask_as_broker(self._request(BUNDLES[0], Event.CLAIM, actor="a"))
            self.the_job_looks_whether_it_is_open()
        finally:
            self.client.replicaof("no", "one")
            self.model.restart()
            self.model.knows_scripts = True

    @rule(replicas=st.sampled_from([0, 0, 1]))
    def so_many_replicas_must_acknowledge(self, replicas: int) -> None:
        """There are none."""
        if not self.model.of(self.cluster).is_empty:
            self.client.hset(keys.open_key(self.cluster), "replicas", str(replicas))
            opening = self.model.of(self.cluster).opening._replace(replicas=replicas)
            self.model.data.put(self.cluster, "openings", "", opening)

    @rule()
    def the_job_looks_whether_it_is_open(self) -> None:
        mine = attempted(lambda: ClusterGate(self.client).open(self.cluster, self.generation))
        model = attempted(lambda: self.model.open(self.cluster, self.generation, ""))
        self._opened_alike(mine, model)

    @rule()
    def the_job_that_has_opened_it_asks_again(self) -> None:
        mine = attempted(lambda: self.gate.open(self.cluster, self.generation))
        model = attempted(lambda: self.model.open(self.cluster, self.generation, self.known))
        self._opened_alike(mine, model)

    def _opened_alike(self, mine: Closure | str | None, model: Closure | str | None) -> None:
        assert (mine is None) == (model is None)
        if isinstance(mine, str) or isinstance(model, str):
            assert mine == model

    @rule()
    def open_next(self) -> None:
        self.generation += 1
        mine = attempted(lambda: self.gate.open(self.cluster, self.generation))
        model = attempted(lambda: self.model.open(self.cluster, self.generation, ""))
        self._opened_alike(mine, model)
        if isinstance(mine, str):
            self.known = ""
            return
        if isinstance(mine, Closure) and isinstance(model, Closure):
            self._restore()
            assert self.gate.open(self.cluster, self.generation, mine.history) is None
            assert self.model.open(self.cluster, self.generation, "", model.history) is None
        self.known = self.model.history

    def _restore(self) -> None:
        """Some of what was ever written, older and newer than what stands."""
        lost = {
            bundle: Record(state=State.OWNED, epoch=epoch, owner="a")
            for bundle, epoch in self.highest.items()
        }
        counts = [
            self.gate.restore(self.cluster, self.generation, lost, {BUNDLES[0]}),
            self.model.restore(self.cluster, self.generation, lost, {BUNDLES[0]}),
        ]
        assert counts[0] == counts[1]
        self.gate.note_owned(self.cluster, self.generation, BUNDLES)
        self.model.note_owned(self.cluster, self.generation, BUNDLES)

    @invariant()
    def what_each_broker_owns_is_noted_alike(self) -> None:
        for name in BROKERS:
            noted = self.client.smembers(keys.owned_key(self.cluster, name))
            assert noted == {b.encode() for b in self.model.owned(self.cluster, name)}

    @invariant()
    def records_are_the_same(self) -> None:
        found = {b: timeless(r) for b, r in self.store.records(self.cluster).items()}
        assert found == {b: timeless(r) for b, r in self.model.of(self.cluster).records.items()}

    @invariant()
    def the_index_names_what_stands(self) -> None:
        standing = sorted(
            bundle
            for bundle, record in self.model.of(self.cluster).records.items()
            if record.state is not State.DELETED
        )
        assert indexed(self.client, self.cluster) == standing

    @invariant()
    def epochs_only_grow(self) -> None:
        for bundle, record in self.model.of(self.cluster).records.items():
            assert record.epoch >= self.highest.get(bundle, NO_EPOCH)
            self.highest[bundle] = record.epoch

    @invariant()
    def journals_and_streams_are_the_same(self) -> None:
        assert [
            (change.bundle, change.event, timeless(change.record))
            for change in journal(self.client, self.cluster)
        ] == [
            (change.bundle, change.event, timeless(change.record))
            for change in self.model.of(self.cluster).journal.values()
        ]
        for name in BROKERS:
            told = [command.id for command in commands(self.client, self.cluster, name)]
            waiting = self.model.of(self.cluster).commands.get(name, ())
            assert told == [command.id for _, command in waiting]

    def _epoch(self, bundle: str) -> Epoch:
        return self.model.of(self.cluster).records.get(bundle, FREE).epoch

    def _request(
        self,
        bundle: str,
        event: Event,
        other: str | None = None,
        *,
        actor: str | None = None,
        stale: bool = False,
    ) -> Transition:
        self.serial += 1
        name = f"{self.cluster}/{self.serial}"
        epoch = self._epoch(bundle)
        return Transition(
            id=name,
            bundle=bundle,
            event=event,
            expect=Epoch(epoch.generation, epoch.counter + stale),
            broker=other,
            actor=actor,
            commands=(self._own(name, other, bundle),) if other else (),
        )

    def _own(self, request: str, broker: str, bundle: str) -> Command:
        return Command(
            id=f"{request}/{broker}",
            cluster=self.cluster,
            broker=broker,
            kind=CommandKind.OWN,
            bundle=bundle,
        )

    def _ask_as_broker(self, asked: Transition) -> None:
        for _ in range(2):
            mine = attempted(lambda: bare(self.store.apply(self.cluster, asked)))
            model = attempted(lambda: bare(self.model.apply(self.cluster, asked)))
            assert mine == model, asked

    def _ask_as_job(self, requests: list[Transition]) -> None:
        self.batch += 1
        self._run(requests)
        self.requests = requests

    def _run(self, requests: list[Transition], generation: int = 0) -> None:
        def run(store: OwnershipStore | MemoryServer) -> BatchOutcome:
            done = store.apply_batch(
                self.cluster,
                requests,
                generation=generation or self.generation,
                query_id="q",
                batch=self.batch,
            )
            return BatchOutcome(tuple(map(bare, done.outcomes)), done.repeated)

        assert attempted(lambda: run(self.store)) == attempted(lambda: run(self.model)), requests


def test_redis_answers_as_the_server_of_simulations_does(client: redis.Redis) -> None:
    Histories.client = client
    run_state_machine_as_test(
        Histories,
        settings=settings(
            examples(200),
            stateful_step_count=30,
            deadline=None,
            # Against a real server shrinking takes minutes, and seldom finds what is shorter.
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
        ),
    )
