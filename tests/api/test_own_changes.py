"""trimtab's own paths change what they say, and tell what rounds did and would do."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from redis import Redis

from api.app import create_app
from api.context import Context
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.topics import ensure_topics
from streaming.config import JobConfig, KafkaConfig
from tests.agent.support import A, B
from tests.api.prompt_job import PromptJob

BUNDLE = "t/n/0x00000000_0x80000000"
DONE = {"wait": 1}


@pytest.fixture(scope="module")
def job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PromptJob]:
    """Two brokers, which serve a namespace of two bundles."""
    ensure_topics(kafka.bootstrap)
    settings = JobConfig(
        kafka=KafkaConfig(bootstrap=kafka.bootstrap), redis_url=SecretStr(redis_server.url)
    )
    client = Redis.from_url(redis_server.url, protocol=2)
    with client, PromptJob(settings, client, f"own-{time.time_ns()}", (A, B)) as prompt:
        yield prompt


@pytest.fixture(scope="module")
def api(job: PromptJob) -> Iterator[TestClient]:
    app = create_app(Context(job, job.cluster_name))
    base = f"http://testserver/trimtab/v1/clusters/{job.cluster_name}/"
    with TestClient(app, base_url=base) as client:
        made = client.put("namespaces/t/n", params=DONE, json={"bundles": 2})
        assert (made.status_code, made.json()["state"]) == (200, "done"), made.text
        yield client


def owner_of(api: TestClient) -> str:
    return str(api.get(f"bundles/{BUNDLE}").json()["owner"])


def test_a_dry_run_says_what_would_be_done_and_does_nothing(api: TestClient) -> None:
    before = owner_of(api)
    (other,) = {A, B} - {before}
    told = api.post(f"bundles/{BUNDLE}/unload", params={"to": other, "dryRun": True}).json()
    assert (told["id"], told["state"]) == ("", "checked")
    assert told["what"] == f"move {BUNDLE} to {other}"
    assert owner_of(api) == before


def test_a_bundle_moves_and_its_history_says_so(api: TestClient) -> None:
    before = owner_of(api)
    (other,) = {A, B} - {before}
    done = api.post(f"bundles/{BUNDLE}/unload", params={"to": other, **DONE})
    assert (done.status_code, done.json()["state"]) == (200, "done"), done.text
    assert owner_of(api) == other
    moved = [each for each in api.get("decisions").json() if each["decision"] == "move"]
    assert (moved[0]["bundle"], moved[0]["destination"]) == (BUNDLE, other)
    assert api.get("rounds").json()[0]["round"] == api.get("rounds/newest").json()["round"]


def test_a_refused_change_says_by_which_rule(api: TestClient) -> None:
    here = owner_of(api)
    refused = api.post(f"bundles/{BUNDLE}/unload", params={"to": here})
    assert (refused.status_code, refused.json()["rule"]) == (412, "invalid-move")
    unknown = api.post("brokers/nobody:1/drain")
    assert (unknown.status_code, unknown.json()["rule"]) == (404, "unknown-broker")
    nowhere = api.get("bundles/t/n/0x00000000_0x00000001")
    assert (nowhere.status_code, "did you mean" in nowhere.json()["reason"]) == (404, True)


def test_a_broker_says_which_bundles_keep_it_busy(api: TestClient, job: PromptJob) -> None:
    job.report(dict.fromkeys(job.records(job.cluster_name, "t/n"), 1))
    told = api.get(f"brokers/{owner_of(api)}").json()
    assert BUNDLE in [each["bundle"] for each in told["busiest"]]
    assert told["state"] == "serving"


def test_bundles_that_no_broker_serves_are_listed(api: TestClient) -> None:
    assert api.get("bundles", params={"unserved": True}).json() == {"bundles": [], "next": None}
    assert len(api.get("bundles").json()["bundles"]) == 2


def test_a_broker_is_emptied_and_used_again(api: TestClient) -> None:
    assert api.post(f"brokers/{B}/drain", params=DONE).json()["state"] == "done"
    assert api.get(f"brokers/{B}").json()["state"] == "draining"
    assert api.get("bundles", params={"broker": B}).json()["bundles"] == []
    assert api.post(f"brokers/{B}/undrain", params=DONE).json()["state"] == "done"


def test_the_view_is_what_the_newest_round_saw(api: TestClient) -> None:
    told = api.get("view").json()
    assert told["usage"].keys() == {A, B}
    assert told["doubt"] == "stable"


def test_policies_and_settings_are_changed_and_told(api: TestClient) -> None:
    assert api.put("policies/failure-domains/north", json={"brokers": [A]}).status_code == 200
    assert api.get("policies").json()["domains"] == {A: "north"}
    changed = api.patch("settings", json={"settings": {"round.max_moves": 3}}, params=DONE)
    assert changed.status_code == 200
    found = {each["name"]: each["value"] for each in api.get("settings").json()}
    assert found["round.max_moves"] == 3
    assert api.delete("settings", params={"name": "round.max_moves", **DONE}).status_code == 200


def test_nothing_is_explained_of_what_no_round_touched(api: TestClient) -> None:
    told = api.get("why", params={"subject": "t/n/nothing"})
    assert (told.status_code, "nothing of t/n/nothing" in told.json()["reason"]) == (404, True)


def test_a_fleet_is_tried_with_other_brokers(api: TestClient, job: PromptJob) -> None:
    job.report(dict.fromkeys(job.records(job.cluster_name, "t/n"), 1))
    more = api.post("what-if", json={"add": 2, "like": A})
    assert more.status_code == 200, more.text
    assert (more.json()["before"]["brokers"], more.json()["after"]["brokers"]) == (2, 4)
    fewer = api.post("what-if", json={"remove": [B]}).json()
    assert (fewer["after"]["brokers"], fewer["left"]) == (1, {})
    none = api.post("what-if", json={"remove": [A, B]})
    assert (none.status_code, none.json()["reason"]) == (412, "no broker would be left")


def test_advice_follows_the_recorded_peak(api: TestClient) -> None:
    told = api.get("advise").json()
    assert told["brokers"] == 2
    assert told["peak"]["load"] <= told["wanted"] * told["threshold"]


def test_two_neighbours_are_merged_once_one_broker_has_both(api: TestClient) -> None:
    made = api.put("namespaces/t/merged", params=DONE, json={"bundles": 2})
    assert made.json()["state"] == "done", made.text
    low, high = (each["bundle"] for each in _bundles(api))
    for number, bundle in enumerate((low, high)):
        api.post(f"bundles/{bundle}/unload", params={"to": (A, B)[number], **DONE})
    apart = api.post(f"bundles/{low}/merge", params={"dryRun": True})
    assert (apart.status_code, apart.json()["rule"]) == (412, "invalid-merge")
    assert f"{A} has {low}, and {B} has {high}" in apart.json()["reason"]
    assert api.post(f"bundles/{high}/unload", params={"to": A, **DONE}).status_code == 200
    told = api.post(f"bundles/{low}/merge", params={"dryRun": True}).json()
    assert told["what"] == f"merge {low} with its neighbour above"
    assert api.post(f"bundles/{low}/merge", params=DONE).json()["state"] == "done"
    assert [each["bundle"] for each in _bundles(api)] == ["t/merged/0x00000000_0xffffffff"]
    alone = api.post("bundles/t/merged/0x00000000_0xffffffff/merge", params=DONE)
    assert (alone.status_code, alone.json()["rule"]) == (412, "invalid-merge")
    assert "has no neighbour above" in alone.json()["reason"]


def _bundles(api: TestClient) -> list[dict[str, str]]:
    found = api.get("bundles", params={"namespace": "t/merged"}).json()["bundles"]
    return [each for each in found if each["state"] != "Deleted"]
