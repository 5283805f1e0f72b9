"""What the documents of Pulsar do with pulsar-admin is done, and told afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.context import Context
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from tests.agent.support import A, B
from tests.api.prompt_job import PromptJob, run_prompt_job
from trimtab.ownership import State
from trimtab.policies import host_of
from trimtab.wire.lookup import ServiceUrls
from trimtab.wire.ownership import Record

NAMESPACES = "/admin/v2/namespaces"


@pytest.fixture
def job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PromptJob]:
    with run_prompt_job(kafka, redis_server) as prompt:
        yield prompt


@pytest.fixture
def api(job: PromptJob) -> Iterator[TestClient]:
    with TestClient(create_app(Context(job, job.cluster_name, patience_s=0.0))) as client:
        yield client


def records(job: PromptJob, namespace: str) -> dict[str, Record]:
    found = job.records(job.cluster_name, namespace)
    return {name: each for name, each in found.items() if each.state is not State.DELETED}


def test_a_namespace_is_created_with_sixteen_bundles_each_at_a_broker(
    api: TestClient, job: PromptJob
) -> None:
    """Items 002-05 and 003-05: `pulsar-admin namespaces create my-tenant/ns --bundles 16`."""
    path = f"{NAMESPACES}/my-tenant/ns"
    assert api.put(path, json={"bundles": {"numBundles": 16}}).status_code == 204
    told = api.get(f"{path}/bundles").json()
    assert told["numBundles"] == 16
    assert told["boundaries"][:3] == ["0x00000000", "0x10000000", "0x20000000"]
    owned = records(job, "my-tenant/ns").values()
    assert {record.state for record in owned} == {State.OWNED}
    assert Counter(record.owner for record in owned) == {A: 8, B: 8}


def test_a_namespace_has_four_bundles_by_default(api: TestClient) -> None:
    """Item 002-04: whatever defaultNumberOfNamespaceBundles is in a broker.conf."""
    assert api.put(f"{NAMESPACES}/my-tenant/ns").status_code == 204
    assert api.get(f"{NAMESPACES}/my-tenant/ns/bundles").json()["numBundles"] == 4


def test_a_failure_domain_is_created_told_changed_and_deleted(
    api: TestClient, job: PromptJob
) -> None:
    """Item 002-57."""
    domains = f"/admin/v2/clusters/{job.cluster_name}/failureDomains"
    assert api.post(f"{domains}/north", json={"brokers": [A, B]}).status_code == 204
    assert api.get(domains).json() == {"north": {"brokers": [A, B]}}
    assert api.post(f"{domains}/north", json={"brokers": [A]}).status_code == 204
    assert api.post(f"{domains}/south", json={"brokers": [B]}).status_code == 204
    assert api.get(f"{domains}/north").json() == {"brokers": [A]}
    assert api.get(f"{domains}/south").json() == {"brokers": [B]}
    assert api.delete(f"{domains}/north").status_code == 200
    assert api.get(domains).json() == {"south": {"brokers": [B]}}
    assert api.get(f"{domains}/north").status_code == 404


def test_an_anti_affinity_group_is_set_told_listed_and_left(
    api: TestClient, job: PromptJob
) -> None:
    """Item 002-60."""
    spaces = [f"{NAMESPACES}/t/{name}/antiAffinity" for name in ("one", "two")]
    members = f"{NAMESPACES}/{job.cluster_name}/antiAffinity/vip?property=t"
    for path in spaces:
        assert api.post(path, content="vip").status_code == 204
    assert api.get(members).json() == []
    for name in ("one", "two"):
        assert api.put(f"{NAMESPACES}/t/{name}", json={"bundles": {"numBundles": 1}}).is_success
    assert api.get(spaces[0]).text == "vip"
    assert api.get(members).json() == ["t/one", "t/two"]
    assert api.delete(spaces[0]).status_code == 204
    assert (api.get(spaces[0]).status_code, api.get(members).json()) == (204, ["t/two"])


@pytest.mark.parametrize("unload", ["false", "true"])
def test_the_largest_bundle_is_split_where_its_topics_are_halved(
    api: TestClient, job: PromptJob, unload: str
) -> None:
    """Item 003-14: `split-bundle -bt LARGEST -san topic_count_equally_divide -u`.

    With and without -u the next round places the children (item 000-21).
    """
    path = f"{NAMESPACES}/my-tenant/ns"
    api.put(path, json={"bundles": {"numBundles": 2}})
    low, high = sorted(records(job, "my-tenant/ns"))
    owners = {name: str(each.owner) for name, each in records(job, "my-tenant/ns").items()}
    job.report({low: 2, high: 4})
    job.sites[owners[high]].broker.positions = [0x90000000, 0x90000002, 0xA0000000, 0xB0000000]
    query = f"splitAlgorithmName=topic_count_equally_divide&unload={unload}"
    done = api.put(f"{path}/LARGEST/split?{query}")
    assert done.status_code == 204, done.text
    edges = ["0x00000000", "0x80000000", "0x98000001", "0xffffffff"]
    assert api.get(f"{path}/bundles").json()["boundaries"] == edges
    children = {name: each.owner for name, each in records(job, "my-tenant/ns").items()}
    assert [*children.values()] == [owners[low], owners[low], owners[high]]


@pytest.mark.parametrize(("asked", "broker"), [("", A), (f"?broker={B}", B)])
def test_a_load_report_is_shown_as_its_broker_sent_it(
    api: TestClient, job: PromptJob, asked: str, broker: str
) -> None:
    api.put(f"{NAMESPACES}/t/n", json={"bundles": {"numBundles": 4}})
    job.report(dict.fromkeys(records(job, "t/n"), 7))
    told = api.get(f"/admin/v2/broker-stats/load-report{asked}").json()
    owned = {name for name, each in records(job, "t/n").items() if each.owner == broker}
    assert (told["cpu"]["usage"], {*told["lastStats"]}) == (10.0, owned)


def test_a_topic_is_its_brokers_to_unload(api: TestClient, job: PromptJob) -> None:
    """Item 002-48: it closes and opens one topic again, and has no effect on the assignment."""
    api.put(f"{NAMESPACES}/t/n", json={"bundles": {"numBundles": 1}})
    (record,) = records(job, "t/n").values()
    path = "/admin/v2/persistent/t/n/orders/unload?authoritative=false"
    urls = ServiceUrls(pulsar=f"pulsar://{record.owner}", web="http://broker.example:8080")
    job.urls.write(job.cluster_name, str(record.owner), urls)
    sent_on = api.put(path, follow_redirects=False)
    assert sent_on.status_code == 307
    assert sent_on.headers["location"] == f"http://broker.example:8080{path}"


def test_topics_of_brokers_without_a_url_are_not_answered_for(api: TestClient) -> None:
    for domain in ("persistent", "non-persistent"):
        told = api.put(f"/admin/v2/{domain}/t/n/orders/unload")
        assert told.status_code == 405
        assert "pulsar-admin topics lookup" in told.json()["reason"]
        assert "pulsar-admin namespaces unload -b" in told.json()["reason"]


@pytest.mark.parametrize("known", [True, False], ids=["its URL", "no URL"])
def test_a_lookup_tells_where_the_broker_listens_or_why_not(
    api: TestClient, job: PromptJob, known: bool
) -> None:
    api.put(f"{NAMESPACES}/t/n", json={"bundles": {"numBundles": 1}})
    (record,) = records(job, "t/n").values()
    if not known:
        job.urls.write(job.cluster_name, str(record.owner), ServiceUrls())
    told = api.get("/lookup/v2/topic/persistent/t/n/orders")
    if known:
        assert told.json()["brokerUrl"] == f"pulsar://{record.owner}"
    else:
        assert told.status_code == 503
        assert f"{record.owner} serves it, and its load report" in told.json()["reason"]


HOST_A, HOST_B = (host_of(broker) for broker in (A, B))


def isolate(api: TestClient, job: PromptJob, primary: str, *spaces: str, **more: str) -> None:
    policies = f"/admin/v2/clusters/{job.cluster_name}/namespaceIsolationPolicies"
    failover = {"parameters": {"min_limit": "1"}}
    policy = {"namespaces": spaces, "primary": [primary], "auto_failover_policy": failover, **more}
    assert api.post(f"{policies}/first", json=policy).status_code == 204


def owners(job: PromptJob, namespace: str) -> set[str | None]:
    return {record.owner for record in records(job, namespace).values()}


@pytest.mark.parametrize(
    ("scope", "left_to"),
    [({}, {A}), ({"unload_scope": "all_matching"}, {A}), ({"unload_scope": "none"}, {A, B})],
)
def test_an_isolation_policy_unloads_the_namespaces_of_its_scope(
    api: TestClient, job: PromptJob, scope: dict[str, str], left_to: set[str]
) -> None:
    api.put(f"{NAMESPACES}/my-tenant/ns")
    isolate(api, job, HOST_A, "my-tenant/.*", **scope)
    assert owners(job, "my-tenant/ns") == left_to


def test_a_changed_isolation_policy_unloads_what_the_change_concerns(
    api: TestClient, job: PromptJob
) -> None:
    """Pulsar's unload_scope `changed`: all namespaces for other brokers, else those that differ."""
    isolate(api, job, HOST_A, "one/.*")
    for tenant in ("one", "two"):
        api.put(f"{NAMESPACES}/{tenant}/ns")
    before = records(job, "one/ns")
    isolate(api, job, HOST_A, "one/.*")
    isolate(api, job, HOST_A, "one/.*", "two/.*")
    assert (records(job, "one/ns"), owners(job, "two/ns")) == (before, {A})
    isolate(api, job, HOST_B, "one/.*")
    # B is reserved for it now, so that the others have A.
    assert (owners(job, "one/ns"), owners(job, "two/ns")) == ({B}, {A})
