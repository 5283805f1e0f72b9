"""How an owner takes its topics to green and back: against a store in memory, without a clock."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agent.broker import CannotLoad
from agent.migration.known import KnownTopics
from agent.migration.mover import IDLE_S, LISTED, PART_S, SLOW_S, Mover
from agent.migration.port import AskAgain, CannotMigrate
from agent.migration.records import LOST_S
from agent.ownership.holdings import Holdings
from sinks.errors import Closed, StoreUnavailable
from tests.agent.support import Recorder
from tests.support.migrating_broker import Log, MigratingBroker
from tests.support.migrating_place import BUNDLE, ONE, TWO, A, B, Place
from tests.support.migrations import GREEN
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts, Migration, Target, Wave
from trimtab.migration.progress import advance
from trimtab.migration.scopes import CLUSTER
from trimtab.migration.steps import Step
from trimtab.migration.topic_life import TopicState
from trimtab.model import Epoch
from trimtab.wire.topics import LONGEST_PROBLEM, MOST_NAMED, TopicRecord, Waiting


@pytest.fixture
def place() -> Place:
    return Place()


def test_an_empty_topic_goes_to_green_in_two_looks(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate()
    assert place.look() == ["create one", "hold one", "terminate one"]
    assert place.state() == "terminated"
    assert place.look() == ["terminate one", "remove one"]
    assert (place.state(), place.storage.blue) == ("migrated", {})
    assert place.look() == []


def test_producers_are_redirected_at_once_and_consumers_when_they_are_drained(
    place: Place,
) -> None:
    log = place.storage.topic(ONE, fast=5, slow=2)
    log.written = 5
    place.migrate()
    place.look()
    assert (log.ended, place.mover.green_for(ONE)) == (True, GREEN)
    assert place.look() == ["terminate one", "redirect one#fast"]
    assert (place.state(), place.store.records[ONE].backlog) == ("draining", 3)
    assert place.store.records[ONE].subscription == "slow"
    log.subscriptions["slow"] = 4
    assert place.look() == ["terminate one"]
    assert place.store.records[ONE].backlog == 1
    log.subscriptions["slow"] = 5
    assert place.look() == ["terminate one", "redirect one#slow", "remove one"]
    assert place.state() == "migrated"


def test_a_record_names_the_subscription_that_has_the_most_to_read(place: Place) -> None:
    """A topic waits for it: who wonders why nothing moves finds it in the report."""
    log = place.storage.topic(ONE, dead=1, slow=0, none=5)
    log.written = 5
    place.migrate()
    place.look()

    def told() -> tuple[int, str]:
        found = place.store.records[ONE]
        return found.backlog, found.subscription

    assert told() == (9, "slow")
    log.subscriptions["slow"] = 4
    place.look()
    assert told() == (5, "dead")
    # As many are left, and another one has them.
    log.subscriptions |= {"dead": 4, "slow": 1}
    place.look()
    assert told() == (5, "slow")
    place.broker.failing = ["terminate"]
    place.look()
    assert (told(), place.store.records[ONE].problem) == ((5, "slow"), "cannot terminate")
    log.subscriptions |= {"dead": 5, "slow": 5}
    place.look()
    assert (place.state(), told()) == ("migrated", (0, ""))


def test_a_record_names_every_subscription_that_has_something_to_read_as_far_as_it_may(
    place: Place,
) -> None:
    """An operator who asks one team, and finds the next one afterwards, asks for weeks."""
    log = place.storage.topic(ONE, done=9, **{f"s{n}": n for n in range(MOST_NAMED + 2)})
    log.written = 9
    place.migrate()
    place.look()
    told = place.store.records[ONE]
    assert told.subscriptions == tuple(Waiting(f"s{n}", 9 - n) for n in range(MOST_NAMED))
    assert (told.subscription, told.more, told.backlog) == ("s0", 2, 42)
    log.subscriptions |= {f"s{n}": 9 for n in range(1, MOST_NAMED + 2)}
    place.look()
    told = place.store.records[ONE]
    assert (told.subscriptions, told.more, told.backlog) == ((Waiting("s0", 9),), 0, 9)
    place.owned_by(B)
    place.broker.failing = ["terminate"]
    place.look()
    assert place.store.records[ONE].subscriptions == (Waiting("s0", 9),)


def test_a_record_names_each_region_that_lacks_messages_of_a_topic_that_is_held(
    place: Place,
) -> None:
    log = place.storage.topic(ONE)
    log.unreplicated = {"east": 0, "west": 7, "north": 9}
    place.migrate()
    place.look()
    told = place.store.records[ONE]
    assert (told.state, told.regions) == ("replicating", (Waiting("north", 9), Waiting("west", 7)))
    log.unreplicated["north"] = 0
    for _ in range(2):
        # Looks are no steps: the gate counts those that were tried.
        place.look()
    assert place.store.records[ONE].regions == (Waiting("west", 7),)
    assert place.store.counts("m")["0"] == Counts(replicating=1, attempts=1)
    place.broker.failing = ["hold"]
    place.look()
    told = place.store.records[ONE]
    assert (told.problem, told.regions) == ("cannot hold", (Waiting("west", 7),))
    place.look()
    assert place.store.records[ONE].problem == ""
    log.unreplicated = {}
    place.look()
    assert (place.state(), place.store.records[ONE].regions) == ("terminated", ())


def test_resources_are_created_on_green_before_blue_accepts_no_write(place: Place) -> None:
    log = place.storage.topic(ONE)
    place.broker.failing = ["create"]
    place.migrate()
    assert place.look() == []
    assert (place.state(), log.ended) == ("active", False)
    assert place.store.records[ONE].problem == "cannot create"
    assert place.store.counts("m")["0"] == Counts(active=1, attempts=1, errors=1)
    assert place.look() == ["release one", "create one", "hold one", "terminate one"]
    assert place.store.records[ONE].problem == ""


def test_a_subscription_that_is_made_while_green_is_asked_is_there_before_the_end_of_writes(
    place: Place,
) -> None:
    """Green would keep nothing for it of what producers write there before its consumer comes."""
    log = place.storage.topic(ONE, early=0)
    hold = place.broker.hold

    def meanwhile(topic: str) -> None:
        log.subscriptions["late"] = 0
        hold(topic)

    place.broker.hold = meanwhile  # type: ignore[method-assign]
    place.migrate()
    assert place.look() == ["create one", "hold one", "create one", "terminate one"]
    assert place.storage.subscribed_on_green == {ONE: {"early", "late"}}


def held_for_a_region(place: Place) -> Log:
    """A topic whose producers wait, as another region lacks messages of it."""
    log = place.storage.topic(ONE)
    log.unreplicated = {"west": 7}
    place.migrate()
    assert place.look() == ["create one", "hold one"]
    return log


def test_a_subscription_that_is_made_while_other_regions_lack_messages_is_on_green_too(
    place: Place,
) -> None:
    """Hours may pass, and owners change: who held the topic did not know of it."""
    log = held_for_a_region(place)
    log.subscriptions["late"] = 0
    log.unreplicated = {}
    place.owned_by(B)
    assert place.look() == ["hold one", "create one", "terminate one"]
    assert place.storage.subscribed_on_green == {ONE: {"late"}}


def test_a_topic_with_a_replication_backlog_is_unavailable_until_it_has_none(
    place: Place,
) -> None:
    log = held_for_a_region(place)
    assert (place.state(), log.ended) == ("replicating", False)
    # It is here still: no new one.
    assert place.asked(ONE) is AskAgain
    assert place.look() == ["hold one"]
    assert place.state() == "replicating"
    log.unreplicated = {}
    assert place.look() == ["hold one", "terminate one"]
    assert place.state() == "terminated"


def test_a_topic_of_a_later_wave_is_listed_and_left(place: Place) -> None:
    place.storage.topic(ONE)
    place.storage.topic(TWO)
    place.migrate(waves=(Wave((TWO,)),))
    assert place.look() == ["create two", "hold two", "terminate two"]
    assert place.store.counts("m")["1"] == Counts(active=1)
    place.migrate(waves=(Wave((TWO,)),), wave=1)
    assert "terminate one" in place.look()


def test_topics_that_had_migrated_before_stay_where_they_are(place: Place) -> None:
    """The whole cluster goes elsewhere; what is made again goes where its scope went."""
    place.storage.topic(ONE)
    place.migrate(scope=ONE)
    place.look()
    place.look()
    place.migrate(MigrationState.COMPLETED, scope=ONE)
    elsewhere = Target(serviceUrl="http://other:8080", brokerServiceUrl="pulsar://other:6650")
    whole = Migration("w", "c", CLUSTER, elsewhere, apart=(ONE,), at=1)
    place.store.known["w"] = whole
    place.storage.topic(TWO)
    assert place.look() == ["create two", "hold two", "terminate two"]
    assert (place.mover.green_for(ONE), place.mover.green_for(TWO)) == (GREEN, elsewhere)
    new = f"{ONE}-partition-1"
    assert place.asked(new) is AskAgain
    place.look()
    assert place.asked(new) == GREEN
    assert place.store.records[new].migration == "m"


def test_a_bundle_all_of_whose_topics_had_migrated_is_not_named_again(place: Place) -> None:
    place.store.known["w"] = Migration("w", "c", CLUSTER, GREEN, apart=("t/ns",))
    place.look()
    assert place.store.marks == {}


def test_a_step_that_takes_long_is_logged(place: Place) -> None:
    """A broker that asks a slow green loses its lease, and no log said why."""
    place.storage.topic(ONE)
    place.migrate()
    create_on = place.broker.create_on

    def slow(target: Target, topic: str) -> None:
        create_on(target, topic)
        place.clock.now += 2 * SLOW_S

    place.broker.create_on = slow  # type: ignore[method-assign]
    with capture_logs() as lines:
        place.look()
    assert [(line["topic"], line["step"], line["seconds"]) for line in lines] == [
        (ONE, "begin", 6.6)
    ]


def test_a_pause_begins_nothing_and_drains_what_was_terminated(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate()
    place.look()
    place.storage.topic(TWO)
    place.migrate(MigrationState.PAUSED)
    assert place.look() == ["terminate one", "remove one"]
    assert place.state(TWO) == "active"


def test_a_rollback_brings_back_what_green_has_taken_no_write_of(place: Place) -> None:
    place.storage.topic(ONE, slow=0).written = 3
    place.storage.topic(TWO, slow=0).written = 3
    place.migrate()
    place.look()
    place.storage.green[TWO] = 1
    place.migrate(MigrationState.ROLLING_BACK)
    done = place.look()
    assert done == ["take back one", "reopen one", "take back two"]
    assert (place.state(ONE), place.state(TWO)) == ("active", "terminated")
    assert not place.storage.blue[ONE].ended
    assert place.store.records[TWO].stays
    assert place.store.counts("m")["0"].stays == 1
    assert place.mover.green_for(ONE) is None
    # What stays goes on, whatever becomes of the rest.
    place.migrate(MigrationState.ROLLED_BACK)
    place.storage.blue[TWO].subscriptions["slow"] = 3
    assert place.look() == ["terminate two", "redirect two#slow", "remove two"]
    assert place.mover.green_for(TWO) == GREEN


@pytest.mark.parametrize("state", ["terminated", "draining", "migrated"])
def test_a_topic_comes_back_without_a_green_that_is_given_up(place: Place, state: str) -> None:
    """A rollback whose green is gone had no end, and nobody took the topic's writes."""
    place.storage.topic(ONE, slow=0, done=9).written = 0 if state == "migrated" else 9
    place.migrate()
    while place.state() != state:
        place.look()
    place.storage.green[ONE] = 7
    place.migrate(MigrationState.ROLLING_BACK)
    place.store.known["m"] = replace(place.store.known["m"], alone=True)
    with capture_logs() as lines:
        assert place.look() == ["reopen one"]
    assert [line["topic"] for line in lines] == [ONE]
    assert place.state() == "active"
    counts = place.store.counts("m")["0"]
    assert advance(place.store.known["m"], (counts,), 0, 1).state is MigrationState.ROLLED_BACK


@pytest.mark.parametrize("state", ["terminated", "draining", "migrated"])
def test_a_rollback_writes_down_where_a_topic_has_gone_on_to(place: Place, state: str) -> None:
    log = place.storage.topic(ONE, slow=0, done=9)
    log.written = 0 if state == "migrated" else 9
    place.migrate()
    while place.state() != state:
        place.look()
    place.storage.gone[ONE] = "http://teal:8080"
    place.migrate(MigrationState.ROLLING_BACK)
    with capture_logs() as lines:
        assert place.look() == ["take back one"]
    assert [line["topic"] for line in lines] == [ONE]
    log.subscriptions["slow"] = 9
    place.look()
    told = place.store.records[ONE]
    assert (told.state, told.stays, told.gone) == ("migrated", True, "http://teal:8080")
    counts = place.store.counts("m")["0"]
    assert (counts.errors, counts.stays) == (0, 1)


@pytest.mark.parametrize("state", ["terminated", "draining", "migrated"])
def test_a_topic_that_blue_has_lost_stays_on_green_in_a_rollback(place: Place, state: str) -> None:
    """The step failed at every look, and the rollback never ended."""
    log = place.storage.topic(ONE, slow=0, done=9)
    log.written = 0 if state == "migrated" else 9
    place.migrate()
    while place.state() != state:
        place.look()
    place.storage.blue.clear()
    place.storage.removed.clear()
    place.migrate(MigrationState.ROLLING_BACK)
    with capture_logs() as lines:
        assert place.look() == ["take back one", "remove one"]
    assert [line["topic"] for line in lines] == [ONE]
    told = place.store.records[ONE]
    assert (told.state, told.stays, told.lost, told.problem) == ("migrated", True, True, "")
    # Who had not read it all there is named still.
    assert told.subscriptions == (() if state == "migrated" else (Waiting("slow", 9),))
    # Nothing is left of it that a wave, or the end, could wait for.
    assert place.store.counts("m")["0"].backlog == 0
    assert place.look() == []
    counts = place.store.counts("m")["0"]
    assert (counts.errors, counts.stays) == (0, 1)
    rolling = replace(place.store.known["m"], state=MigrationState.ROLLING_BACK)
    assert advance(rolling, (counts,), 0, 1).state is MigrationState.ROLLED_BACK
    assert place.asked(ONE) == GREEN


def test_a_topic_that_stayed_and_drains_is_counted_by_a_later_migration_of_its_scope(
    place: Place,
) -> None:
    """That one ended without it, while a subscription had still to read it on blue."""
    place.storage.topic(ONE, slow=0).written = 3
    place.storage.topic(TWO)
    place.migrate()
    place.look()
    place.storage.green[ONE] = 1
    for state in (MigrationState.ROLLING_BACK, MigrationState.ROLLED_BACK):
        place.migrate(state)
        place.look()
        place.look()
    assert (place.state(ONE), place.state(TWO)) == ("draining", "active")
    elsewhere = Target(serviceUrl="http://other:8080", brokerServiceUrl="pulsar://other:6650")
    place.store.known["n"] = Migration("n", "c", "t/ns", elsewhere, at=1)
    for _ in range(3):
        place.look()
    assert (place.state(ONE), place.state(TWO)) == ("draining", "migrated")
    counts = place.store.counts("n")["0"]
    assert (counts.draining, counts.migrated, counts.backlog) == (1, 1, 3)
    assert advance(place.store.known["n"], (counts,), 0, 1).state is MigrationState.RUNNING
    # Its producers are on the green of the first one, and so its consumers go there.
    assert (place.mover.green_for(ONE), place.mover.green_for(TWO)) == (GREEN, elsewhere)
    place.owned_by(B)
    assert place.mover.green_for(ONE) == GREEN
    place.storage.blue[ONE].subscriptions["slow"] = 3
    place.look()
    assert (place.state(ONE), place.mover.green_for(ONE)) == ("migrated", GREEN)
    assert place.storage.sent == {ONE: GREEN, TWO: elsewhere}
    counts = place.store.counts("n")["0"]
    assert (counts.left, counts.migrated) == (0, 2)
    assert advance(place.store.known["n"], (counts,), 0, 1).state is MigrationState.COMPLETED
    # What it has cannot be taken back by any of them.
    place.store.known["n"] = replace(place.store.known["n"], state=MigrationState.ROLLING_BACK)
    assert "take back one" not in place.look()


def test_the_next_owner_holds_a_topic_that_other_regions_lack_messages_of_before_it_serves(
    place: Place,
) -> None:
    """What it took until its first look would not have been replicated when the topic ends."""
    place.storage.topic(ONE).unreplicated = {"west": 1}
    place.migrate()
    place.look()
    assert place.state() == "replicating"
    place.owned_by(B)
    assert place.broker.held == {ONE}


@pytest.mark.parametrize("regions", [True, False])
def test_what_is_left_of_a_topic_is_written_down_when_it_changes_and_only_then(
    place: Place, regions: bool
) -> None:
    log = place.storage.topic(ONE, slow=0)
    log.written = 3
    if regions:
        log.unreplicated = {"west": 2}
    place.migrate()
    for _ in range(2):
        place.look()
    assert place.state() == ("replicating" if regions else "draining")
    place.store.calls.clear()
    place.look()
    assert place.store.calls == []
    if regions:
        log.unreplicated = {"west": 1}
    else:
        log.subscriptions["slow"] = 1
    place.look()
    assert len(place.store.calls) == 1
    # A step that failed is over once the next one did not, though nothing else has changed.
    place.broker.failing = ["hold" if regions else "terminate"]
    place.look()
    assert place.store.records[ONE].problem
    place.look()
    assert not place.store.records[ONE].problem


def test_a_broker_follows_the_record_that_stands_when_its_own_change_is_refused(
    place: Place,
) -> None:
    """Its topic drains by a record that it has not read: it takes no write here any more."""
    log = place.storage.topic(ONE, slow=0)
    log.written = 1
    place.migrate(MigrationState.PAUSED)
    place.look()
    place.store.records[ONE] = TopicRecord(state=TopicState.DRAINING, migration="m", backlog=1)
    place.migrate()
    place.look()
    assert (place.state(), log.ended, place.broker.held) == ("draining", True, set())


class SlowGreen(MigratingBroker):
    """Each topic but TWO is for a green that does not answer, which takes three seconds."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.storage, BUNDLE)
        self.asked: list[str] = []
        self._clock = place.clock

    def create_on(self, target: Target, topic: str) -> None:
        if topic == TWO:
            super().create_on(target, topic)
            return
        self.asked.append(topic)
        self._clock.now += 3.0
        raise CannotMigrate("green does not answer")


def slow_green(place: Place) -> tuple[SlowGreen, list[str]]:
    """A migration of ten topics whose green is slow, and another one of TWO, which is not."""
    slow = [f"persistent://t/ns/slow-{number}" for number in range(10)]
    for topic in (*slow, TWO):
        place.storage.topic(topic)
    broker = SlowGreen(place)
    place.holdings.hold(BUNDLE, Epoch(1, place.epoch))
    place.mover = Mover("c", A, place.epoch, broker, place.store, place.holdings, place.clock)
    place.migrate(apart=(TWO,))
    place.store.known["n"] = Migration("n", "c", TWO, GREEN, at=1)
    return broker, slow


def test_a_green_that_is_slow_does_not_keep_other_migrations_waiting(place: Place) -> None:
    """They waited for three seconds a topic, at each look, for each of their waves."""
    broker, _ = slow_green(place)
    while place.state(TWO) != "terminated":
        place.mover.look(lambda: None)
    assert len(broker.asked) <= 2
    assert place.store.marks == {("m", BUNDLE): 0, ("n", BUNDLE): 0}
    while place.state(TWO) != "migrated":
        place.mover.look(lambda: None)
    assert len(broker.asked) <= 4


def test_every_topic_whose_green_is_slow_is_asked_for_in_turn(place: Place) -> None:
    broker, slow = slow_green(place)
    for _ in range(60):
        place.mover.look(lambda: None)
    assert {*broker.asked} == {*slow}
    assert all(place.store.records[each].problem for each in slow)
    # The job counts the attempts: its gate must see a green that is away.
    assert place.store.counts("m")["0"].errors == len(broker.asked)


@pytest.mark.parametrize(
    ("why", "noted"),
    [("", "no reason given"), ("x" * 1000, "x" * LONGEST_PROBLEM)],
)
def test_a_step_that_fails_is_noted_with_a_reason_of_bounded_length(
    place: Place, why: str, noted: str
) -> None:
    """Without one it would count as done."""
    place.storage.topic(ONE)
    place.migrate()
    place.broker.failing, place.broker.why = ["create"], why
    place.look()
    assert place.store.records[ONE].problem == noted
    assert place.store.counts("m")["0"].errors == 1


def test_topics_of_a_bundle_that_went_to_another_owner_are_forgotten(place: Place) -> None:
    """What becomes of them is not known here any more."""
    place.storage.topic(ONE)
    place.migrate()
    place.look()
    assert place.mover.green_for(ONE) == GREEN
    place.holdings.drop(BUNDLE)
    place.look()
    assert place.asked(ONE) is not GREEN


def test_a_bundle_is_named_again_for_a_later_wave_with_topics_that_were_listed_for_it(
    place: Place,
) -> None:
    """The migration would stand still: what is listed already is not asked for again."""
    place.storage.topic(ONE)
    waves = (Wave((TWO,)),)
    place.migrate(waves=waves)
    place.look()
    assert (place.state(ONE), place.store.marks) == ("active", {("m", BUNDLE): 0})
    place.migrate(MigrationState.PAUSED, waves=waves, wave=1)
    place.look()
    assert (place.state(ONE), place.store.marks) == ("active", {("m", BUNDLE): 1})


def test_topics_of_pulsars_own_that_are_in_a_bundle_stay_where_they_are(place: Place) -> None:
    own = "persistent://t/ns/__change_events"
    for topic in (own, ONE):
        place.storage.topic(topic)
    place.migrate()
    for _ in range(3):
        place.look()
    assert (place.state(own), place.state(ONE)) == ("unknown", "migrated")
    assert list(place.storage.blue) == [own]


def test_of_topics_whose_migration_is_forgotten_only_those_on_blue_are_asked_for(
    place: Place,
) -> None:
    """The others would be refused at each look, for ever."""
    for topic, state in ((ONE, TopicState.ACTIVE), (TWO, TopicState.DRAINING)):
        place.storage.topic(topic)
        place.store.records[topic] = TopicRecord(state=state, migration="gone")
    place.migrate(MigrationState.ROLLED_BACK)
    place.owned_by(B)
    place.store.calls.clear()
    place.look()
    asked = [each.topic for call in place.store.calls for each in call.changes]
    assert (asked, place.state(ONE), place.state(TWO)) == ([ONE], "unknown", "draining")


def test_a_bundle_is_not_named_while_a_topic_of_it_drains_by_an_earlier_migration(
    place: Place,
) -> None:
    """The later one was complete before it was said whether the topic stays."""
    place.storage.topic(ONE, slow=0).written = 1
    place.storage.green[ONE] = 1
    place.migrate(MigrationState.ROLLED_BACK)
    # As a store has it that went back to before green was asked.
    place.store.records[ONE] = TopicRecord(state=TopicState.TERMINATED, migration="m")
    place.store.known["n"] = Migration("n", "c", "t/ns", GREEN, at=1)
    place.owned_by(B)
    assert place.look() == ["take back one"]
    assert (place.store.records[ONE].stays, place.store.marks) == (True, {})
    place.look()
    assert (place.store.records[ONE].migration, place.store.marks) == ("n", {("n", BUNDLE): 0})


def test_a_topic_of_a_migration_that_nobody_knows_holds_up_no_later_one(place: Place) -> None:
    place.storage.topic(ONE, slow=0).written = 1
    place.store.records[ONE] = TopicRecord(state=TopicState.TERMINATED, migration="unknown")
    place.migrate()
    assert place.look() == []
    assert place.store.marks == {("m", BUNDLE): 0}


def test_producers_that_were_held_by_a_migration_that_is_forgotten_are_let_in(
    place: Place,
) -> None:
    """No step of it followed, and they waited until the bundle went elsewhere."""
    place.storage.topic(ONE)
    place.migrate()

    def fails(topic: str) -> dict[str, int]:
        raise CannotMigrate(f"cannot ask for {topic}")

    place.broker.replication_backlog = fails  # type: ignore[method-assign]
    place.look()
    assert place.broker.held == {ONE}
    place.store.known = {"other": Migration("other", "c", "t/other", GREEN)}
    place.clock.advance(LOST_S + 1)
    place.broker.failing = ["release"]
    assert place.look() == []
    assert (place.state(), place.broker.held) == ("active", {ONE})
    assert place.look() == ["release one"]
    assert (place.state(), place.broker.held) == ("unknown", set())


def test_a_rollback_makes_a_removed_topic_again(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate()
    place.look()
    place.look()
    assert ONE not in place.storage.blue
    place.migrate(MigrationState.ROLLING_BACK)
    assert place.look() == ["take back one", "reopen one"]
    assert ONE in place.storage.blue


def test_a_rollback_that_came_meanwhile_releases_the_producers(place: Place) -> None:
    """The owner believes that the migration runs; the store knows better."""
    place.storage.topic(ONE)
    place.migrate()
    back = replace(place.store.known["m"], state=MigrationState.ROLLING_BACK)
    create_on = place.broker.create_on

    def meanwhile(target: Target, topic: str) -> None:
        create_on(target, topic)
        place.store.known = {"m": back}

    place.broker.create_on = meanwhile  # type: ignore[method-assign]
    assert place.look() == ["create one", "hold one", "release one"]
    assert (place.state(), place.broker.held) == ("active", set())


@pytest.mark.parametrize(
    "state", [MigrationState.PAUSED, MigrationState.ROLLING_BACK, MigrationState.ROLLED_BACK]
)
def test_producers_that_were_held_for_a_step_that_failed_are_let_in(
    place: Place, state: MigrationState
) -> None:
    """What fails is asked after they were held; then nothing more is due for the topic."""
    log = place.storage.topic(ONE)
    place.migrate()
    backlog = place.broker.replication_backlog

    def fails(topic: str) -> dict[str, int]:
        place.broker.replication_backlog = backlog  # type: ignore[method-assign]
        raise CannotMigrate(f"cannot ask for {topic}")

    place.broker.replication_backlog = fails  # type: ignore[method-assign]
    assert place.look() == ["create one", "hold one"]
    assert place.state() == "active"
    place.migrate(state)
    place.look()
    assert (place.broker.held, log.ended) == (set(), False)


def test_redirects_of_a_bundle_that_was_split_outlive_it(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate()
    place.look()
    place.storage.green[ONE] = 1
    place.migrate(MigrationState.ROLLING_BACK)
    place.look()
    place.migrate(MigrationState.ROLLED_BACK)
    place.look()
    assert place.state() == "migrated"
    for half in ("t/ns/0x00000000_0x7fffffff", "t/ns/0x7fffffff_0xffffffff"):
        place.mover.resume(half, lambda: None)
        place.holdings.hold(half, Epoch(1, place.epoch))
    place.holdings.drop(BUNDLE)
    place.look()
    assert place.mover.green_for(ONE) == GREEN


def test_a_topic_that_users_deleted_is_forgotten(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate(MigrationState.PAUSED)
    place.look()
    del place.storage.blue[ONE]
    place.look()
    assert place.state() == "unknown"


@pytest.mark.parametrize("drained", [False, True])
def test_a_topic_that_users_deleted_while_it_drained_has_migrated(
    place: Place, drained: bool
) -> None:
    """Its broker could say nothing of it: its step failed, and the migration never ended."""
    place.storage.topic(ONE, slow=0).written = 1
    place.migrate()
    place.look()
    if drained:
        place.look()
    del place.storage.blue[ONE]

    def backlog(topic: str) -> dict[str, int]:
        raise CannotMigrate(f"{topic} does not exist")

    place.broker.backlog = backlog  # type: ignore[method-assign]
    assert place.look() == ["remove one"]
    assert place.state() == "migrated"
    assert place.store.counts("m")["0"].errors == 0
    assert place.asked(ONE) == GREEN
    assert place.look() == []


def test_a_pause_does_not_keep_producers_waiting_for_other_regions(place: Place) -> None:
    """They were held until somebody resumed: a gate may pause a migration at night."""
    log = held_for_a_region(place)
    assert (place.state(), place.broker.held) == ("replicating", {ONE})
    place.migrate(MigrationState.PAUSED)
    place.look()
    log.unreplicated = {}
    place.look()
    assert (place.state(), log.ended, place.broker.held) == ("terminated", True, set())


def test_a_topic_whose_migration_is_remembered_no_longer_is_forgotten(place: Place) -> None:
    place.storage.topic(ONE)
    place.store.records[ONE] = TopicRecord(state=TopicState.ACTIVE, migration="old")
    place.store.records[TWO] = TopicRecord(state=TopicState.ACTIVE, migration="old")
    place.migrate(MigrationState.ROLLED_BACK)
    assert place.look() == []
    assert (place.state(), place.state(TWO)) == ("unknown", "unknown")
    assert place.store.sums == {}


def test_a_bundle_is_named_once_a_wave_when_all_its_topics_are_enlisted(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate()
    place.look()
    assert place.store.marks == {("m", BUNDLE): 0}
    place.store.marks.clear()
    place.look()
    assert place.store.marks == {}
    place.migrate(wave=1)
    place.look()
    assert place.store.marks == {("m", BUNDLE): 1}


def test_a_bundle_is_not_named_while_a_topic_of_it_is_not_enlisted(place: Place) -> None:
    """Its record is of an earlier migration, which its owner has not read."""
    place.storage.topic(ONE)
    place.migrate(scope="t/other")
    place.look()
    place.migrate()
    place.store.records[ONE] = TopicRecord(state=TopicState.ACTIVE, migration="earlier")
    place.look()
    assert place.store.marks == {}
    place.look()
    assert place.store.marks == {("m", BUNDLE): 0}


def test_a_record_that_the_broker_did_not_follow_is_followed_at_the_next_look(
    place: Place,
) -> None:
    log = place.storage.topic(ONE)
    place.broker.failing = ["terminate"]
    place.migrate()
    place.look()
    assert (place.state(), log.ended) == ("terminated", False)
    assert place.store.records[ONE].problem == "cannot terminate"
    place.look()
    assert (place.state(), log.ended) == ("migrated", True)


def test_a_topic_that_could_not_be_removed_is_removed_later(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate()
    place.look()
    place.broker.failing = ["remove"]
    place.look()
    assert (place.state(), ONE in place.storage.blue) == ("migrated", True)
    assert place.look() == ["remove one"]
    assert place.storage.blue == {}


def test_the_next_owner_serves_no_topic_that_was_terminated(place: Place) -> None:
    """Its own files may not say so: the last owner crashed after the record."""
    log = place.storage.topic(ONE, slow=0)
    log.written = 1
    place.migrate()
    place.broker.failing = ["terminate"]
    place.look()
    assert not log.ended
    place.owned_by(B)
    assert log.ended
    assert place.mover.green_for(ONE) == GREEN


def test_the_next_owner_serves_a_topic_that_was_taken_back(place: Place) -> None:
    log = place.storage.topic(ONE, slow=0)
    log.written = 1
    place.migrate()
    place.look()
    place.migrate(MigrationState.ROLLING_BACK)
    place.broker.failing = ["reopen"]
    place.look()
    assert (place.state(), log.ended) == ("active", True)
    place.owned_by(B)
    assert not log.ended


def failed_to_open(place: Place) -> Log:
    """A rollback that has written the record, and not opened the topic."""
    log = place.storage.topic(ONE, slow=0)
    log.written = 1
    place.migrate()
    place.look()
    place.broker.failing = ["reopen"]
    place.migrate(MigrationState.ROLLING_BACK)
    place.look()
    assert (place.state(), log.ended) == ("active", True)
    place.migrate(MigrationState.ROLLED_BACK)
    later = Migration("n", "c", "t/ns", GREEN, waves=(Wave((TWO,)),), at=1)
    place.store.known["n"] = later
    return log


def test_the_next_owner_serves_a_topic_though_a_later_wave_has_it_again(place: Place) -> None:
    """Nobody served it on either cluster, for good: green had ended it."""
    log = failed_to_open(place)
    place.owned_by(B)
    place.look()
    assert (place.state(), log.ended) == ("active", False)
    assert place.store.records[ONE].migration == "n"


def test_a_topic_is_enlisted_again_once_its_broker_has_opened_it(place: Place) -> None:
    """Its record alone says that it was taken back; until then its bundle is not named either."""
    log = failed_to_open(place)
    place.broker.failing = ["reopen"]
    place.look()
    assert (place.store.records[ONE].migration, log.ended) == ("m", True)
    assert ("n", BUNDLE) not in place.store.marks
    place.look()
    assert not log.ended
    place.look()
    assert place.store.records[ONE].migration == "n"
    assert place.store.marks["n", BUNDLE] == 0


@pytest.mark.parametrize(
    ("kind", "step", "cause"),
    [
        pytest.param("failing", "terminate", "cannot terminate", id="the broker refuses a step"),
        pytest.param("defects", "terminate one", "ValueError: terminate one", id="its code fails"),
    ],
)
def test_a_bundle_whose_topics_cannot_be_restored_is_not_loaded(
    place: Place, kind: str, step: str, cause: str
) -> None:
    place.storage.topic(ONE)
    place.migrate()
    place.look()
    setattr(place.broker, kind, [step])
    with pytest.raises(CannotLoad, match=cause):
        place.mover.resume(BUNDLE, lambda: None)


def test_an_owner_that_lost_the_bundle_changes_nothing(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate()
    old, broker = place.mover, place.broker
    place.owned_by(B)
    old.wake()
    old.look(lambda: None)
    assert (place.state(), broker.done) == ("unknown", [])


def test_an_owner_that_lost_the_bundle_follows_no_record_of_the_next(place: Place) -> None:
    """The next owner ends the topic while this one is between green and the record."""
    log = place.storage.topic(ONE)
    place.migrate()
    old, broker = place.mover, place.broker
    create_on = broker.create_on

    def meanwhile(target: Target, topic: str) -> None:
        create_on(target, topic)
        place.owned_by(B)
        place.look()

    broker.create_on = meanwhile  # type: ignore[method-assign]
    old.wake()
    old.look(lambda: None)
    assert (place.state(), log.ended) == ("terminated", True)
    assert broker.done == ["create one", "hold one"]
    assert place.store.counts("m")["0"] == Counts(terminated=1, attempts=1)


def test_a_broker_without_the_port_takes_no_part(place: Place) -> None:
    mover = Mover("c", A, 1, Recorder(BUNDLE), place.store, Holdings(place.clock), place.clock)
    mover.resume(BUNDLE, lambda: None)
    mover.look(lambda: None)
    assert mover.next_at == float("inf")


def test_a_look_is_done_in_parts_and_keeps_the_lease_between_topics(place: Place) -> None:
    for number in range(10):
        place.storage.topic(f"persistent://t/ns/{number}")
    place.migrate()
    kept = 0

    def keep() -> None:
        nonlocal kept
        kept += 1
        place.clock.advance(PART_S / 4)

    place.mover.look(keep)
    assert kept == 4
    assert place.mover.next_at < place.clock.now
    while place.mover.next_at < place.clock.now:
        place.mover.look(keep)
    assert place.store.counts("m")["0"] == Counts(terminated=10, attempts=10)


def test_the_lease_is_kept_while_many_topics_are_enlisted(place: Place) -> None:
    for number in range(2 * LISTED + 1):
        place.storage.topic(f"{ONE}-{number}")
    place.migrate(MigrationState.PAUSED)
    kept = list[int]()
    place.mover.wake()
    place.mover.look(lambda: kept.append(len(place.store.records)))
    assert sorted(set(kept)) == [0, LISTED, 2 * LISTED, 2 * LISTED + 1]
    assert place.store.marks == {("m", BUNDLE): 0}


def test_the_lease_is_kept_while_the_records_of_a_large_bundle_are_read_and_followed(
    place: Place,
) -> None:
    """50,000 took 2.4 s, in which the lease was not renewed."""
    for number in range(5):
        place.storage.topic(f"{ONE}-{number}", slow=0).written = 1
    place.migrate()
    place.look()
    place.store.page = 2
    done = list[int]()

    def keep() -> None:
        done.append(len(place.broker.done))

    place.broker.done.clear()
    place.mover.resume(BUNDLE, keep)
    # After each page of the records, then after each topic.
    assert done == [0, 0, 0, 1, 2, 3, 4, 5]


def test_an_owner_whose_lease_ends_while_it_reads_the_records_stops(place: Place) -> None:
    place.storage.topic(ONE, slow=0).written = 1
    place.migrate()
    place.look()
    place.broker.done.clear()

    def keep() -> None:
        raise Closed("the lease ran out")

    with pytest.raises(Closed):
        place.mover.resume(BUNDLE, keep)
    assert place.broker.done == []


def test_a_look_is_due_as_often_as_the_migration_says(place: Place) -> None:
    place.look()
    assert place.mover.next_at == place.clock.now + IDLE_S
    place.migrate(check=3.0)
    place.look()
    assert place.mover.next_at == place.clock.now + 3.0


def test_seconds_between_looks_of_zero_disable_every_step(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate(check=0.0)
    assert place.look() == []
    assert (place.state(), place.mover.next_at) == ("active", place.clock.now + IDLE_S)


STEPS = st.lists(
    st.sampled_from(["look", "crash", "lose", "move", "read", "write", "pause", "resume", "back"]),
    max_size=30,
)


@given(STEPS, st.integers(0, 12))
@settings(max_examples=300)
def test_whatever_happens_a_topic_is_written_on_one_side_and_arrives(
    happens: list[str], fail_at: int
) -> None:
    """Blue accepts no write once green has taken one; a rollback brings back what it may."""
    place = Place()
    place.storage.topic(ONE, slow=0).written = 2
    place.migrate()
    for number, each in enumerate(happens):
        place.broker.failing = [VERBS[number % 7]] if number == fail_at else []
        place.store.lost = 1 if each == "lose" else 0
        try:
            _happen(place, each)
        except (StoreUnavailable, CannotLoad) as error:
            place.broker.failing, place.store.lost = [], 0
            if isinstance(error, CannotLoad) or number % 2:
                place.owned_by(B)
        _check(place)
    place.broker.failing, place.store.lost = [], 0
    _let_it_end(place)
    _check(place)
    state = place.store.known["m"].state
    if state is MigrationState.RUNNING:
        assert place.state() == "migrated"
    elif place.state() == "active":
        assert not place.storage.blue[ONE].ended
        assert not place.storage.green.get(ONE)
    elif place.state() != "unknown":
        assert place.store.records[ONE].stays


VERBS = ["create", "hold", "terminate", "redirect", "remove", "take back", "reopen"]
VERDICTS = {
    ("pause", MigrationState.RUNNING): MigrationState.PAUSED,
    ("resume", MigrationState.PAUSED): MigrationState.RUNNING,
    ("back", MigrationState.RUNNING): MigrationState.ROLLING_BACK,
    ("back", MigrationState.PAUSED): MigrationState.ROLLING_BACK,
}


def _happen(place: Place, what: str) -> None:
    after = VERDICTS.get((what, place.store.known["m"].state))
    if after is not None:
        place.migrate(after)
    elif what in ("look", "lose"):
        place.look()
    elif what in ("crash", "move"):
        place.owned_by(A if what == "crash" else B)
    elif what == "read":
        _read(place)
    elif what == "write":
        _write(place)


def _let_it_end(place: Place) -> None:
    if place.store.known["m"].state is MigrationState.PAUSED:
        place.migrate(MigrationState.RUNNING)
    for _ in range(4):
        place.look()
        _read(place)


def _read(place: Place) -> None:
    """A consumer reads all that blue has."""
    log = place.storage.blue.get(ONE)
    if log is not None:
        log.subscriptions = dict.fromkeys(log.subscriptions, log.written)


def _write(place: Place) -> None:
    """A producer writes where it is sent."""
    log = place.storage.blue.get(ONE)
    if log is not None and not log.ended:
        if ONE not in place.broker.held:
            log.written += 1
    elif place.mover.green_for(ONE) is not None and ONE in place.storage.green:
        place.storage.green[ONE] += 1


def _check(place: Place) -> None:
    log = place.storage.blue.get(ONE)
    if place.storage.green.get(ONE) and log is not None:
        assert log.ended, "both clusters accept writes"
    if place.state() in (TopicState.ACTIVE, TopicState.UNKNOWN) and log is not None:
        assert not place.storage.green.get(ONE)


def test_no_more_topics_are_looked_at_between_two_renewals_of_the_lease_than_in_one_request(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a bundle's topics were, before the first was enlisted: that took ten seconds."""
    for number in range(2 * LISTED + 1):
        place.storage.topic(f"{ONE}-{number}")
    place.migrate(MigrationState.PAUSED)
    looked, kept = list[str](), list[int]()
    wave_of = KnownTopics.wave_of

    def counting(known: KnownTopics, migration: Migration, topic: str) -> int:
        looked.append(topic)
        return wave_of(known, migration, topic)

    monkeypatch.setattr(KnownTopics, "wave_of", counting)
    place.mover.wake()
    place.mover.look(lambda: kept.append(len(looked)))
    assert len(looked) == 2 * LISTED + 1
    assert max(after - before for before, after in pairwise(kept)) <= LISTED


def test_a_defect_of_the_broker_fails_one_step_and_ends_nothing(place: Place) -> None:
    """It would end the agent with all its bundles, and the same at each owner that follows."""
    place.storage.topic(ONE)
    place.storage.topic(TWO)
    place.migrate()
    place.broker.defects = ["create one"] * 2
    with capture_logs() as told:
        assert place.look() == ["create two", "hold two", "terminate two"]
        place.look()
    problem = place.store.records[ONE].problem
    assert problem == "the broker's code failed, see its log: ValueError: create one"
    assert (place.state(), place.state(TWO)) == ("active", "migrated")
    [line] = [each for each in told if each["log_level"] == "error"]
    assert (line["subject"], line["exc_info"]) == (ONE, True)
    assert place.mover.counts[Step.BEGIN, False] == 2
    place.look()
    assert (place.state(), place.store.records[ONE].problem) == ("terminated", "")


@pytest.mark.parametrize("lost", [StoreUnavailable, Closed])
def test_an_error_of_the_store_is_no_defect_of_the_broker(
    place: Place, lost: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    place.storage.topic(ONE)
    place.migrate()
    place.look()

    def fail(*_: object) -> None:
        raise lost("no")

    monkeypatch.setattr(place.store, "change", fail)
    with pytest.raises(lost):
        place.look()


def test_topics_go_on_while_the_broker_cannot_list_them(place: Place) -> None:
    place.storage.topic(ONE, slow=0)
    place.migrate()
    place.look()
    place.broker.defects = ["list"] * 2
    place.store.marks.clear()
    assert place.look() == ["terminate one", "redirect one#slow", "remove one"]
    assert place.asked(TWO) is AskAgain
    place.mover.look(lambda: None)
    assert place.asked(TWO) is AskAgain
    place.mover.look(lambda: None)
    assert place.asked(TWO) == GREEN


def test_a_name_that_is_not_whole_keeps_its_bundle_from_being_named(place: Place) -> None:
    """It is in no namespace's scope: its migration would be complete, and its clients on blue."""
    short, unreadable = "t/ns/short", "persistent://t/ns/\ud800"
    for name in (ONE, short, unreadable):
        place.storage.topic(name)
    place.migrate(scope=CLUSTER)
    place.broker.whole_ring = True
    with capture_logs() as told:
        place.look()
        place.look()
    assert (place.state(), place.state(short)) == ("migrated", "unknown")
    assert not place.store.marks
    assert [each["topic"] for each in told if each["log_level"] == "error"] == [unreadable, short]
    del place.storage.blue[short], place.storage.blue[unreadable]
    place.look()
    assert place.store.marks == {("m", BUNDLE): 0}
