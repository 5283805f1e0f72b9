"""Intents that race with automatic rounds, from two APIs, across a restart of the driver: each has
exactly one outcome, and nothing is done twice."""

from __future__ import annotations

import os
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
import redis
from fastapi.testclient import TestClient
from pyspark.sql import SparkSession

from api.app import create_app
from api.context import Context
from control.plane import ControlPlane
from deploy.ports import free_port
from deploy.process import Process
from simulation.load_model import load_model
from simulation.profile import Profile
from sinks.redis.ownership_store import OwnershipStore
from streaming.config import JobConfig
from streaming.query.spark_checks import check_checkpoint
from tests.spark.together.conftest import Stage
from tests.support.opening import let_in
from tests.support.running import PATIENCE, Running
from tests.support.verdicts import assert_nothing_was_done_twice
from tests.support.waiting import eventually
from trimtab.ownership import State

# kafka-python, in the agents, leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

BUNDLES = 12
FLEET = Profile(
    brokers=3, bundles=BUNDLES, namespaces=1, low=0.2, high=0.7, rate_sigma=0.5, noise=0.0, seed=5
)
"""Uneven: automatic rounds move bundles too."""
AT_ONCE = 8
"""Requests that wait for an answer at a time."""
MOVING = ("round.shedding=avg", "round.placement=avg")


@contextmanager
def in_process(config: JobConfig, cluster: str, _: Path) -> Iterator[httpx2.Client]:
    with ControlPlane(config) as plane, TestClient(create_app(Context(plane, cluster))) as client:
        yield client


@contextmanager
def as_process(_: JobConfig, cluster: str, file: Path) -> Iterator[httpx2.Client]:
    port = free_port()
    program = str(Path(sysconfig.get_path("scripts")) / "trimtab")
    words = [program, "api", "--cluster", cluster, "--port", str(port), "--config", str(file)]
    log = file.with_name(f"api-{port}.log")
    api = Process("api", words, folder=file.parent, log=log, environment=dict(os.environ))
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
        api.start(lambda: answers(client), PATIENCE)
        try:
            yield client
        finally:
            api.stop(PATIENCE)


def answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/openapi.json").is_success
    except httpx2.TransportError:
        return False


@pytest.mark.parametrize(
    ("number", "serve"),
    [
        pytest.param(16, in_process, id="a few"),
        pytest.param(100, as_process, id="a hundred", marks=pytest.mark.slow),
    ],
)
def test_each_intent_has_one_outcome(
    stage: Stage,
    spark: SparkSession,
    client: redis.Redis,
    number: int,
    serve: Callable[[JobConfig, str, Path], AbstractContextManager[httpx2.Client]],
) -> None:
    cluster, running = f"raced-{number}", stage.running
    model = load_model(FLEET)
    fleet, bundles = stage.fleet(model, cluster), sorted(model.bundles)
    store = OwnershipStore(client)
    let_in(client, cluster, 1)
    with ExitStack() as stack:
        fleet.start()
        stack.callback(fleet.stop)
        eventually(lambda: served(store, cluster), "all owned", PATIENCE, pause=0.5)
        running.await_metric(1, "trimtab_rounds_total", cluster=cluster)
        stage.set(cluster, *MOVING)
        brokers = sorted(fleet.snapshot().brokers)
        config = running.config
        apis = [stack.enter_context(serve(config, cluster, stage.file)) for _ in range(2)]
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        first = [pool.submit(ask, apis, cluster, bundles, brokers, n) for n in range(number)]
        for each in first[: number // 2]:
            each.result(PATIENCE)
        # The driver has stopped: the others' requests come while there is none.
        running.stop()
        check_checkpoint(spark, config)
        running.start()
        for each in first:
            each.result(PATIENCE)
        eventually(
            lambda: finals(running, cluster).keys() >= {name(n) for n in range(number)},
            "an outcome of each",
            PATIENCE,
            pause=0.5,
        )
        running.pause(cluster)
        running.await_rest(client, cluster)
        assert set(finals(running, cluster).values()) == {1}
        assert_nothing_was_done_twice(running.topics, client, cluster)


def name(number: int) -> str:
    return f"race/{number}"


def ask(
    apis: list[httpx2.Client], cluster: str, bundles: list[str], brokers: list[str], number: int
) -> None:
    """Send the same request to both APIs: it counts as one."""
    here = f"/trimtab/v1/clusters/{cluster}"
    bundle = bundles[number % len(bundles)]
    requests = [
        ("POST", f"{here}/bundles/{bundle}/unload", {"to": brokers[number % len(brokers)]}, None),
        ("POST", f"{here}/bundles/{bundle}/unload", {}, None),
        ("PATCH", f"{here}/settings", {}, {"settings": {"round.max_moves": 1 + number}}),
        ("PUT", f"{here}/policies/failure-domains/d", {}, {"brokers": brokers[:1]}),
    ]
    method, path, query, body = requests[number % len(requests)]
    for api in apis:
        sent = api.request(
            method,
            path,
            params={**query, "unchecked": True},
            json=body,
            headers={"Idempotency-Key": name(number)},
        )
        assert sent.is_success, sent.text


def finals(running: Running, cluster: str) -> Counter[str]:
    """How many final outcomes trimtab.rounds has of each request."""
    return Counter(
        each.id
        for batch in running.all_batches()
        for each in batch.outcomes
        if each.cluster == cluster and each.final and each.id.startswith("race/")
    )


def served(store: OwnershipStore, cluster: str) -> bool:
    records = store.records(cluster)
    return len(records) == BUNDLES and all(each.state is State.OWNED for each in records.values())
