"""The paths that the page asks: heat map, overview, caller, events, and its files."""

from __future__ import annotations

import json

import httpx2
import msgspec
import numpy as np
import pytest
from fastapi.testclient import TestClient

from control.usage_history import KEPT, keep_usage, tabulate
from tests.agent.support import A, B
from tests.api.conftest import CLUSTER
from tests.page.serving import Served
from tests.support.recorded_batches import held
from trimtab.wire.rounds import RoundRecord

HERE = f"/trimtab/v1/clusters/{CLUSTER}"


def saw(number: int, **usage: float) -> RoundRecord:
    return msgspec.structs.replace(held("c"), round=number, usage=usage)


def test_usage_of_several_rounds_becomes_a_table_by_broker() -> None:
    history = keep_usage(keep_usage((), saw(1, a=0.1, b=0.2)), saw(2, b=0.4, c=0.6))
    found = tabulate(history, ["c", "b", "a", "z"])
    nan = np.nan
    expected = [[nan, 0.6], [0.2, 0.4], [0.1, nan], [nan, nan]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_rounds_of_the_same_brokers_share_their_names_and_old_ones_are_dropped() -> None:
    history = keep_usage((), saw(0))
    assert history == ()
    for number in range(KEPT + 3):
        history = keep_usage(history, saw(number, a=0.1))
    assert (len(history), history[0].round) == (KEPT, 3)
    assert history[0].names is history[-1].names


def test_the_heat_map_has_a_row_for_each_broker(api: TestClient) -> None:
    told = api.get(f"{HERE}/heat-map").json()
    assert (told["by"], told["total"], told["next"]) == ("broker", 2, None)
    assert [each["round"] for each in told["rounds"]] == [1]
    found = {row["broker"]: row for row in told["rows"]}
    assert found[A]["history"] == [0.4]
    assert (found[A]["domain"], found[B]["domain"], found[A]["bundles"]) == ("north", None, 2)


def test_the_heat_map_comes_in_pages_and_by_part_of_a_name(api: TestClient) -> None:
    first = api.get(f"{HERE}/heat-map", params={"limit": 1}).json()
    assert ([row["broker"] for row in first["rows"]], first["next"]) == ([A], A)
    rest = api.get(f"{HERE}/heat-map", params={"limit": 1, "after": A}).json()
    assert ([row["broker"] for row in rest["rows"]], rest["next"]) == ([B], None)
    found = api.get(f"{HERE}/heat-map", params={"match": B[0].upper()}).json()
    assert [row["broker"] for row in found["rows"]] == [B]


def test_failure_domains_are_rows_with_their_busiest_broker(api: TestClient) -> None:
    told = api.get(f"{HERE}/heat-map", params={"by": "domain"}).json()
    assert [(row["name"], row["brokers"], row["usage"]) for row in told["rows"]] == [
        ("north", 1, 0.4),
        ("", 1, 0.2),
    ]
    inside = api.get(f"{HERE}/heat-map", params={"domain": "north"}).json()
    assert [row["broker"] for row in inside["rows"]] == [A]
    others = api.get(f"{HERE}/heat-map", params={"domain": ""}).json()
    assert [row["broker"] for row in others["rows"]] == [B]


def test_the_overview_has_thresholds_and_what_the_status_says(api: TestClient) -> None:
    told, status = api.get(f"{HERE}/overview").json(), api.get(HERE).json()
    assert {name: told[name] for name in status} == status
    assert told["thresholds"] == {"target": 0.05, "overloaded": 0.85, "intervalSeconds": 60.0}
    assert (told["round"], told["failureDomains"], told["late"]) == (1, 1, False)


def test_a_caller_is_told_its_role(api: TestClient) -> None:
    told = api.get("/trimtab/v1/caller").json()
    assert told == {"name": "local", "role": "admin", "tokens": False}


def test_the_page_may_load_and_ask_nothing_but_this_api(api: TestClient) -> None:
    page = api.get("/")
    assert "<title>trimtab</title>" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    for name, kind in (("app.js", "text/javascript"), ("page.css", "text/css")):
        file = api.get(f"/page/{name}")
        assert (file.status_code, file.headers["content-type"].split(";")[0]) == (200, kind)
        again = api.get(f"/page/{name}", headers={"if-none-match": file.headers["etag"]})
        assert again.status_code == 304
    assert api.get("/page/serving.py").status_code == 404


@pytest.mark.usefixtures("plane")
def test_events_say_each_clusters_newest_round_and_end_with_the_server(api: TestClient) -> None:
    # A stream has no end: it takes a server of its own.
    served = Served(api.app)  # type: ignore[arg-type]
    url = f"{served.url}trimtab/v1/events"
    with httpx2.stream("GET", url, timeout=60.0) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: clusters"
        found = json.loads(next(lines).removeprefix("data: "))
        assert found[CLUSTER] == {"round": 1, "at": 2**42, "late": False, "waiting": []}
        served.stop()
        assert [*lines][-1:] in ([""], [])
