"""A whole agent whose broker's topics migrate: what the job commands, and what a move changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis

from sinks.redis.migrations import Migrations
from tests.agent.support import BUNDLE, HALVES, A, B, Job
from tests.agent.turned_by_hand import Host
from tests.support.migrating_broker import MigratingBroker, Storage
from tests.support.migrations import GREEN
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts, Migration
from trimtab.wire.command import CommandKind

ONE = "persistent://t/ns/one"


class Fleet:
    """Two brokers of one cluster that share their storage."""

    def __init__(self, job: Job, client: Redis, host: Callable[..., Host]) -> None:
        self.job, self.storage = job, Storage()
        self.migrations = Migrations(client)
        self.a, self.b = (
            host(name, *loaded, broker=MigratingBroker(self.storage, *loaded))
            for name, loaded in ((A, (BUNDLE,)), (B, ()))
        )
        for each in (self.a, self.b):
            each.agent.turn()

    def migrate(self, state: MigrationState = MigrationState.RUNNING) -> int:
        it = Migration("m", self.job.cluster, "t/ns", GREEN, state)
        return len(self.migrations.write(self.job.cluster, 1, [it]))

    def counts(self) -> Counts:
        return self.migrations.counts(self.job.cluster, "m").get("t/ns", Counts())


@pytest.fixture
def fleet(job: Job, client: Redis, host: Callable[..., Host]) -> Fleet:
    return Fleet(job, client, host)


def test_a_command_has_the_owner_take_its_topics_to_green(fleet: Fleet) -> None:
    fleet.storage.topic(ONE, slow=1).written = 1
    assert fleet.migrate() == 2
    agent = fleet.a.agent
    # The first obeys the command, the second looks; the third looks again after a second.
    for _ in range(2):
        agent.turn()
    assert agent.obeyed()[CommandKind.TOPIC_MIGRATED, "done"] == 1  # type: ignore[index]
    assert fleet.counts() == Counts(terminated=1, attempts=1)
    assert agent.green_for(ONE) == GREEN
    fleet.a.clock.advance(1.0)
    agent.turn()
    assert fleet.counts() == Counts(migrated=1, attempts=2)
    assert agent.serves(BUNDLE)


def test_each_topic_of_a_brokers_bundles_migrates_and_no_topic_of_anothers(fleet: Fleet) -> None:
    """As `asyncMigrate` of each topic that the broker owns: the first look begins all of them."""
    for name in ("one", "two", "three"):
        fleet.storage.topic(f"persistent://t/ns/{name}", slow=0).written = 1
    fleet.migrate()
    for _ in range(2):
        fleet.b.agent.turn()
    assert fleet.counts() == Counts()
    for _ in range(2):
        fleet.a.agent.turn()
    assert fleet.counts() == Counts(terminated=3, backlog=3, attempts=3)
    assert all(log.ended for log in fleet.storage.blue.values())


def test_the_next_owner_goes_on_where_the_topic_stands(fleet: Fleet) -> None:
    log = fleet.storage.topic(ONE, slow=0)
    log.written = 1
    fleet.migrate()
    for _ in range(2):
        fleet.a.agent.turn()
    fleet.job.transfer(A, B)
    for each in (fleet.b, fleet.a, fleet.b):
        each.agent.turn()
    assert (fleet.a.agent.serves(BUNDLE), fleet.b.agent.serves(BUNDLE)) == (False, True)
    # As it was loaded: no client found it open.
    assert fleet.b.agent.green_for(ONE) == GREEN
    log.subscriptions["slow"] = 1
    fleet.b.clock.advance(10.0)
    for _ in range(2):
        fleet.b.agent.turn()
    assert fleet.counts().migrated == 1


def test_topics_of_a_bundle_that_is_split_go_on(fleet: Fleet) -> None:
    for number in range(8):
        fleet.storage.topic(f"persistent://t/ns/{number}", slow=0).written = 1
    fleet.migrate()
    for _ in range(2):
        fleet.a.agent.turn()
    assert fleet.counts().terminated == 8
    fleet.a.broker.positions = [1, 2]
    fleet.job.split(A, "specified_positions_divide", 0x7FFFFFFF)
    fleet.a.agent.turn()
    assert [fleet.a.agent.serves(half) for half in HALVES] == [True, True]
    for log in fleet.storage.blue.values():
        log.subscriptions["slow"] = 1
    fleet.a.clock.advance(1.0)
    fleet.a.agent.turn()
    assert fleet.counts() == Counts(migrated=8, attempts=16)


def test_a_rollback_is_commanded_too(fleet: Fleet) -> None:
    fleet.storage.topic(ONE, slow=0).written = 1
    fleet.migrate()
    for _ in range(2):
        fleet.a.agent.turn()
    fleet.migrate(MigrationState.ROLLING_BACK)
    for _ in range(2):
        fleet.a.agent.turn()
    assert fleet.counts().active == 1
    assert fleet.a.agent.green_for(ONE) is None
    assert not fleet.storage.blue[ONE].ended
