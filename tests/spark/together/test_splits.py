"""Bundles that are too large are split by their brokers, on the real services."""

from __future__ import annotations

from collections import Counter

import pytest
import redis

from simulation.load_model import load_model
from simulation.profile import Profile
from sinks.redis.ownership_store import OwnershipStore
from tests.spark.together.conftest import Stage
from tests.support.opening import let_in
from tests.support.running import PATIENCE
from tests.support.verdicts import assert_nothing_was_done_twice
from tests.support.waiting import eventually
from trimtab.model import namespace_of
from trimtab.ownership import State
from trimtab.tiling import flaws
from trimtab.wire.ownership import Record

# kafka-python, in the agents, leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

CLUSTER = "divided"
FLEET = Profile(
    brokers=3, bundles=6, namespaces=2, low=0.3, high=0.3, rate_sigma=0.0, noise=0.0, seed=5
)
"""Every bundle carries 200 messages/s, published and delivered."""

LIMIT = "split.max_rate=150.0"


def test_every_bundle_over_the_limit_is_split_and_its_children_are_served(
    stage: Stage, client: redis.Redis
) -> None:
    """The moves are the children's."""
    model, running = load_model(FLEET), stage.running
    fleet, store = stage.fleet(model, CLUSTER), OwnershipStore(client)
    let_in(client, CLUSTER, 1)
    fleet.start()
    try:
        running.await_metric(1, "trimtab_rounds_total", cluster=CLUSTER)
        stage.set(CLUSTER, LIMIT)
        eventually(lambda: whole(store), "twelve children, owned", PATIENCE, pause=0.5)
        running.pause(CLUSTER)
        running.await_rest(client, CLUSTER)
        records = store.records(CLUSTER)
        shown = fleet.snapshot()
    finally:
        fleet.stop()
    assert {records[bundle].state for bundle in model.bundles} == {State.DELETED}
    for namespace in {namespace_of(bundle) for bundle in model.bundles}:
        assert flaws(b for b in standing(records) if namespace_of(b) == namespace) == []
    owners = Counter(record.owner for record in standing(records).values())
    assert owners == {name: broker.bundles for name, broker in shown.brokers.items()}
    assert running.metric("trimtab_splits_total", cluster=CLUSTER, outcome="accepted") == 6
    assert running.metric("trimtab_problems", cluster=CLUSTER) == 0
    assert_nothing_was_done_twice(running.topics, client, CLUSTER)


def whole(store: OwnershipStore) -> bool:
    """Whether every bundle has been split once, and all children are owned."""
    records = standing(store.records(CLUSTER)).values()
    return len(records) == 12 and all(record.state is State.OWNED for record in records)


def standing(records: dict[str, Record]) -> dict[str, Record]:
    return {b: record for b, record in records.items() if record.state is not State.DELETED}
