"""The transition script against a model too simple to be wrong, over random histories."""

from __future__ import annotations

from itertools import count

import hypothesis.strategies as st
import redis
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from sinks.errors import Closed, Fenced
from sinks.ownership_store import BatchOutcome, OwnershipStore
from tests.contracts.asking import commands, journal
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import BROKER_EVENTS, TRANSITIONS, Event, OwnerRule, State
from trimtab.wire.command import Command, Kind
from trimtab.wire.ownership import Outcome, Record, Refused, Transition

BUNDLES = tuple(f"t/n/0x{low}0000000_0x{low + 4}0000000" for low in (0, 4))
BROKERS = ("a", "b", "c")

bundles = st.sampled_from(BUNDLES)
names = st.sampled_from(BROKERS)
events = st.sampled_from(Event)


class Model:
    """One record a bundle, in a dict."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.accepted: list[Transition] = []

    def apply(self, asked: Transition, generation: int) -> Refused | None:
        old = self.records.get(asked.bundle, Record(state=State.FREE, epoch=NO_EPOCH))
        if old.by == asked.id:
            return None
        if (asked.event in BROKER_EVENTS) != (asked.actor is not None):
            return Refused.NOT_PERMITTED
        if asked.expect != old.epoch:
            return Refused.STALE_EPOCH
        if asked.event not in TRANSITIONS[old.state]:
            return Refused.ILLEGAL
        state, owner_rule = TRANSITIONS[old.state][asked.event]
        new = Record(
            state=state,
            epoch=Epoch(generation, old.epoch.counter + 1),
            owner={
                OwnerRule.KEEP: old.owner,
                OwnerRule.KEEP_AIM: old.owner,
                OwnerRule.TAKE: asked.broker or asked.actor,
                OwnerRule.DESTINATION: old.destination,
                OwnerRule.NOBODY: None,
            }[owner_rule],
            destination=asked.broker if owner_rule is OwnerRule.KEEP_AIM else None,
            by=asked.id,
        )
        refused = self._refused(asked, old, new)
        if refused is None:
            self.records[asked.bundle] = new
            self.accepted.append(asked)
        return refused

    def _refused(self, asked: Transition, old: Record, new: Record) -> Refused | None:
        if new.owner is None and asked.event in {Event.CLAIM, Event.ASSIGN, Event.HAND_OVER}:
            return Refused.NO_BROKER
        if asked.actor is None:
            return None
        if asked.actor != (new.owner if asked.event is Event.CLAIM else old.owner):
            return Refused.NOT_OWNER
        if any(command.broker != old.destination for command in asked.commands):
            return Refused.NOT_PERMITTED
        return None


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
        self.store.open_cluster(self.cluster, self.generation)

    @rule(bundle=bundles, event=events, actor=names, other=names | st.none(), stale=st.booleans())
    def a_broker_asks(
        self, bundle: str, event: Event, actor: str, other: str | None, stale: bool
    ) -> None:
        self._ask_as_broker(self._request(bundle, event, other, actor=actor, stale=stale))

    @rule(bundle=bundles, other=names, data=st.data())
    def the_next_step_is_legal(self, bundle: str, other: str, data: st.DataObject) -> None:
        old = self.model.records.get(bundle, Record(state=State.FREE, epoch=NO_EPOCH))
        event = data.draw(st.sampled_from(sorted(TRANSITIONS[old.state])))
        if event not in BROKER_EVENTS:
            self._ask_as_job([self._request(bundle, event, other)])
        elif event is Event.CLAIM:
            self._ask_as_broker(self._request(bundle, event, other, actor=other))
        else:
            self._ask_as_broker(self._request(bundle, event, old.destination, actor=old.owner))

    @rule(asked=st.lists(st.tuples(bundles, events, names | st.none(), st.booleans()), max_size=4))
    def the_job_asks(self, asked: list[tuple[str, Event, str | None, bool]]) -> None:
        requests = [
            self._request(bundle, event, other, stale=stale)
            for bundle, event, other, stale in asked
        ]
        self._ask_as_job(requests)

    @rule()
    def the_job_repeats_its_batch(self) -> None:
        if self.last is not None:
            requests, done = self.last
            assert self._run(requests) == BatchOutcome(done.outcomes, repeated=True)

    @rule()
    def an_older_job_comes_late(self) -> None:
        if self.generation > 1:
            try:
                self.store.apply_batch(
                    self.cluster,
                    [self._request(BUNDLES[0], Event.ASSIGN, "a")],
                    generation=self.generation - 1,
                    query_id="older",
                    batch=1,
                )
            except Fenced:
                return
            raise AssertionError("an older job was let in")

    @rule()
    def the_next_job_starts(self) -> None:
        self.generation += 1
        self.store.open_cluster(self.cluster, self.generation)

    @rule()
    def redis_loses_everything(self) -> None:
        for key in self.client.scan_iter(match=f"trimtab:{{{self.cluster}}}:*"):
            self.client.delete(key)
        self.model = Model()
        self.last = None
        try:
            self.store.apply(self.cluster, self._request(BUNDLES[0], Event.CLAIM, actor="a"))
        except Closed:
            self.the_next_job_starts()
        else:
            raise AssertionError("a claim on a store that nobody opened")

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
        ] == [(asked.bundle, asked.event, asked.id) for asked in accepted]
        for name in BROKERS:
            told = [command.id for command in commands(self.client, self.cluster, name)]
            assert told == [
                command.id
                for asked in accepted
                for command in asked.commands
                if command.broker == name
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

    def _run(self, requests: list[Transition]) -> BatchOutcome:
        return self.store.apply_batch(
            self.cluster, requests, generation=self.generation, query_id="q", batch=self.batch
        )

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
        assert (found.state, found.epoch, found.owner, found.destination, found.by) == (
            expected.state,
            expected.epoch,
            expected.owner,
            expected.destination,
            expected.by,
        )


def test_the_script_does_what_the_model_does(client: redis.Redis) -> None:
    Histories.client = client
    run_state_machine_as_test(
        Histories, settings=settings(max_examples=30, stateful_step_count=40, deadline=None)
    )
