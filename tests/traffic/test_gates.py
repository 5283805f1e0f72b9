"""The gates of a migration hold while brokers, drivers and Redis are killed.

A migration of two waves. Green is away: too many steps fail, it pauses, and every client is where
it was. Green is back: it goes on, until a subscription that reads nothing has a backlog; the second
wave waits for that, whatever dies meanwhile, and begins once the backlog is read.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from agent.migration.port import CannotMigrate
from simulation.traffic.client import Client
from simulation.traffic.consumer import Consumer
from simulation.traffic.crowd import SUBSCRIPTION
from simulation.traffic.frames import NONE, Message
from simulation.traffic.green import Green
from tests.support.waiting import eventually
from tests.support.waves import is_in
from tests.traffic.fleet import CrowdProcess
from tests.traffic.land import Land, crowded, land
from tests.traffic.watching import PATIENCE_S, await_clusters, await_state, names, settle
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Gate, Migration, Wave
from trimtab.migration.scopes import CLUSTER
from trimtab.wire.intent import IntentKind

GATE = Gate(backlog=0, errors=0.2)


class Reader:
    """An application that acknowledges nothing until it is told to."""

    def __init__(self, client: Client, topic: str) -> None:
        self.got, self._last, self._reads = 0, NONE, False
        self._client = client
        self._consumer = client.consumer(topic, "slow", self._take)
        eventually(lambda: client.place_of(self._consumer), "the slow one is attached", 60)

    def read(self) -> None:
        self._reads = True
        self._client.acknowledge(self._consumer, self._last)

    @property
    def cluster(self) -> str:
        return self._consumer.cluster

    def _take(self, consumer: Consumer, message: Message) -> None:
        self.got += 1
        self._last = message.entry
        if self._reads:
            consumer.acknowledge(message.entry)


def green_goes_away(it: Land, crowd: CrowdProcess, topics: int) -> None:
    for broker in it.green.brokers:
        broker.kill()
    it.migrate(topics, 2, GATE)
    rng = Random(5)
    await_state(it, MigrationState.PAUSED, rng, PATIENCE_S)
    assert "steps failed; the gate allows 20.0%" in told(it).why
    it.shake(rng, "redis")
    it.shake(rng, "driver")
    for broker in it.green.brokers:
        broker.start()
    green = Green(it.green.urls)
    probes = [f"probe-{n}" for n in range(8)]
    eventually(lambda: all(serves(green, each) for each in probes), "green", PATIENCE_S, 0.5)
    assert (told(it).state, it.counts().begun) == (MigrationState.PAUSED, 0)
    await_clusters(crowd, {"blue": topics})


def serves(green: Green, name: str) -> bool:
    """Whether green has an owner for this topic, which no client uses."""
    with suppress(CannotMigrate):
        green.create(f"persistent://t/ns-0/{name}", ())
        return True
    return False


def told(it: Land) -> Migration:
    it.readmit()
    return eventually(it.migration, "Redis answers", 60)


def backlog_holds(it: Land, kills: int) -> None:
    """The second wave waits, whatever dies, and no matter who counts."""
    rng = Random(7)

    def waits() -> bool:
        return "a backlog of" in told(it).why

    eventually(waits, "the gate waits for a backlog", PATIENCE_S, 0.5)
    for number in range(kills):
        it.shake(rng, ("broker", "redis", "driver")[number % 3], it.blue.brokers)
        it.tell(IntentKind.MIGRATION_PAUSE)
        await_state(it, MigrationState.PAUSED, rng, PATIENCE_S)
        it.tell(IntentKind.MIGRATION_RESUME)
        await_state(it, MigrationState.RUNNING, rng, PATIENCE_S)
        # By counts of after that: it says nothing once it has resumed.
        eventually(waits, "the gate waits again", PATIENCE_S, 0.5)
        assert (told(it).state, told(it).wave) == (MigrationState.RUNNING, 0)


def gated(folder: Path, topics: list[str], namespaces: int, kills: int) -> None:
    first = next(each for each in topics if is_in(Wave((CLUSTER,), 0.5), each))
    with (
        land(folder, namespaces) as it,
        Client(it.blue.urls.brokerServiceUrl, "reader") as client,
    ):
        slow = Reader(client, first)
        with crowded(it, topics, 60.0) as crowd:
            eventually(lambda: slow.got, "it has a backlog", 60)
            green_goes_away(it, crowd, len(topics))
            it.tell(IntentKind.MIGRATION_RESUME)
            backlog_holds(it, kills)
            assert slow.cluster == "blue"
            slow.read()
            await_state(it, MigrationState.COMPLETED, Random(9), PATIENCE_S)
            settle(crowd)
            await_clusters(crowd, {"green": len(topics)})
            eventually(lambda: slow.cluster == "green", "the slow one has read all", 60)
        verdict = crowd.verdict()
    assert verdict.ok, (SUBSCRIPTION, verdict)


@pytest.mark.slow
def test_the_gates_on_errors_and_backlog_hold_while_all_is_killed(tmp_path: Path) -> None:
    gated(tmp_path, names(12, 1), namespaces=1, kills=2)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_gates_hold_for_many_topics_and_kills(tmp_path: Path) -> None:
    gated(tmp_path, names(300, 3), namespaces=3, kills=18)
