"""Plans, pins, modes and budgets over HTTP: carried out, told afterwards, and refused by rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.context import Context
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from tests.agent.support import A, B
from tests.api.prompt_job import PromptJob, run_prompt_job
from trimtab.kept_plans.kept_plan import drain_plan_id

BUNDLE = "t/ns/0x00000000_0x40000000"


@pytest.fixture
def job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PromptJob]:
    with run_prompt_job(kafka, redis_server) as prompt:
        yield prompt


@pytest.fixture
def api(job: PromptJob) -> Iterator[TestClient]:
    with TestClient(create_app(Context(job, job.cluster_name))) as client:
        yield client


@pytest.fixture
def here(api: TestClient, job: PromptJob) -> str:
    """The path of a cluster with a namespace of four bundles."""
    assert api.put("/admin/v2/namespaces/t/ns").status_code == 204
    return f"/trimtab/v1/clusters/{job.cluster_name}"


def owners(job: PromptJob) -> set[str | None]:
    return {record.owner for record in job.records(job.cluster_name, "t/ns").values()}


def test_a_drain_is_planned_with_its_cost_approved_and_carried_out(
    api: TestClient, job: PromptJob, here: str
) -> None:
    asked = api.post(f"{here}/plans", json={"brokers": [A]}, params={"wait": 1})
    assert (asked.status_code, asked.json()["state"]) == (200, "done")
    name = drain_plan_id(asked.json()["id"])
    [listed] = api.get(f"{here}/plans").json()
    assert (listed["id"], listed["state"], listed["steps"]) == (name, "proposed", 1)
    assert listed["effect"]["handovers"] == 2
    assert owners(job) == {A, B}
    approved = api.post(f"{here}/plans/{name}/approve", params={"wait": 1})
    assert (approved.status_code, approved.json()["state"]) == (200, "done")
    assert owners(job) == {B}
    told = api.get(f"{here}/plans/{name}").json()
    assert (told["state"], told["steps"][0]["state"]) == ("done", "done")


def test_an_approval_that_is_replayed_is_refused_and_under_its_own_name_the_same(
    api: TestClient, here: str
) -> None:
    asked = api.post(f"{here}/plans", json={"brokers": [A]}, params={"wait": 1})
    path = f"{here}/plans/{drain_plan_id(asked.json()['id'])}/approve"
    named = {"Idempotency-Key": "approve-1"}
    assert api.post(path, headers=named, params={"wait": 1}).json()["state"] == "done"
    again = api.post(path, params={"wait": 1})
    assert (again.status_code, again.json()["rule"]) == (409, "already-approved")
    found = api.get(f"{here}/outcomes/approve-1").json()
    assert found["state"] == "done"


def test_a_dry_run_says_what_would_happen_and_changes_nothing(api: TestClient, here: str) -> None:
    told = api.post(
        f"{here}/plans", json={"brokers": [A], "restart": True}, params={"dryRun": True}
    ).json()
    assert told["state"] == "checked"
    assert f"which restarts {A} once it is approved" in told["what"]
    assert api.get(f"{here}/plans").json() == []


def test_an_unknown_plan_is_not_found(api: TestClient, here: str) -> None:
    for verb in ("approve", "reject", "cancel", "undo"):
        found = api.post(f"{here}/plans/1-0000/{verb}")
        assert (found.status_code, found.json()["rule"]) == (404, "unknown-plan"), verb
    assert api.get(f"{here}/plans/1-0000").status_code == 404


def test_a_pin_is_told_and_keeps_its_bundle_from_an_unload(api: TestClient, here: str) -> None:
    pinned = api.put(f"{here}/pins/{BUNDLE}", json={"seconds": 3600}, params={"wait": 1})
    assert (pinned.status_code, pinned.json()["state"]) == (200, "done")
    assert set(api.get(f"{here}/pins").json()) == {BUNDLE}
    unload = api.post(f"{here}/bundles/{BUNDLE}/unload")
    assert (unload.status_code, unload.json()["rule"]) == (412, "pinned")
    assert api.delete(f"{here}/pins/{BUNDLE}", params={"wait": 1}).json()["state"] == "done"
    assert api.get(f"{here}/pins").json() == {}
    assert api.delete(f"{here}/pins/{BUNDLE}").status_code == 404
    assert api.put(f"{here}/pins/{BUNDLE}", json={"seconds": -1}).status_code == 400


def test_modes_are_set_and_told(api: TestClient, here: str) -> None:
    assert api.get(f"{here}/modes").json() == {"cluster": "automatic", "namespaces": {}}
    for path, mode in (("modes", "propose"), ("modes/t/ns", "approve")):
        api.put(f"{here}/{path}", json={"mode": mode}, params={"wait": 1})
    told = api.get(f"{here}/modes").json()
    assert told["namespaces"] == {"t/ns": "approve"}
    api.delete(f"{here}/modes/t/ns", params={"wait": 1})
    assert api.get(f"{here}/modes").json() == {"cluster": "propose", "namespaces": {}}
    api.put(f"{here}/modes", json={"mode": "observe"}, params={"wait": 1})
    assert api.get(f"{here}/modes").json()["cluster"] == "observe"
    assert api.put(f"{here}/modes", json={"mode": "perhaps"}).status_code == 400


def test_budgets_are_set_and_told(api: TestClient, here: str) -> None:
    api.put(f"{here}/budgets/t", json={"moves": 3}, params={"wait": 1})
    assert api.get(f"{here}/budgets").json() == {
        "seconds": 3600.0,
        "each": None,
        "tenants": {"t": 3},
    }
    api.delete(f"{here}/budgets/t", params={"wait": 1})
    assert api.get(f"{here}/budgets").json()["tenants"] == {}


def test_windows_say_when_they_open(api: TestClient, here: str) -> None:
    told = api.get(f"{here}/windows").json()
    assert (told["windows"], told["open"]) == ("", True)
