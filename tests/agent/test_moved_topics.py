"""Lookups of topics that have migrated, and of those that are on their way."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from redis import Redis

from agent.lookup.server import Lookup
from agent.lookup.settling import LookupSettings
from sinks.redis.migrations import Migrations
from tests.agent.support import BUNDLE, A, Job
from tests.agent.turned_by_hand import Host
from tests.support.migrations import GREEN
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Migration
from trimtab.migration.scopes import CLUSTER
from trimtab.migration.topic_life import TopicState
from trimtab.wire.keys import topics_key
from trimtab.wire.lookup import AnswerKind, Cause
from trimtab.wire.topics import TopicRecord

ONE = "persistent://t/ns/one"


def test_a_migrated_topic_is_on_green_and_one_that_drains_is_not_yet(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    host(A, BUNDLE).agent.turn()
    cluster = job.cluster
    now = 0.0
    settings = LookupSettings(cluster, A, patience=0.0)
    lookup = Lookup(settings, client, np.random.default_rng(1), lambda: now).lookup

    def put(state: TopicState) -> None:
        text = msgspec.json.encode(TopicRecord(state=state, migration="m"))
        client.hset(topics_key(cluster, "t/ns"), ONE, text)

    def migrate(state: MigrationState, scope: str = "t/ns") -> None:
        it = Migration("m", cluster, scope, GREEN, state)
        Migrations(client).write(cluster, 1, [it])

    assert lookup(ONE).broker == A
    migrate(MigrationState.RUNNING)
    now += 1.0
    for state in (TopicState.ACTIVE, TopicState.TERMINATED, TopicState.DRAINING):
        put(state)
        assert lookup(ONE).broker == A
    put(TopicState.MIGRATED)
    answer = lookup(ONE)
    assert (answer.kind, answer.target) == (AnswerKind.MIGRATED, GREEN)
    # Another cluster asks for it all the same: its owner knows what became of it.
    assert lookup(ONE, here=True).broker == A
    # One that is new, or was never named: its owner says where it is created.
    assert lookup("persistent://t/ns/new").broker == A
    migrate(MigrationState.COMPLETED)
    now += 1.0
    assert lookup("persistent://t/ns/new").broker == A
    # No owner could say anything of a namespace that is not here.
    migrate(MigrationState.COMPLETED, CLUSTER)
    now += 1.0
    assert lookup("persistent://t/unheard/new").target == GREEN
    migrate(MigrationState.ROLLED_BACK, CLUSTER)
    now += 1.0
    assert lookup("persistent://t/unheard/new").cause is Cause.UNKNOWN_NAMESPACE
