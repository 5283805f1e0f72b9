"""trimtab's own paths tell clusters, brokers, bundles, rounds, settings and outcomes."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from api.app import create_app
from api.context import Context
from control.plane import ControlPlane
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from streaming.config import JobConfig, KafkaConfig
from tests.agent.support import A, B
from tests.api.conftest import BUNDLES, CLUSTER

HERE = f"/trimtab/v1/clusters/{CLUSTER}"


def test_a_cluster_says_how_it_is(api: TestClient) -> None:
    told = api.get(HERE).json()
    assert (told["cluster"], told["grade"]) == (CLUSTER, "well")
    assert CLUSTER in [each["cluster"] for each in api.get("/trimtab/v1/clusters").json()]


def test_brokers_come_the_busiest_first(api: TestClient) -> None:
    told = api.get(f"{HERE}/brokers").json()["brokers"]
    first = api.get(f"{HERE}/brokers", params={"limit": 1}).json()
    assert ([each["broker"] for each in first["brokers"]], first["next"]) == ([A], A)
    rest = api.get(f"{HERE}/brokers", params={"after": A}).json()
    assert ([each["broker"] for each in rest["brokers"]], rest["next"]) == ([B], None)
    assert [(each["broker"], each["usage"], each["bundles"]) for each in told] == [
        (A, 0.4, 2),
        (B, 0.2, 2),
    ]


def test_bundles_come_in_pages(api: TestClient) -> None:
    names, after = [], ""
    while after is not None:
        page = api.get(f"{HERE}/bundles", params={"limit": 3, "after": after}).json()
        names += [each["bundle"] for each in page["bundles"]]
        after = page["next"]
    assert names == BUNDLES
    some = api.get(f"{HERE}/bundles", params={"broker": B}).json()
    assert ([each["bundle"] for each in some["bundles"]], some["next"]) == (BUNDLES[1::2], None)


def test_a_setting_is_told_with_where_it_comes_from(api: TestClient) -> None:
    told = {each["name"]: each for each in api.get(f"{HERE}/settings").json()}
    assert told["threshold.threshold"] == {
        "name": "threshold.threshold",
        "value": 0.15,
        "source": "intent",
        "started": 0.1,
    }


def test_the_newest_round_is_told_as_it_was_recorded(api: TestClient) -> None:
    told = api.get(f"{HERE}/rounds/newest").json()
    assert (told["cluster"], told["usage"]) == (CLUSTER, {A: 0.4, B: 0.2})


def test_what_does_not_exist_is_told_with_what_is_near(api: TestClient) -> None:
    found = api.get("/trimtab/v1/clusters/serve")
    assert (found.status_code, f"did you mean {CLUSTER}?" in found.json()["reason"]) == (404, True)
    unread = api.get(f"{HERE}/outcomes/tell/1")
    assert (unread.status_code, "tell/1: not read" in unread.json()["reason"]) == (404, True)
    lost = api.get("/trimtab/v2")
    assert (lost.status_code, "/trimtab/v2: no such path" in lost.json()["reason"]) == (404, True)
    wrong = api.get(f"{HERE}/bundles", params={"limit": 0, "state": "Lost"})
    assert wrong.status_code == 400
    assert all(part in wrong.json()["reason"] for part in ("query.limit", "query.state"))


def test_without_redis_it_says_who_is_away() -> None:
    settings = JobConfig(
        kafka=KafkaConfig(bootstrap="127.0.0.1:1"), redis_url=SecretStr("redis://127.0.0.1:1/0")
    )
    with ControlPlane(settings) as plane, TestClient(create_app(Context(plane, "c"))) as client:
        found = client.get("/trimtab/v1/clusters/c/outcomes/x")
    assert found.status_code == 503
    assert "127.0.0.1:1" in found.json()["reason"]
    assert found.json()["next"] == "trimtab doctor"


AWAY = "127.0.0.1:1"


@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize(
    ("server", "lost", "still"),
    [
        ("redis", ("bundles", "plans", "namespaces"), ("", "rounds", "settings")),
        ("kafka", ("brokers", "rounds", "settings"), ("bundles", "namespaces")),
    ],
)
def test_what_still_works_without_a_server_is_told_and_works(
    kafka: KafkaServer,
    redis_server: RedisServer,
    server: str,
    lost: tuple[str, ...],
    still: tuple[str, ...],
) -> None:
    settings = JobConfig(
        kafka=KafkaConfig(bootstrap=AWAY if server == "kafka" else kafka.bootstrap),
        redis_url=SecretStr(f"redis://{AWAY}/0" if server == "redis" else redis_server.url),
    )
    with ControlPlane(settings) as left, TestClient(create_app(Context(left))) as client:
        for path in lost:
            found = client.get(f"{HERE}/{path}")
            assert (found.status_code, AWAY in found.json()["reason"]) == (503, True), path
            assert "are still told" in found.json()["reason"]
        for path in still:
            assert client.get(f"{HERE}/{path}".rstrip("/")).status_code == 200, path
