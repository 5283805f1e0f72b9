"""The transition script against a model too simple to be wrong, over random histories."""

from __future__ import annotations

from collections import Counter
from itertools import count

import hypothesis.strategies as st
import msgspec
import pytest
import redis
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from simulation.ownership_rules import FREE, Judgement, Standing, judge
from sinks.errors import Closed, Fenced
from sinks.ownership_store import BatchOutcome, OwnershipStore
from tests.contracts.asking import commands, journal
from tests.support.opening import keep_alive, let_in
from trimtab.model import NO_EPOCH, Epoch, HashRange, parse_bundle
from trimtab.ownership import JOB_EVENTS, TRANSITIONS, Event, State
from trimtab.wire.command import Command, Kind
from trimtab.wire.keys import lease_key
from trimtab.wire.ownership import Candidate, Outcome, Record, Refused, Transition

BUNDLES = (
    "t/n/0x00000000_0x40000000",
    "t/n/0x40000000_0x80000000",
    "t/n/0x00000000_0x20000000",
    "t/n/0x20000000_0x40000000",
)
"""Two bundles, and the halves of the first."""
BROKERS = ("a", "b", "c")

bundles = st.sampled_from(BUNDLES)
names = st.sampled_from(BROKERS)
events = st.sampled_from(Event)


def halves(bundle: str) -> tuple[str, ...]:
    namespace, (low, high) = parse_bundle(bundle)
    middle = (low + high) // 2
    return tuple(f"{namespace}/{HashRange(*part)}" for part in ((low, middle), (middle, high)))


class Model:
    """One record a bundle, in a dict, and who is alive."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.accepted: list[tuple[Transition, Judgement]] = []
        self.alive: set[str] = set(BROKERS)
        self.placed: Counter[str] = Counter()

    def apply(self, asked: Transition, generation: int) -> Refused | None:
        old = self.records.get(asked.bundle, FREE)
        if old.by == asked.id:
            fell = old.state is State.QUARANTINED and asked.event is not Event.QUARANTINE
            return Refused.QUARANTINED if fell else None
        # All happens within SOON_MS, so any two times do.
        here = Standing(self.records, generation, 1, self.alive.__contains__, self.placed)
        judged = judge(asked, here)
        if judged.written:
            self.records |= judged.written
            self.accepted.append((asked, judged))
        if judged.refused is None and asked.candidates:
            self.placed[judged.written[asked.bundle].owner or ""] += 1
        return judged.refused


def _dividing(asked: Transition) -> Transition:
    return msgspec.structs.replace(asked, children=halves(asked.bundle))


class Histories(RuleBasedStateMachine):
    client: redis.Redis
    numbers = count()

    def __init__(self) -> None:
        super().__init__()
        self.cluster = f"machine-{next(Histories.numbers)}"
        self.store = OwnershipStore(self.client)
        self.model = Model()
        self.generation = 1
        self.batch = 0
        self.serial = 0
        self.last: tuple[list[Transition], BatchOutcome] | None = None
        self.highest: dict[str, Epoch] = {}
        let_in(self.client, self.cluster, self.generation)
        keep_alive(self.client, self.cluster, BROKERS)
        self.model.alive.update(BROKERS)

    @rule(
        bundle=bundles,
        event=events,
        actor=names,
        other=names | st.none(),
        how=st.sampled_from(["plainly", "late", "dividing"]),
    )
    def a_broker_asks(
        self, bundle: str, event: Event, actor: str, other: str | None, how: str
    ) -> None:
        asked = self._request(bundle, event, other, actor=actor, stale=how == "late")
        self._ask_as_broker(_dividing(asked) if how == "dividing" else asked)

    @rule(steps=st.lists(st.tuples(bundles, names, st.integers(0, 11)), min_size=4, max_size=12))
    def legal_steps_follow_each_other(self, steps: list[tuple[str, str, int]]) -> None:
        for bundle, other, choice in steps:
            old = self.model.records.get(bundle, FREE)
            legal = sorted(TRANSITIONS[old.state])
            event = legal[choice % len(legal)]
            if event in JOB_EVENTS:
                self._ask_as_job([self._request(bundle, event, other)])
            elif event is Event.CLAIM:
                self._ask_as_broker(self._request(bundle, event, other, actor=other))
            else:
                divides = (old.state, event) == (State.SPLITTING, Event.RETIRE)
                asked = self._request(bundle, event, old.destination, actor=old.owner)
                self._ask_as_broker(_dividing(asked) if divides else asked)

    @rule(asked=st.lists(st.tuples(bundles, events, names | st.none(), st.booleans()), max_size=4))
    def the_job_asks(self, asked: list[tuple[str, Event, str | None, bool]]) -> None:
        requests = [
            self._request(bundle, event, other, stale=stale)
            for bundle, event, other, stale in asked
        ]
        self._ask_as_job(requests)

    @rule(name=names, lives=st.booleans())
    def a_broker_dies_or_returns(self, name: str, lives: bool) -> None:
        self.client.delete(lease_key(self.cluster, name))
        self.model.alive.discard(name)
        if lives:
            keep_alive(self.client, self.cluster, (name,))
            self.model.alive.add(name)

    @rule(bundle=bundles, actor=names, loads=st.permutations((0.3, 0.4, 0.45)))
    def a_lookup_looks_for_an_owner(self, bundle: str, actor: str, loads: list[float]) -> None:
        asked = self._request(bundle, Event.ASSIGN, actor=actor)
        candidates = tuple(map(Candidate, BROKERS[1:], loads))
        told = tuple(
            Command(
                id=f"{asked.id}/{name}",
                cluster=self.cluster,
                broker=name,
                kind=Kind.OWN,
                bundle=bundle,
            )
            for name, _ in candidates
        )
        self._ask_as_broker(
            msgspec.structs.replace(asked, candidates=candidates, each=0.06, commands=told)
        )

    @rule(disaster=st.sampled_from(["repeated batch", "older job", "new job", "empty store"]))
    def something_goes_wrong(self, disaster: str) -> None:
        match disaster:
            case "repeated batch" if self.last is not None:
                requests, done = self.last
                assert self._run(requests) == BatchOutcome(done.outcomes, repeated=True)
            case "older job" if self.generation > 1:
                with pytest.raises(Fenced):
                    self._run([self._request(BUNDLES[0], Event.ASSIGN, "a")], self.generation - 1)
            case "new job":
                self._open_next()
            case "empty store":
                self._lose_everything()
                with pytest.raises(Closed):
                    self.store.apply(
                        self.cluster, self._request(BUNDLES[0], Event.CLAIM, actor="a")
                    )
                self._open_next()

    @invariant()
    def records_are_the_models(self) -> None:
        found = self.store.records(self.cluster)
        assert set(found) == set(self.model.records)
        for bundle, record in found.items():
            self._same(record, self.model.records[bundle])

    @invariant()
    def epochs_only_grow(self) -> None:
        for bundle, record in self.model.records.items():
            assert record.epoch >= self.highest.get(bundle, NO_EPOCH)
            self.highest[bundle] = record.epoch

    @invariant()
    def journal_and_streams_hold_what_was_accepted(self) -> None:
        accepted = self.model.accepted
        assert [
            (change.bundle, change.event, change.record.by)
            for change in journal(self.client, self.cluster)
        ] == [
            (bundle, judged.event, asked.id)
            for asked, judged in accepted
            for bundle in judged.written
        ]
        for name in BROKERS:
            told = [command.id for command in commands(self.client, self.cluster, name)]
            assert told == [
                command.id
                for asked, judged in accepted
                for command in asked.commands
                if judged.refused is None and command.broker == name
                if not asked.candidates or judged.written[asked.bundle].owner == name
            ]

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
        record = self.model.records.get(bundle)
        epoch = record.epoch if record is not None else NO_EPOCH
        told = Command(
            id=f"{name}/own",
            cluster=self.cluster,
            broker=other or "a",
            kind=Kind.OWN,
            bundle=bundle,
        )
        return Transition(
            id=name,
            bundle=bundle,
            event=event,
            expect=Epoch(epoch.generation, epoch.counter + stale),
            broker=other,
            actor=actor,
            commands=(told,) if other else (),
        )

    def _ask_as_broker(self, asked: Transition) -> None:
        outcome = self.store.apply(self.cluster, asked)
        self._check(asked, outcome)
        if outcome.accepted:
            assert self.store.apply(self.cluster, asked) == outcome

    def _ask_as_job(self, requests: list[Transition]) -> None:
        self.batch += 1
        done = self._run(requests)
        assert not done.repeated
        for request, outcome in zip(requests, done.outcomes, strict=True):
            self._check(request, outcome)
        self.last = (requests, done)

    def _run(self, requests: list[Transition], generation: int = 0) -> BatchOutcome:
        return self.store.apply_batch(
            self.cluster,
            requests,
            generation=generation or self.generation,
            query_id="q",
            batch=self.batch,
        )

    def _open_next(self) -> None:
        self.generation += 1
        let_in(self.client, self.cluster, self.generation)
        keep_alive(self.client, self.cluster, BROKERS)
        self.model.alive.update(BROKERS)

    def _lose_everything(self) -> None:
        for key in self.client.scan_iter(match=f"trimtab:{{{self.cluster}}}:*"):
            self.client.delete(key)
        self.model = Model()
        self.model.alive.clear()
        self.last = None

    def _check(self, asked: Transition, outcome: Outcome) -> None:
        refused = self.model.apply(asked, self.generation)
        assert (outcome.accepted, outcome.reason) == (refused is None, refused), asked
        expected = self.model.records.get(asked.bundle)
        assert (outcome.record is None) == (expected is None)
        if outcome.record is not None and expected is not None:
            self._same(outcome.record, expected)

    @staticmethod
    def _same(found: Record, expected: Record) -> None:
        assert found.since > 0
        assert (
            found.state,
            found.epoch,
            found.owner,
            found.destination,
            found.by,
            found.falls,
        ) == (
            expected.state,
            expected.epoch,
            expected.owner,
            expected.destination,
            expected.by,
            expected.falls,
        )


def test_the_script_does_what_the_model_does(client: redis.Redis) -> None:
    Histories.client = client
    run_state_machine_as_test(
        Histories, settings=settings(max_examples=100, stateful_step_count=30, deadline=None)
    )
