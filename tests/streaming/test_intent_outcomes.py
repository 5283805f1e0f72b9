"""What came of intents is stored for those who wait, and recorded with the batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import msgspec
import pytest
import redis
from pyspark.sql import DataFrame
from structlog.testing import capture_logs

from sinks.exposition import Exposition
from sinks.redis.answers.kept_plans import KeptPlans
from sinks.redis.answers.outcomes import KEPT_S, Outcomes
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.query.batch import BatchWriter
from streaming.sink_retry import SinkRetry
from streaming.watchdog import Progress
from tests.faults.job import Frame, Offsets
from tests.faults.topics import Claims, Topics
from tests.support.plans import plan_for
from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.wire import keys
from trimtab.wire.intent import IntentKind
from trimtab.wire.intent_outcome import IntentOutcome, IntentState
from trimtab.wire.rounds import BatchRecord
from trimtab.wire.rows import Tag, json_row

CLUSTER = "outcomes"


def outcome(state: IntentState) -> IntentOutcome:
    return IntentOutcome(cluster=CLUSTER, id="1", kind=IntentKind.UNLOAD, state=state, at=7)


@pytest.fixture
def outcomes(client: redis.Redis) -> Iterator[Outcomes]:
    yield Outcomes(client)
    client.delete(keys.outcome_key(CLUSTER, "1"))


class Job:
    """Writes batches of outcomes alone."""

    def __init__(self, client: redis.Redis) -> None:
        self.topics, self.shown, self._number = Topics(), Exposition(), 0
        store, leadership = OwnershipStore(client), Leadership(Claims().claim, self.shown)
        opener = StoreOpener(ClusterGate(client), store, lambda _: {}, leadership, self.shown)
        self._writer = BatchWriter(
            store,
            self.topics,
            opener,
            Offsets("q"),
            SinkRetry(threading.Event(), Progress(), self.shown),
            lambda: None,
            outcomes=Outcomes(client),
            plans=KeptPlans(client),
        )

    def write(self, *told: IntentOutcome, plans: tuple[KeptPlan, ...] = ()) -> None:
        rows = [json_row(CLUSTER, Tag.OUTCOME, each) for each in told]
        frame: Any = Frame([*rows, *(json_row(CLUSTER, Tag.PLAN, plan) for plan in plans)])
        self._writer(cast(DataFrame, frame), self._number)
        self._number += 1

    def counted(self, state: IntentState) -> float:
        labels = {"cluster": CLUSTER, "kind": "unload", "outcome": state.value}
        name = "trimtab_intent_outcomes_total"
        return self.shown.registry.get_sample_value(name, labels) or 0.0


def test_the_newest_outcome_is_stored_for_a_day_and_all_are_recorded(
    client: redis.Redis, outcomes: Outcomes
) -> None:
    job = Job(client)
    assert outcomes.read(CLUSTER, "1") is None
    job.write(outcome(IntentState.ACCEPTED))
    assert outcomes.read(CLUSTER, "1") == outcome(IntentState.ACCEPTED)
    job.write(outcome(IntentState.DONE))
    assert outcomes.read(CLUSTER, "1") == outcome(IntentState.DONE)
    assert 0 < client.ttl(keys.outcome_key(CLUSTER, "1")) <= KEPT_S
    recorded = [
        each.state
        for record in job.topics.all(keys.ROUNDS)
        for each in msgspec.json.decode(record.value or b"", type=BatchRecord).outcomes
    ]
    assert recorded == [IntentState.ACCEPTED, IntentState.DONE]
    assert [job.counted(state) for state in IntentState] == [0, 1, 1, 0]


def test_a_kept_plan_is_stored_and_recorded(client: redis.Redis) -> None:
    plan, plans = plan_for(CLUSTER, "1-0001"), KeptPlans(client)
    job = Job(client)
    job.write(plans=(plan,))
    assert plans.read(CLUSTER, "1-0001") == plan
    [record] = job.topics.all(keys.ROUNDS)
    assert msgspec.json.decode(record.value or b"", type=BatchRecord).plans == (plan,)
    client.delete(keys.plans_key(CLUSTER), keys.plan_key(CLUSTER, "1-0001"))


def test_a_job_whose_user_may_not_store_them_goes_on(client: redis.Redis) -> None:
    """Its rights are from before there were outcomes."""
    port = client.connection_pool.connection_kwargs["port"]
    client.acl_setuser(
        "old", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-set"]
    )
    try:
        with redis_client(f"redis://old:pw@127.0.0.1:{port}/0") as limited, capture_logs() as logs:
            job = Job(limited)
            job.write(outcome(IntentState.DONE))
        assert [each["event"] for each in logs] == ["outcomes of intents are not stored"]
        assert job.topics.end(keys.ROUNDS) == 1
    finally:
        client.acl_deluser("old")
