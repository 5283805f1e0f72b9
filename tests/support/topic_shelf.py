"""`TopicStore` in memory, plain and slow; tests/contracts/test_topics.py holds it to Redis."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.migration.life import BACK, ONWARD, MigrationState
from trimtab.migration.migration import Counts, Migration
from trimtab.migration.scopes import namespace_of
from trimtab.migration.topic_life import (
    COUNTED,
    MAKING,
    MAY_ENLIST,
    MOST_NEW,
    TRANSITIONS,
    Given,
    TopicEvent,
    TopicState,
)
from trimtab.model import FULL_RANGE_END, Epoch, parse_bundle
from trimtab.store.ring import position
from trimtab.wire.topics import (
    TopicCall,
    TopicChange,
    TopicOutcome,
    TopicRecord,
    TopicRefused,
)

NO_TOPIC = TopicRecord(state=TopicState.UNKNOWN, migration="")


@dataclass
class TopicShelf:
    """One cluster's topics; ``owners`` and ``sessions`` stand for records and leases."""

    known: dict[str, Migration] = field(default_factory=dict)
    owners: dict[str, tuple[str, Epoch]] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    records: dict[str, TopicRecord] = field(default_factory=dict)
    marks: dict[tuple[str, str], int] = field(default_factory=dict)
    sums: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    most_new: int = MOST_NEW
    page: int = 1000

    def migrations(self, cluster: str) -> Mapping[str, Migration]:  # noqa: ARG002 - there is one
        return self.known

    def topics_in(self, cluster: str, bundle: str) -> Iterator[dict[str, TopicRecord]]:  # noqa: ARG002
        namespace, (low, high) = parse_bundle(bundle)
        last = high == FULL_RANGE_END
        there = (
            (topic, record)
            for topic, record in sorted(self.records.items(), key=lambda each: position(each[0]))
            if namespace_of(topic) == namespace
            and (low <= position(topic) < high or (last and position(topic) == high))
        )
        while page := dict(itertools.islice(there, self.page)):
            yield page

    def change(self, cluster: str, call: TopicCall) -> tuple[TopicOutcome, ...]:  # noqa: ARG002
        outcomes = tuple(self._outcome(call, each) for each in call.changes)
        for each in call.named:
            migration = self.known.get(each.migration)
            if migration is None or migration.state not in MAY_ENLIST:
                continue
            if self._leased(call) and self.owners.get(each.bundle) == (call.broker, each.epoch):
                self.marks[each.migration, each.bundle] = each.wave
        return outcomes

    def counts(self, migration: str) -> dict[str, Counts]:
        found = dict[str, dict[str, int]]()
        for (subject, name), number in self.sums.get(migration, Counter()).items():
            found.setdefault(subject, {})[name] = number
        return {subject: Counts(**counts) for subject, counts in sorted(found.items())}

    def _outcome(self, call: TopicCall, change: TopicChange) -> TopicOutcome:
        before = self.records.get(change.topic, NO_TOPIC)
        reason = self._refusal(call, change, before)
        if reason is None:
            self._write(change, before)
        return TopicOutcome(
            topic=change.topic, reason=reason, record=self.records.get(change.topic)
        )

    def _leased(self, call: TopicCall) -> bool:
        return self.sessions.get(call.broker) == call.session

    def _refusal(
        self, call: TopicCall, change: TopicChange, topic: TopicRecord
    ) -> TopicRefused | None:
        migration = self.known.get(change.migration)
        left_over = topic.state is TopicState.ACTIVE and topic.migration == change.migration
        if migration is None and not (change.event is TopicEvent.FORGET and left_over):
            return TopicRefused.UNKNOWN_MIGRATION
        if not self._leased(call):
            return TopicRefused.NO_LEASE
        if self.owners.get(change.bundle) != (call.broker, change.epoch):
            return TopicRefused.NOT_OWNER
        if topic.state is not change.expect:
            return TopicRefused.STALE_STATE
        if change.event not in MAKING and topic.migration != change.migration:
            return TopicRefused.OTHER_MIGRATION
        if change.event is None or migration is None:
            return None
        return self._by_the_table(change, topic, migration)

    def _by_the_table(
        self, change: TopicChange, topic: TopicRecord, migration: Migration
    ) -> TopicRefused | None:
        assert change.event is not None
        if change.event not in TRANSITIONS[topic.state]:
            return TopicRefused.ILLEGAL
        given = TRANSITIONS[topic.state][change.event].given
        if not _holds(given, migration, topic, change.wave) or (
            given is Given.STAYED and not self._rolled_back(topic)
        ):
            return TopicRefused.NOT_NOW
        return self._full(change) if given is Given.TAKES_NEW else None

    def _rolled_back(self, topic: TopicRecord) -> bool:
        earlier = self.known.get(topic.migration)
        return earlier is not None and earlier.state is MigrationState.ROLLED_BACK

    def _full(self, change: TopicChange) -> TopicRefused | None:
        counts = self.counts(change.migration).get(namespace_of(change.topic), Counts())
        return TopicRefused.FULL if counts.stays >= self.most_new else None

    def _write(self, change: TopicChange, before: TopicRecord) -> None:
        state, stays = before.state, before.stays
        if change.event is not None:
            effect = TRANSITIONS[state][change.event]
            stays = effect.state is not TopicState.ACTIVE and (stays or effect.stays)
            state = effect.state
        via = _via(change, before, stays)
        after = TopicRecord(
            state=state,
            migration=change.migration,
            wave=change.wave if change.event in MAKING else before.wave,
            epoch=change.epoch,
            backlog=change.backlog,
            subscription=change.subscription,
            subscriptions=change.subscriptions,
            regions=change.regions,
            more=change.more,
            stays=stays,
            began=change.event is TopicEvent.START_ON_GREEN
            or (change.event not in MAKING and before.began),
            back=change.event is TopicEvent.REOPEN or (change.event is None and before.back),
            lost=change.event is TopicEvent.LOSE or (change.event not in MAKING and before.lost),
            gone=change.gone or (before.gone if via or change.event not in MAKING else ""),
            via=via,
            problem=change.problem,
        )
        self._count(change.topic, before, -1)
        self._count(change.topic, after, 1)
        if change.problem or change.event in COUNTED:
            self._add(change.topic, after, "attempts", 1)
            self._add(change.topic, after, "errors", int(bool(change.problem)))
        if state is TopicState.UNKNOWN:
            del self.records[change.topic]
        else:
            self.records[change.topic] = msgspec.json.decode(
                msgspec.json.encode(after), type=TopicRecord
            )

    def _count(self, topic: str, record: TopicRecord, sign: int) -> None:
        if record.state is not TopicState.UNKNOWN and record.migration in self.known:
            self._add(topic, record, record.state.value, sign)
            self._add(topic, record, "backlog", sign * record.backlog)
            self._add(topic, record, "stays", sign * record.stays)
            self._add(topic, record, "began", sign * record.began)

    def _add(self, topic: str, record: TopicRecord, name: str, more: int) -> None:
        for subject in (str(record.wave), namespace_of(topic)):
            if more:
                self.sums.setdefault(record.migration, Counter())[subject, name] += more


def _via(change: TopicChange, before: TopicRecord, stays: bool) -> str:
    """The migration by whose green a topic is, if that is not the one of its record."""
    if change.event is TopicEvent.ENLIST and stays:
        return before.via or before.migration
    return "" if change.event in MAKING else before.via


def _holds(given: Given, migration: Migration, topic: TopicRecord, wave: int) -> bool:
    match given:
        case Given.OPEN_WAVE:
            return migration.state is MigrationState.RUNNING and topic.wave <= migration.wave
        case Given.ONWARD:
            return topic.stays or migration.state in ONWARD
        case Given.ROLLING_BACK:
            return not topic.stays and migration.state in BACK
        case Given.NEW:
            return topic.migration != migration.id and migration.state in MAY_ENLIST
        case Given.STAYED:
            return topic.stays and _holds(Given.NEW, migration, topic, wave)
        case Given.TAKES_NEW:
            open_now = migration.state in MAY_ENLIST and wave <= migration.wave
            return open_now or migration.state is MigrationState.COMPLETED
        case Given.NOTHING:
            return True
