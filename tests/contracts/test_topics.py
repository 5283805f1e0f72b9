"""What the topic script accepts, refuses, writes and counts, on Redis; and its twin in memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import msgspec
import pytest
import redis

from deploy.redis_server import RedisServer
from sinks.errors import Closed, Fenced, Isolated
from sinks.redis.command_streams import CommandStream
from sinks.redis.migrations import Migrations
from sinks.redis.server.connections import redis_client
from sinks.redis.topics import PAGE, TopicStore
from tests.contracts.asking import GENERATION
from tests.support.migrations import GREEN
from tests.support.opening import close, keep_alive, let_in
from tests.support.topic_shelf import NO_TOPIC, TopicShelf
from trimtab.migration.kept import MOST
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts, Migration, Wave
from trimtab.migration.scopes import CLUSTER
from trimtab.migration.topic_life import (
    MAY_ENLIST,
    MOST_NEW,
    TRANSITIONS,
    Given,
    TopicEvent,
    TopicState,
)
from trimtab.model import Epoch
from trimtab.ownership import SERVING, State
from trimtab.store.ring import position
from trimtab.wire.command import CommandKind
from trimtab.wire.keys import (
    bundles_key,
    lease_key,
    migrated_key,
    named_key,
    open_key,
    ownership_key,
    places_key,
    sessions_key,
    topics_key,
)
from trimtab.wire.ownership import Record
from trimtab.wire.topics import (
    Named,
    TopicCall,
    TopicChange,
    TopicOutcome,
    TopicRecord,
    TopicRefused,
    Waiting,
)

A, B = "a:8080", "b:8080"
BUNDLE = "public/orders/0x00000000_0xffffffff"
EPOCH = Epoch(GENERATION, 9)
TOPIC = "persistent://public/orders/invoices"
_names = itertools.count()


class Store(Protocol):
    def change(self, cluster: str, call: TopicCall) -> tuple[TopicOutcome, ...]: ...

    def topics_in(self, cluster: str, bundle: str) -> Iterator[dict[str, TopicRecord]]: ...


class Place:
    """A cluster whose bundle A serves, on Redis or in memory."""

    def __init__(self, client: redis.Redis | None) -> None:
        self.cluster = f"topics-{next(_names)}"
        self.client, self.shelf = client, TopicShelf()
        self.store: Store = self.shelf if client is None else TopicStore(client)
        if client is not None:
            let_in(client, self.cluster, GENERATION)
            keep_alive(client, self.cluster, (A, B))
        self.shelf.sessions = {A: "1", B: "1"}
        self.owned_by(A, EPOCH)

    def owned_by(
        self, broker: str, epoch: Epoch, state: State = State.OWNED, bundle: str = BUNDLE
    ) -> None:
        if state in SERVING:
            self.shelf.owners[bundle] = (broker, epoch)
        else:
            self.shelf.owners.pop(bundle, None)
        if self.client is not None:
            text = msgspec.json.encode(Record(state=state, epoch=epoch, owner=broker))
            self.client.hset(ownership_key(self.cluster), bundle, text)

    def migrate(self, state: MigrationState = MigrationState.RUNNING, **more: object) -> None:
        it = Migration("m", self.cluster, CLUSTER, GREEN, state)
        it = replace(it, **more)  # type: ignore[arg-type]
        self.shelf.known[it.id] = it
        if self.client is not None:
            Migrations(self.client).write(self.cluster, GENERATION, [it])

    def rolled_back(self, name: str) -> None:
        """A migration that was rolled back before."""
        self.migrate(MigrationState.ROLLED_BACK, id=name)

    def put(self, record: TopicRecord) -> None:
        """As the script left it, in whichever state."""
        if record.state is TopicState.UNKNOWN:
            return
        self.shelf.records[TOPIC] = record
        if self.client is not None:
            text = msgspec.json.encode(record)
            self.client.hset(topics_key(self.cluster, "public/orders"), TOPIC, text)
            places = places_key(self.cluster, "public/orders")
            self.client.zadd(places, {TOPIC: position(TOPIC)})

    def ask(self, event: str | None, expect: str = "unknown", **more: object) -> TopicOutcome:
        who: dict[str, object] = {
            name: more.pop(name) for name in ("broker", "session") if name in more
        }
        change = msgspec.convert(
            {
                "topic": TOPIC,
                "bundle": BUNDLE,
                "position": position(TOPIC),
                "epoch": EPOCH,
                "migration": "m",
                "expect": expect,
                "event": event,
                **more,
            },
            TopicChange,
        )
        asked: dict[str, object] = {"broker": A, "session": "1", "changes": [change], **who}
        call = msgspec.convert(asked, TopicCall)
        return self.store.change(self.cluster, call)[0]

    def topics_in(self, bundle: str) -> dict[str, TopicRecord]:
        found = dict[str, TopicRecord]()
        for page in self.store.topics_in(self.cluster, bundle):
            found |= page
        return found

    def counts(self) -> dict[str, Counts]:
        if self.client is None:
            return self.shelf.counts("m")
        return Migrations(self.client).counts(self.cluster, "m")


@pytest.fixture(params=["memory", "redis"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "memory":
        yield Place(None)
        return
    server: RedisServer = request.getfixturevalue("redis_server")
    with redis_client(server.url) as client:
        yield Place(client)


def record(state: TopicState, **more: object) -> TopicRecord:
    if state is TopicState.UNKNOWN:
        return NO_TOPIC
    return msgspec.convert({"state": state, "migration": "m", "epoch": EPOCH, **more}, TopicRecord)


ROWS = [
    pytest.param(state, event, id=f"{state}-{event}")
    for state in TopicState
    for event in TopicEvent
]
AS_GIVEN = {
    Given.NOTHING: MigrationState.ROLLED_BACK,
    Given.OPEN_WAVE: MigrationState.RUNNING,
    Given.ONWARD: MigrationState.PAUSED,
    Given.ROLLING_BACK: MigrationState.ROLLING_BACK,
    Given.NEW: MigrationState.RUNNING,
    Given.STAYED: MigrationState.RUNNING,
    Given.TAKES_NEW: MigrationState.COMPLETED,
}
"""A migration's state in which a condition holds."""


@pytest.mark.parametrize(("state", "event"), ROWS)
def test_the_script_has_the_rows_of_the_table(
    place: Place, state: TopicState, event: TopicEvent
) -> None:
    effect = TRANSITIONS[state].get(event)
    given = Given.NOTHING if effect is None else effect.given
    place.migrate(AS_GIVEN[given])
    before = record(state)
    if given is Given.NEW and state is not TopicState.UNKNOWN:
        before = msgspec.structs.replace(before, migration="an earlier one")
    elif given is Given.STAYED:
        place.rolled_back("earlier")
        before = msgspec.structs.replace(before, migration="earlier", stays=True)
    place.put(before)
    outcome = place.ask(event, state)
    if effect is None:
        assert outcome.reason in (TopicRefused.ILLEGAL, TopicRefused.OTHER_MIGRATION)
        assert outcome.record == (None if state is TopicState.UNKNOWN else before)
        return
    assert outcome.reason is None
    now = TopicState.UNKNOWN if outcome.record is None else outcome.record.state
    stays = outcome.record is not None and outcome.record.stays
    assert (now, stays) == (effect.state, effect.stays)


@pytest.mark.parametrize("state", MigrationState)
@pytest.mark.parametrize("given", [each for each in Given if each is not Given.NOTHING])
def test_a_migrations_state_decides_what_may_happen(
    place: Place, state: MigrationState, given: Given
) -> None:
    running, back = MigrationState.RUNNING, MigrationState.ROLLING_BACK
    onward = {running, MigrationState.PAUSED, MigrationState.COMPLETED}
    allowed = {
        Given.OPEN_WAVE: {running},
        Given.ONWARD: onward,
        Given.ROLLING_BACK: {back, MigrationState.ROLLED_BACK},
        Given.NEW: MAY_ENLIST,
        Given.STAYED: MAY_ENLIST,
        Given.TAKES_NEW: onward,
    }
    event, expect = {
        Given.OPEN_WAVE: ("terminate", TopicState.ACTIVE),
        Given.ONWARD: ("drain", TopicState.TERMINATED),
        Given.ROLLING_BACK: ("reopen", TopicState.DRAINING),
        Given.NEW: ("enlist", TopicState.UNKNOWN),
        Given.STAYED: ("enlist", TopicState.TERMINATED),
        Given.TAKES_NEW: ("start-on-green", TopicState.UNKNOWN),
    }[given]
    place.migrate(state)
    if given is Given.STAYED:
        place.rolled_back("earlier")
        place.put(record(expect, migration="earlier", stays=True))
    else:
        place.put(record(expect))
    reason = place.ask(event, expect).reason
    assert reason == (None if state in allowed[given] else TopicRefused.NOT_NOW)


def test_a_topic_that_stays_goes_on_in_a_rollback_and_is_judged_once(place: Place) -> None:
    place.migrate(MigrationState.ROLLING_BACK)
    place.put(record(TopicState.TERMINATED))
    assert place.ask("drain", "terminated").reason is TopicRefused.NOT_NOW
    assert place.ask("stay", "terminated").accepted
    assert place.ask("reopen", "terminated").reason is TopicRefused.NOT_NOW
    drained = place.ask("drain", "terminated", backlog=3, subscription='a "b"')
    left: dict[str, object] = {"backlog": 3, "subscription": 'a "b"'}
    assert drained.record == record(TopicState.DRAINING, stays=True, **left)
    place.migrate(MigrationState.ROLLED_BACK)
    assert place.ask("finish", "draining").accepted


def test_a_record_has_what_a_topic_waits_for_as_it_was_noted_last(place: Place) -> None:
    place.migrate()
    place.put(record(TopicState.ACTIVE))
    regions = {"regions": [Waiting("we st", 7), Waiting("east", 1)], "more": 2}
    assert place.ask("hold", "active", **regions).record == record(
        TopicState.REPLICATING, **regions
    )
    assert place.ask(None, "replicating").record == record(TopicState.REPLICATING)
    read: dict[str, object] = {
        "backlog": 1_700_000_000_009,
        "subscription": 'a "b"',
        "subscriptions": [Waiting('a "b"', 1_700_000_000_000), Waiting("c", 9)],
    }
    assert place.ask("terminate", "replicating", **read).record == record(
        TopicState.TERMINATED, **read
    )
    assert place.ask("finish", "terminated").record == record(TopicState.MIGRATED)


def test_a_record_says_that_a_topic_was_taken_back_until_it_is_enlisted_again(
    place: Place,
) -> None:
    place.migrate(MigrationState.ROLLING_BACK)
    place.put(record(TopicState.DRAINING))
    assert place.ask("reopen", "draining").record == record(TopicState.ACTIVE, back=True)
    failed = place.ask(None, "active", problem="away")
    assert failed.record == record(TopicState.ACTIVE, back=True, problem="away")
    place.put(record(TopicState.ACTIVE, migration="earlier", back=True))
    place.migrate(MigrationState.RUNNING)
    assert place.ask("enlist", "active").record == record(TopicState.ACTIVE)


def test_a_topic_that_stayed_on_green_and_drains_is_counted_by_a_later_migration(
    place: Place,
) -> None:
    """It ended without it: something of its scope was left on blue."""
    place.rolled_back("earlier")
    drains = record(TopicState.DRAINING, migration="earlier", wave=3, stays=True, backlog=2)
    place.put(drains)
    place.migrate()
    left: dict[str, object] = {"backlog": 2, "subscriptions": [Waiting("slow", 2)]}
    now = record(TopicState.DRAINING, wave=1, stays=True, via="earlier", **left)
    assert place.ask("enlist", "draining", wave=1, **left).record == now
    assert place.counts()["1"] == Counts(draining=1, stays=1, backlog=2)
    assert place.ask("enlist", "draining").reason is TopicRefused.NOT_NOW
    # It goes on to the green of the first one, through any number of later ones.
    place.migrate(MigrationState.ROLLED_BACK)
    place.migrate(id="later")
    again = place.ask("enlist", "draining", migration="later", backlog=2)
    assert again.record == record(
        TopicState.DRAINING, migration="later", stays=True, via="earlier", backlog=2
    )
    finished = place.ask("finish", "draining", migration="later")
    assert finished.record == record(
        TopicState.MIGRATED, migration="later", stays=True, via="earlier"
    )


@pytest.mark.parametrize(
    ("earlier", "stays"),
    [
        *((state, True) for state in MigrationState if state is not MigrationState.ROLLED_BACK),
        (MigrationState.ROLLED_BACK, False),
        (None, True),
    ],
)
def test_a_topic_that_an_earlier_migration_still_has_is_not_counted_by_a_later_one(
    place: Place, earlier: MigrationState | None, stays: bool
) -> None:
    if earlier is not None:
        place.migrate(earlier, id="earlier")
    place.migrate()
    place.put(record(TopicState.TERMINATED, migration="earlier", stays=stays))
    assert place.ask("enlist", "terminated").reason is TopicRefused.NOT_NOW


def test_a_note_keeps_that_a_topic_began_on_green(place: Place) -> None:
    place.migrate()
    began = place.ask("start-on-green")
    assert began.record is not None
    assert began.record.began
    assert place.ask(None, "migrated").record == began.record


def test_a_topic_is_enlisted_in_a_migration_once(place: Place) -> None:
    """Again, it would lose that it is to be opened, and why its last step failed."""
    place.migrate()
    place.put(record(TopicState.ACTIVE, back=True, problem="no answer", wave=1))
    again = place.ask("enlist", "active")
    assert again.reason is TopicRefused.NOT_NOW
    assert again.record == record(TopicState.ACTIVE, back=True, problem="no answer", wave=1)


def test_a_record_says_that_blue_had_lost_the_topic(place: Place) -> None:
    place.migrate(MigrationState.ROLLING_BACK)
    place.put(record(TopicState.DRAINING, backlog=2))
    left: dict[str, object] = {"subscriptions": [Waiting("slow", 2)]}
    lost = place.ask("lose", "draining", **left)
    assert lost.record == record(TopicState.MIGRATED, stays=True, lost=True, **left)
    assert place.ask("reopen", "migrated").reason is TopicRefused.NOT_NOW
    noted = place.ask(None, "migrated", **left)
    assert noted.record == lost.record


def test_a_record_says_where_a_topic_that_stays_has_gone_on_to(place: Place) -> None:
    place.migrate(MigrationState.ROLLING_BACK)
    place.put(record(TopicState.DRAINING, backlog=2))
    stays = place.ask("stay", "draining", backlog=2, gone="http://teal:8080")
    gone = {"stays": True, "gone": "http://teal:8080"}
    assert stays.record == record(TopicState.DRAINING, backlog=2, **gone)
    assert place.ask(None, "draining").record == record(TopicState.DRAINING, **gone)
    place.migrate(MigrationState.ROLLED_BACK)
    place.migrate(id="later")
    later = place.ask("enlist", "draining", migration="later").record
    assert later is not None
    assert (later.gone, later.via) == ("http://teal:8080", "m")


def test_a_wave_that_waits_is_not_begun(place: Place) -> None:
    place.migrate()
    assert place.ask("enlist", wave=1).accepted
    assert place.ask("terminate", "active").reason is TopicRefused.NOT_NOW
    place.migrate(wave=1)
    assert place.ask("terminate", "active").accepted


def test_a_topic_that_is_enlisted_again_has_the_wave_of_its_new_migration(place: Place) -> None:
    """It kept that of the earlier one, which the new one may not have: it never migrated."""
    place.migrate()
    place.put(record(TopicState.ACTIVE, migration="earlier", wave=3))
    assert place.ask("enlist", "active").record == record(TopicState.ACTIVE)
    assert place.counts()["0"] == Counts(active=1)


def test_a_new_topic_begins_on_green_in_a_wave_that_has_begun(place: Place) -> None:
    place.migrate(wave=1)
    assert place.ask("start-on-green", wave=2).reason is TopicRefused.NOT_NOW
    begun = place.ask("start-on-green", wave=1)
    assert begun.record == record(TopicState.MIGRATED, wave=1, stays=True, began=True)
    assert place.counts()["1"] == Counts(migrated=1, stays=1, began=1)
    again = place.ask("start-on-green", wave=1)
    assert (again.reason, again.record) == (TopicRefused.STALE_STATE, begun.record)
    place.migrate(MigrationState.ROLLING_BACK)
    assert place.ask("reopen", "migrated").reason is TopicRefused.NOT_NOW
    assert place.topics_in(BUNDLE) == {TOPIC: begun.record}


def test_as_many_new_topics_of_a_namespace_as_may_begin_on_green(place: Place) -> None:
    place.migrate()
    place.shelf.most_new = 1
    if place.client is not None:
        place.client.hset(migrated_key(place.cluster, "m"), "public/orders stays", MOST_NEW - 1)
    assert place.ask("start-on-green").accepted
    other = "persistent://public/orders/other"
    assert place.ask("start-on-green", topic=other).reason is TopicRefused.FULL
    assert place.ask("enlist", topic=other).accepted


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"broker": B}, TopicRefused.NOT_OWNER),
        ({"epoch": (GENERATION, 8)}, TopicRefused.NOT_OWNER),
        ({"epoch": (GENERATION, 10)}, TopicRefused.NOT_OWNER),
        ({"epoch": (GENERATION - 1, 9)}, TopicRefused.NOT_OWNER),
        ({"epoch": (GENERATION + 1, 9)}, TopicRefused.NOT_OWNER),
        ({"bundle": "public/orders/0x00000000_0x80000000"}, TopicRefused.NOT_OWNER),
        ({"session": "2"}, TopicRefused.NO_LEASE),
        ({"broker": "c:8080"}, TopicRefused.NO_LEASE),
        ({"migration": "other"}, TopicRefused.UNKNOWN_MIGRATION),
        ({"expect": "active"}, TopicRefused.STALE_STATE),
    ],
)
def test_only_the_owner_changes_a_topic_from_the_state_that_it_has(
    place: Place, asked: dict[str, object], reason: TopicRefused
) -> None:
    place.migrate()
    outcome = place.ask("enlist", **asked)  # type: ignore[arg-type]
    assert (outcome.reason, outcome.record) == (reason, None)
    assert place.counts() == {}


def test_an_owner_that_was_replaced_is_refused_and_the_next_goes_on(place: Place) -> None:
    place.migrate()
    assert place.ask("enlist").accepted
    after = Epoch(GENERATION, 10)
    place.owned_by(B, after)
    assert place.ask("terminate", "active").reason is TopicRefused.NOT_OWNER
    assert place.ask("terminate", "active", broker=B, epoch=after).accepted


def test_a_record_of_another_migration_is_changed_by_none_but_that_one(place: Place) -> None:
    place.migrate()
    place.put(record(TopicState.TERMINATED, migration="earlier"))
    for event in ("drain", "finish", None):
        assert place.ask(event, "terminated").reason is TopicRefused.OTHER_MIGRATION
    assert place.counts() == {}


def test_a_bundle_that_was_given_away_is_no_longer_served(place: Place) -> None:
    """Its record still names the broker, by the same epoch."""
    place.migrate()
    place.owned_by(A, EPOCH, State.ASSIGNING)
    assert place.ask("enlist").reason is TopicRefused.NOT_OWNER


@pytest.mark.parametrize("name", ["a b", "a\tb", "ü", "a:b"])
def test_topics_with_any_name_are_found_by_the_next_owner(place: Place, name: str) -> None:
    place.migrate()
    topic = f"persistent://public/orders/{name}"
    assert place.ask("enlist", topic=topic, position=position(topic)).accepted
    assert list(place.topics_in(BUNDLE)) == [topic]


def test_topics_of_a_namespace_of_a_cluster_are_found_by_the_next_owner(place: Place) -> None:
    """Pulsar's old names, which have a cluster before the namespace."""
    place.migrate()
    topic, bundle = "persistent://public/east/orders/x", "public/east/orders/0x00000000_0xffffffff"
    place.owned_by(A, EPOCH, bundle=bundle)
    asked = place.ask("enlist", topic=topic, bundle=bundle, position=position(topic))
    assert asked.accepted
    assert list(place.topics_in(bundle)) == [topic]


def test_an_owner_that_hands_over_serves_until_then(place: Place) -> None:
    place.migrate()
    place.owned_by(A, EPOCH, State.RELEASING)
    assert place.ask("enlist").accepted


def test_counts_follow_a_topic_by_wave_and_namespace(place: Place) -> None:
    place.migrate(wave=2)
    way = [("enlist", "unknown", 0), ("hold", "active", 0), ("terminate", "replicating", 9)]
    for event, expect, backlog in way:
        assert place.ask(event, expect, backlog=backlog, wave=2).accepted
    expected = Counts(terminated=1, backlog=9, attempts=2)
    assert place.counts() == {"2": expected, "public/orders": expected}
    assert place.ask("drain", "terminated", backlog=4).accepted
    assert place.ask("finish", "draining").accepted
    assert place.counts()["2"] == Counts(migrated=1, attempts=4)


def test_a_step_that_failed_is_counted_with_its_reason_until_one_succeeds(place: Place) -> None:
    place.migrate()
    place.ask("enlist")
    failed = place.ask(None, "active", problem="green: 503 “later”")
    assert failed.record == record(TopicState.ACTIVE, problem="green: 503 “later”")
    assert place.counts()["0"] == Counts(active=1, attempts=1, errors=1)
    ended = place.ask("terminate", "active")
    assert ended.record == record(TopicState.TERMINATED)
    assert place.counts()["0"] == Counts(terminated=1, attempts=2, errors=1)


def test_a_topic_that_users_deleted_is_forgotten(place: Place) -> None:
    place.migrate()
    place.ask("enlist")
    assert place.ask("forget", "active").record is None
    assert place.counts()["0"] == Counts()
    assert place.topics_in(BUNDLE) == {}


@pytest.mark.parametrize("state", TopicState)
def test_of_a_migration_that_is_forgotten_only_active_topics_change_and_are_forgotten_too(
    place: Place, state: TopicState
) -> None:
    """The others go on by other records, or stay where they are: their clients are on green."""
    place.put(record(state))
    for event in (None, *TopicEvent):
        if (event, state) != (TopicEvent.FORGET, TopicState.ACTIVE):
            refused = place.ask(event, state)
            assert refused.reason is TopicRefused.UNKNOWN_MIGRATION
    place.migrate()
    forgotten = {"migration": "before"}
    place.put(record(state))
    assert place.ask("forget", state, **forgotten).reason is TopicRefused.UNKNOWN_MIGRATION


def test_topics_of_a_bundle_are_found_by_their_place_on_the_ring(place: Place) -> None:
    place.migrate()
    topics = [f"persistent://public/orders/{number}" for number in range(2 * PAGE + 1)]
    changes = [
        TopicChange(
            topic=topic,
            bundle=BUNDLE,
            position=position(topic),
            epoch=EPOCH,
            migration="m",
            expect=TopicState.UNKNOWN,
            event=TopicEvent.ENLIST,
        )
        for topic in topics
    ]
    call = TopicCall(broker=A, session="1", changes=tuple(changes))
    assert all(outcome.accepted for outcome in place.store.change(place.cluster, call))
    by_place = sorted(topics, key=position)
    assert list(place.topics_in(BUNDLE)) == by_place
    middle = position(by_place[100])
    lower = f"public/orders/0x00000000_0x{middle:08x}"
    upper = f"public/orders/0x{middle:08x}_0xffffffff"
    assert list(place.topics_in(lower)) == by_place[:100]
    assert list(place.topics_in(upper)) == by_place[100:]


def test_a_bundle_is_named_by_its_owner_alone(place: Place) -> None:
    place.migrate()

    def named(broker: str, bundle: str = BUNDLE) -> Named:
        say = Named(bundle=bundle, epoch=EPOCH, migration="m", wave=3)
        place.store.change(place.cluster, TopicCall(broker=broker, session="1", named=(say,)))
        return say

    for broker, bundle in ((B, BUNDLE), (A, "public/other/0x00000000_0xffffffff"), (A, BUNDLE)):
        named(broker, bundle)
    if place.client is None:
        assert place.shelf.marks == {("m", BUNDLE): 3}
    else:
        assert place.client.hgetall(named_key(place.cluster, "m")) == {BUNDLE.encode(): b"3"}


# What only Redis has.


@pytest.fixture
def there(redis_server: RedisServer) -> Iterator[tuple[Place, redis.Redis]]:
    with redis_client(redis_server.url) as client:
        yield Place(client), client


def test_a_closed_store_changes_no_topic(there: tuple[Place, redis.Redis]) -> None:
    place, client = there
    place.migrate()
    close(client, place.cluster)
    with pytest.raises(Closed, match="not open on this history"):
        place.ask("enlist")


def test_a_store_that_a_release_before_opened_changes_no_topic(
    there: tuple[Place, redis.Redis],
) -> None:
    """It knew the server by its run, and nothing of its history."""
    place, client = there
    place.migrate()
    client.hset(open_key(place.cluster), "run_id", "0" * 40)
    with pytest.raises(Closed, match="not open on this history"):
        place.ask("enlist")


def test_a_master_that_hears_too_few_replicas_changes_no_topic(
    there: tuple[Place, redis.Redis],
) -> None:
    """Another server may be the master, where the topic has another owner and another state."""
    place, client = there
    place.migrate()
    client.hset(open_key(place.cluster), mapping={"replicas": 1, "replicas_set": 1})
    with pytest.raises(Isolated, match="0 of 1"):
        place.ask("enlist")
    client.hdel(open_key(place.cluster), "replicas", "replicas_set")
    assert place.ask("enlist").accepted


def test_a_store_whose_bundles_were_deleted_changes_no_topic(
    there: tuple[Place, redis.Redis],
) -> None:
    """Others may have made the records that are there now."""
    place, client = there
    place.migrate()
    client.delete(ownership_key(place.cluster))
    place.owned_by(A, EPOCH)
    with pytest.raises(Closed):
        place.ask("enlist")


def test_a_damaged_record_counts_as_unknown_and_is_written_again(
    there: tuple[Place, redis.Redis],
) -> None:
    place, client = there
    place.migrate()
    for text in (b"{", b"[]", b'{"state":7}', b"\xff"):
        client.hset(topics_key(place.cluster, "public/orders"), TOPIC, text)
        assert place.ask("terminate", "active").reason is TopicRefused.STALE_STATE
    assert place.ask("enlist").record == record(TopicState.ACTIVE)


@pytest.mark.parametrize("spoil", [b"{", b"[]", b'{"state":[]}'])
def test_a_migration_that_cannot_be_read_moves_nothing(
    there: tuple[Place, redis.Redis], spoil: bytes
) -> None:
    place, client = there
    client.hset(f"trimtab:{{{place.cluster}}}:migrations", "m", spoil)
    assert place.ask("enlist").reason is TopicRefused.UNKNOWN_MIGRATION
    assert TopicStore(client).migrations(place.cluster) == {}


def test_damaged_counts_are_zero(there: tuple[Place, redis.Redis]) -> None:
    place, client = there
    key = migrated_key(place.cluster, "m")
    client.hset(key, mapping={"0 active": "x", "0 migrated": "-3", "0 stays": "2", "0 odd": "7"})
    assert place.counts() == {"0": Counts(stays=2)}


def test_brokers_with_a_lease_are_commanded_when_a_migration_has_come_further(
    there: tuple[Place, redis.Redis],
) -> None:
    place, client = there
    store, it = Migrations(client), Migration("m", place.cluster, "public/orders", GREEN)
    for broker in (A, B, "gone:8080"):
        client.hset(sessions_key(place.cluster), broker, "1 2")
    assert client.exists(lease_key(place.cluster, "gone:8080")) == 0
    counted, further = replace(it, counts=(Counts(active=1),)), replace(it, wave=1)
    slower = replace(further, check=5.0)
    said = [
        command
        for each in ([it], [counted], [further], [slower], [replace(slower, alone=True)])
        for command in store.write(place.cluster, GENERATION, each)
    ]
    told = [each for _, each in CommandStream(client, place.cluster, A).read(1)]
    also = [each for _, each in CommandStream(client, place.cluster, B).read(1)]
    assert sorted(said, key=lambda each: each.broker) == told + also
    assert [(each.kind, each.id) for each in told] == [
        (CommandKind.TOPIC_MIGRATED, f"m/running/0/{told[0].issued_at}/{A}"),
        (CommandKind.TOPIC_MIGRATED, f"m/running/1/{told[1].issued_at}/{A}"),
        # A broker that waits as long as it was told before would not look for up to an hour.
        (CommandKind.TOPIC_MIGRATED, f"m/running/1/{told[2].issued_at}/{A}"),
        # Green is given up: those that wait for its answer bring topics back at once.
        (CommandKind.TOPIC_MIGRATED, f"m/running/1/{told[3].issued_at}/{A}"),
    ]
    assert (told[0].scope, told[0].target, told[0].migration) == ("public/orders", GREEN, "m")
    assert store.read(place.cluster) == {"m": replace(slower, alone=True)}


def test_what_was_counted_of_an_old_migration_goes_with_it(
    there: tuple[Place, redis.Redis],
) -> None:
    place, client = there
    store, cluster = Migrations(client), place.cluster
    place.migrate()
    place.ask("enlist")
    ended = MigrationState.ROLLED_BACK
    stays = replace(_named("stays", cluster, ended), counts=(Counts(migrated=1, stays=1),))
    store.write(cluster, GENERATION, [stays, _named("claims", cluster, MigrationState.COMPLETED)])
    place.migrate(ended)
    assert set(store.read(cluster)) == {"m", "stays", "claims"}
    assert client.exists(migrated_key(cluster, "m")) == 1
    newer = [replace(_named(f"n-{n}", cluster, ended), at=1 + n) for n in range(MOST - 2)]
    store.write(cluster, GENERATION, newer)
    kept = store.read(cluster)
    assert (len(kept), "m" in kept) == (MOST, False)
    assert {"stays", "claims"} <= kept.keys()
    assert client.exists(migrated_key(cluster, "m")) == 0
    # What is left of it on blue is forgotten by the owner, and counted nowhere.
    assert place.ask("forget", "active").record is None
    assert client.exists(migrated_key(cluster, "m")) == 0
    assert place.topics_in(BUNDLE) == {}


def _named(name: str, cluster: str, state: MigrationState) -> Migration:
    return Migration(name, cluster, "t/" + name, GREEN, state)


def test_bundles_of_what_had_migrated_before_are_not_waited_for(
    there: tuple[Place, redis.Redis],
) -> None:
    """Their owners name no topic of theirs: the migration would never end."""
    place, client = there
    for bundle in (BUNDLE, "public/stock/0x00000000_0xffffffff"):
        client.zadd(bundles_key(place.cluster), {bundle: 0})
    topic = "persistent://public/stock/parts"
    unnamed = {
        apart: Migrations(client).unnamed(
            Migration("m", place.cluster, CLUSTER, GREEN, apart=apart)
        )
        for apart in ((), (topic,), ("public/stock",), ("public/stock", "public/orders"))
    }
    assert [*unnamed.values()] == [2, 2, 1, 0]


def test_names_of_bundles_are_kept_while_topics_may_be_enlisted(
    there: tuple[Place, redis.Redis],
) -> None:
    place, client = there
    key = named_key(place.cluster, "m")
    say = Named(bundle=BUNDLE, epoch=EPOCH, migration="m", wave=0)
    call = TopicCall(broker=A, session="1", named=(say,))
    for state in MigrationState:
        place.migrate()
        place.store.change(place.cluster, call)
        assert client.exists(key) == 1
        place.migrate(state)
        assert client.exists(key) == (state in MAY_ENLIST)
        place.store.change(place.cluster, call)
        assert client.exists(key) == (state in MAY_ENLIST)


def test_what_texts_of_a_migration_say_is_not_taken_for_how_far_it_is(
    there: tuple[Place, redis.Redis],
) -> None:
    """It is read without being decoded: names of topics may be anything, and fill megabytes."""
    place, client = there
    trap = '","state":"completed","wave":9,"alone":true,"'
    names = (f"persistent://t/ns/{trap}", f'{{"state":"completed","wave":9}}{trap}')
    place.migrate(
        MigrationState.PAUSED, waves=(Wave(names),), reason=trap, by=trap, scope=names[0], why=trap
    )
    place.put(record(TopicState.ACTIVE, migration=trap))
    assert place.ask("enlist", "active", wave=1).accepted
    assert place.ask("terminate", "active").reason is TopicRefused.NOT_NOW
    place.migrate(wave=0, waves=(Wave(names),), reason=trap)
    assert place.ask("terminate", "active").reason is TopicRefused.NOT_NOW
    place.migrate(wave=1, waves=(Wave(names),), reason=trap)
    assert place.ask("terminate", "active").accepted
    assert list(Migrations(client).read(place.cluster)) == ["m"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"state":"running"}',
        '{"wave":0}',
        '{"state":"running","wave":"0"}',
        '{"state":"running","wave":0',
        '{"state":7,"wave":0}',
    ],
)
def test_a_topic_of_a_migration_that_cannot_be_read_is_left(
    there: tuple[Place, redis.Redis], text: str
) -> None:
    """It is of a later version of the job, not forgotten."""
    place, client = there
    place.put(record(TopicState.ACTIVE))
    client.hset(f"trimtab:{{{place.cluster}}}:migrations", "m", text)
    for event in ("forget", "terminate", None):
        assert place.ask(event, "active").reason is TopicRefused.UNKNOWN_MIGRATION


def test_only_the_owner_that_is_alive_names_a_bundle(there: tuple[Place, redis.Redis]) -> None:
    """One that lost its lease may have missed topics that others have made since."""
    place, client = there
    place.migrate()
    say = Named(bundle=BUNDLE, epoch=EPOCH, migration="m", wave=0)
    for broker, session, epoch in (
        (A, "2", EPOCH),
        ("c:8080", "1", EPOCH),
        (B, "1", EPOCH),
        (A, "1", Epoch(GENERATION, 8)),
        (A, "1", Epoch(GENERATION - 1, 9)),
    ):
        named = (msgspec.structs.replace(say, epoch=epoch),)
        call = TopicCall(broker=broker, session=session, named=named)
        place.store.change(place.cluster, call)
        assert client.exists(named_key(place.cluster, "m")) == 0
    place.store.change(place.cluster, TopicCall(broker=A, session="1", named=(say,)))
    assert client.exists(named_key(place.cluster, "m")) == 1


def test_a_migration_is_stored_with_the_cluster_that_is_left_and_with_no_other(
    there: tuple[Place, redis.Redis],
) -> None:
    """Green may share the Redis: its agents and its API find nothing of it."""
    place, client = there
    green = Place(client)
    it = Migration("m", place.cluster, CLUSTER, GREEN)
    Migrations(client).write(place.cluster, GENERATION, [it])
    assert place.ask("enlist").accepted
    assert TopicStore(client).migrations(green.cluster) == {}
    assert Migrations(client).counts(green.cluster, "m") == {}
    assert not any(TopicStore(client).topics_in(green.cluster, BUNDLE))
    assert list(CommandStream(client, green.cluster, A).read(1)) == []
    assert green.ask("enlist").reason is TopicRefused.UNKNOWN_MIGRATION


def test_a_job_that_was_replaced_writes_no_migration(there: tuple[Place, redis.Redis]) -> None:
    place, client = there
    it = Migration("m", place.cluster, CLUSTER, GREEN)
    with pytest.raises(Fenced):
        Migrations(client).write(place.cluster, GENERATION - 1, [it])
    with pytest.raises(Closed):
        Migrations(client).write(place.cluster, GENERATION + 1, [it])
    assert Migrations(client).read(place.cluster) == {}
