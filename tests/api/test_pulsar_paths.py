"""Pulsar's paths answer as its brokers do, wherever trimtab knows the answer."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.agent.support import A, B
from tests.api.conftest import BUNDLES, CLUSTER

DOMAINS = f"/admin/v2/clusters/{CLUSTER}/failureDomains"
POLICIES = f"/admin/v2/clusters/{CLUSTER}/namespaceIsolationPolicies"
EDGES = ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
VIP = {
    "namespaces": ["t/vip"],
    "primary": ["a"],
    "secondary": [],
    "auto_failover_policy": {
        "policy_type": "min_available",
        "parameters": {"min_limit": "1", "usage_threshold": "100"},
    },
}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/admin/v2/brokers", [A, B]),
        (f"/admin/v2/brokers/{CLUSTER}", [A, B]),
        ("/admin/v2/brokers/leaderBroker", {"serviceUrl": f"http://{A}", "brokerId": A}),
        (
            "/admin/v2/brokers/configuration/values",
            {"loadBalancerBrokerThresholdShedderPercentage": "15"},
        ),
        ("/admin/v2/namespaces/t", ["t/n"]),
        (
            "/admin/v2/namespaces/t/n/bundles",
            {"boundaries": EDGES, "numBundles": 4},
        ),
        ("/admin/v2/namespaces/t/n/replication", [CLUSTER]),
        (f"/admin/v2/namespaces/{CLUSTER}/antiAffinity/g?tenant=t", ["t/n"]),
        (f"/admin/v2/namespaces/{CLUSTER}/antiAffinity/g?property=u", []),
        (DOMAINS, {"north": {"brokers": [A]}}),
        (f"{DOMAINS}/north", {"brokers": [A]}),
        ("/admin/v2/clusters/nowhere/failureDomains", {}),
        (POLICIES, {"vip": VIP}),
        (f"{POLICIES}/vip", VIP),
        (
            f"{POLICIES}/brokers/a",
            {"brokerName": "a", "policyName": "vip", "namespaceRegex": ["t/vip"], "primary": True},
        ),
    ],
)
def test_it_tells_what_pulsar_would(api: TestClient, path: str, answer: Any) -> None:
    found = api.get(path)
    assert (found.status_code, found.json()) == (200, answer)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/admin/v2/tenants"),
        ("GET", "/admin/v2/namespaces/t/n/retention"),
        ("POST", "/admin/v2/namespaces/t/n/deduplication"),
        ("GET", "/admin/v2/schemas/t/n/a/schema"),
        ("GET", "/admin/v2/broker-stats/mbeans"),
        ("GET", "/admin/v3/functions/t/n"),
    ],
)
def test_a_path_of_pulsars_that_is_not_served_says_who_does(
    api: TestClient, method: str, path: str
) -> None:
    found = api.request(method, path)
    assert found.status_code == 404
    assert (
        found.json()["reason"]
        == f"{path}: no such path of Pulsar's that trimtab serves: ask a broker"
    )


def test_a_broker_without_a_report_has_none_to_show(api: TestClient) -> None:
    found = api.get("/admin/v2/broker-stats/load-report")
    assert (found.status_code, f"{A} has sent no" in found.json()["reason"]) == (404, True)


def test_names_are_text_that_pulsar_calls_json(api: TestClient) -> None:
    version = api.get("/admin/v2/brokers/version")
    assert (version.text, version.headers["content-type"]) == ("4.0.8", "application/json")
    assert api.get("/admin/v2/namespaces/t/n/antiAffinity").text == "G"
    none = api.get("/admin/v2/namespaces/t/other/antiAffinity")
    assert (none.status_code, none.content) == (204, b"")


def test_a_topic_is_in_the_bundle_that_its_name_hashes_to(api: TestClient) -> None:
    # CRC-32 of persistent://t/n/a is 0x6225472d.
    assert api.get("/lookup/v2/topic/persistent/t/n/a/bundle").text == "0x40000000_0x80000000"
    whole = api.get("/lookup/v2/topic/persistent/t/nowhere/a/bundle")
    assert whole.text == "0x00000000_0xffffffff"


def test_every_runtime_setting_is_told_in_pulsars_units(api: TestClient) -> None:
    told = api.get("/admin/v2/brokers/configuration/runtime").json()
    assert told["loadBalancerBrokerThresholdShedderPercentage"] == "15"
    assert told["loadBalancerSheddingIntervalMinutes"] == "1"
    assert told["loadBalancerNamespaceBundleMaxBandwidthMbytes"] == "100"
    dynamic = api.get("/admin/v2/brokers/configuration").json()
    assert {*dynamic} <= {*told}


def test_a_brokers_bundles_are_told_with_pulsars_status(api: TestClient) -> None:
    told = api.get(f"/admin/v2/brokers/{CLUSTER}/{A}/ownedNamespaces").json()
    status = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    assert told == dict.fromkeys(BUNDLES[::2], status)


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/admin/v2/clusters/nowhere", 404, "Cluster does not exist"),
        ("GET", "/admin/v2/namespaces/nobody", 404, "Tenant not found"),
        ("GET", "/admin/v2/namespaces/t/no/bundles", 404, "Namespace does not exist"),
        ("GET", f"{DOMAINS}/no", 404, f"Domain no for cluster {CLUSTER} does not exist"),
        ("DELETE", f"{DOMAINS}/no", 404, f"Domain-name no or cluster {CLUSTER} does not exist"),
        *(
            (
                method,
                "/admin/v2/clusters/nowhere/failureDomains/x",
                412,
                "Cluster nowhere does not exist.",
            )
            for method in ("GET", "DELETE")
        ),
        (
            "GET",
            f"/admin/v2/namespaces/{CLUSTER}/antiAffinity/g",
            412,
            "Tenant should not be null",
        ),
        (
            "GET",
            f"{POLICIES}/no",
            404,
            f"NamespaceIsolationPolicies for cluster {CLUSTER} does not exist",
        ),
        (
            "GET",
            f"/admin/v2/brokers/{CLUSTER}/c:1/ownedNamespaces",
            404,
            "Broker id 'c:1' not found in available brokers.",
        ),
        (
            "POST",
            "/admin/v2/brokers/configuration/noSuch/1",
            412,
            "Can't update non-dynamic configuration",
        ),
        (
            "DELETE",
            "/admin/v2/brokers/configuration/noSuch",
            412,
            "Can't delete non-dynamic configuration",
        ),
        (
            "PUT",
            "/admin/v2/namespaces/t/n/0x00000000_0x80000000/unload",
            412,
            "Invalid upper boundary for bundle t/n/0x00000000_0x80000000. "
            "Expected upper boundary of t/n/0x00000000_0x40000000",
        ),
        (
            "PUT",
            "/admin/v2/namespaces/t/n/0x00000000_0x40000000/unload?destinationBroker=c:1",
            409,
            "Not allowed unload namespace bundle to inactive destination broker",
        ),
        ("PUT", "/admin/v2/namespaces/t/n/junk/split", 412, "Invalid bundle range: junk"),
        ("PUT", "/admin/v2/namespaces/t/n/HOT/split", 404, "Bundle range HOT not found"),
        ("PUT", "/admin/v2/namespaces/t/no/unload", 404, "Namespace not found"),
        ("PUT", "/admin/v2/namespaces/t/n", 409, "Namespace already exists"),
        ("DELETE", "/admin/v2/namespaces/t/no", 404, "Namespace t/no does not exist."),
    ],
)
def test_it_refuses_in_pulsars_words(
    api: TestClient, method: str, path: str, status: int, reason: str
) -> None:
    found = api.request(method, path)
    assert (found.status_code, found.json()["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        ("POST", f"{DOMAINS}/south", {"brokers": [A]}, 409, f"[{A}] already exists in north"),
        ("POST", f"{DOMAINS}/south", {}, 412, "must name one at least"),
        ("POST", f"{DOMAINS}/south", {"brokers": 7}, 400, "body.brokers: "),
        ("POST", f"{POLICIES}/p", {"primary": ["("]}, 400, "body.namespaces: Field required"),
        (
            "POST",
            f"{POLICIES}/p",
            {"namespaces": ["("], "primary": [")"]},
            400,
            "isolation.primary: ')' is no regular expression",
        ),
        ("PUT", "/admin/v2/namespaces/t/b@d", {}, 412, "is not tenant/namespace in letters"),
        ("PUT", "/admin/v2/namespaces/t/new", {"bundles": {"numBundles": -1}}, 400, "not -1"),
        (
            "PUT",
            "/admin/v2/namespaces/t/new",
            {"bundles": {"boundaries": ["0x00000000", "0x80000000"]}},
            400,
            "must begin with 0x00000000 and end with 0xffffffff",
        ),
        (
            "PUT",
            "/admin/v2/namespaces/t/new",
            {"bundles": {"boundaries": ["0x00000000", "middle", "0xffffffff"]}},
            400,
            "must be hexadecimal numbers",
        ),
        (
            "PUT",
            "/admin/v2/namespaces/t/n/0x00000000_0x40000000/split?splitAlgorithmName=by_magic",
            None,
            412,
            "algorithm: by_magic is not in split.supported",
        ),
        (
            "PUT",
            "/admin/v2/namespaces/t/n/0x00000000_0x40000000/split",
            [0, 0],
            412,
            "positions: two are equal",
        ),
        (
            "POST",
            "/admin/v2/brokers/configuration/loadBalancerSheddingIntervalMinutes/many",
            None,
            412,
            "must be a number, not 'many'",
        ),
    ],
)
def test_a_wrong_body_is_told_with_all_that_is_wrong(  # noqa: PLR0913 - a request and its answer
    api: TestClient, method: str, path: str, body: Any, status: int, says: str
) -> None:
    found = api.request(method, path, json=body)
    assert (found.status_code, says in found.json()["reason"]) == (status, True), found.text


def test_what_no_job_reads_is_not_told_to_be_done(api: TestClient) -> None:
    found = api.put("/admin/v2/namespaces/t/n/unload")
    assert found.status_code == 503
    assert "no job has read" in found.json()["reason"]
    assert "It stands, and the next job carries it out: trimtab outcome " in found.json()["reason"]


def test_a_bundle_is_not_deleted_under_its_broker(api: TestClient) -> None:
    assert api.delete("/admin/v2/namespaces/t/n").status_code == 405


def test_what_there_already_is_changes_nothing(api: TestClient) -> None:
    """No intent is sent: with no job to read it, the answer would be 503."""
    for path in ("/admin/v2/namespaces/t/free/antiAffinity", f"{POLICIES}/no"):
        assert api.delete(path).status_code == 204
