"""A topic that begins on green stays there with all of its clients after a rollback."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from control.migration.progress import report, tell
from simulation.traffic.client import Client
from sinks.redis.migrations import Migrations
from sinks.redis.topics import TopicStore
from tests.support.opening import server_ms
from tests.support.waiting import eventually
from tests.traffic.inbox import Inbox, all_stored, arrived, send, texts
from tests.traffic.land import MIGRATION, Land, land
from tests.traffic.watching import PATIENCE_S, await_state
from trimtab.migration.life import MigrationState
from trimtab.wire.intent import IntentKind

NEW = "persistent://t/ns-0/new"


def stays(it: Land) -> list[str]:
    """The topics that the report names as those that stay on green."""
    store = Migrations(it.client)
    migration = store.read(it.blue.name)[MIGRATION]
    found = report(tell(migration, store, server_ms(it.client)), TopicStore(it.client), 10)
    return [each.topic for each in found.stays]


@pytest.mark.slow
def test_a_new_topic_stays_on_green_with_clients_of_before_and_after_a_rollback(
    tmp_path: Path,
) -> None:
    """Clients that came after the rollback made it on blue once more, and met no other there."""
    rng = Random(1)
    with (
        land(tmp_path, namespaces=1, brokers=1) as it,
        Client(it.blue.urls.brokerServiceUrl, "before") as before,
        Client(it.blue.urls.brokerServiceUrl, "after") as after,
    ):
        it.migrate(1, 1)
        await_state(it, MigrationState.COMPLETED, rng, PATIENCE_S)
        producer = before.producer(NEW, "p")
        send(before, producer, 0)
        all_stored(producer)
        assert before.redirects == {(NEW, ""): it.green.urls.brokerServiceUrl}
        it.shake(rng, "broker", it.blue.brokers)
        it.tell(IntentKind.MIGRATION_ROLL_BACK)
        await_state(it, MigrationState.ROLLED_BACK, rng, PATIENCE_S)
        it.shake(rng, "broker", it.blue.brokers)
        inbox = Inbox()
        consumer = after.consumer(NEW, "s", inbox)
        eventually(lambda: after.place_of(consumer), "the other client is attached", 60)
        assert consumer.cluster == "green"
        send(before, producer, 1)
        arrived(inbox, 1)
        assert inbox.got == texts(1)
        assert stays(it) == [NEW]
