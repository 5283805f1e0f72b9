"""What the API counts of its requests: by path template, never by what a caller wrote."""

from __future__ import annotations

from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from api.app import create_app
from api.context import Context
from control.plane import ControlPlane
from tests.api.conftest import CLUSTER


def counted(api: TestClient) -> dict[tuple[str, ...], float]:
    """Requests by method, path, status and role."""
    families = text_string_to_metric_families(api.get("/metrics").text)
    [requests] = [family for family in families if family.name == "trimtab_api_requests"]
    return {
        tuple(each.labels[name] for name in ("method", "path", "status", "role")): each.value
        for each in requests.samples
        if each.name.endswith("_total")
    }


def test_requests_are_counted_by_template_status_and_role(plane: ControlPlane) -> None:
    with TestClient(create_app(Context(plane, CLUSTER))) as api:
        for cluster in (CLUSTER, CLUSTER, "made-up"):
            api.get(f"/trimtab/v1/clusters/{cluster}")
        api.get("/no/such/path")
        api.request("INVENTED", "/trimtab/v1/clusters")
        found = counted(api)
    template = "/trimtab/v1/clusters/{cluster}"
    assert found["GET", template, "200", "admin"] == 2
    assert found["GET", template, "404", "admin"] == 1
    assert found["other", "other", "404", "other"] == 1
    assert found["other", "other", "405", "other"] == 1
    words = {word for labels in found for word in labels}
    assert not words & {"INVENTED", "/no/such/path", "made-up"}
