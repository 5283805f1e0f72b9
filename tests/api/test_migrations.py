"""Migrations over HTTP: Pulsar's paths and trimtab's own, and what is asked of green before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from api.app import create_app
from api.context import Context
from control.migration.check import AskedMigration, Blue
from control.migration.cycles import MOST_HOPS, Going, find_cycles
from control.migration.green import green_flaws, green_notes
from control.migration.green_admin import NoAnswer, ask, asking
from control.migration.progress import (
    one_way_notes,
    unknown_notes,
    unnamed_notes,
    wave_notes,
)
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.green_access import GreenAccess
from tests.agent.support import A
from tests.api.prompt_job import PromptJob, run_prompt_job
from tests.support.certificates import Authority
from tests.support.green_server import Heard, Sent, green
from trimtab.migration.kept import Migrations
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Migration, Target, Wave
from trimtab.migration.scopes import CLUSTER, namespace_of
from trimtab.migration.topic_life import TopicState
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.keys import topics_key
from trimtab.wire.lookup import ServiceUrls
from trimtab.wire.topics import TopicRecord

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PromptJob]:
    with run_prompt_job(kafka, redis_server) as prompt:
        yield prompt


@pytest.fixture(scope="module")
def api(job: PromptJob) -> Iterator[TestClient]:
    with TestClient(create_app(Context(job, job.cluster_name))) as client:
        yield client


@pytest.fixture
def url() -> Iterator[str]:
    with green({"clusters": ["green"], "brokers/green": ["g:8080"]}) as found:
        yield found


def urls(web: str) -> dict[str, str]:
    """Of a green that takes clients where its web service is."""
    return {"serviceUrl": web, "brokerServiceUrl": web.replace("http:", "pulsar:")}


def begin(api: TestClient, here: str, url: str, **more: object) -> Any:
    body = {"target": urls(url), **more}
    return api.post(f"{here}/migrations", json=body, params={"wait": 5})


def stored(api: TestClient, path: str) -> list[Any]:
    """The migrations at ``path`` as they are stored: what else the answer says changes with time
    alone, as that one stands still."""
    return [each["migration"] for each in api.get(path).json()]


def test_a_migration_is_planned_begun_paused_resumed_rolled_back_and_told(
    api: TestClient, job: PromptJob, url: str
) -> None:
    here = f"/trimtab/v1/clusters/{job.cluster_name}"
    body = {"target": urls(url), "scope": "t/one", "waves": [{"scopes": ["t/one"], "share": 0.1}]}
    planned = api.post(f"{here}/migrations", json=body, params={"dryRun": True})
    assert (planned.status_code, planned.json()["state"]) == (200, "checked")
    assert api.get(f"{here}/migrations").json() == []
    begun = api.post(f"{here}/migrations", json=body, params={"wait": 5})
    assert (begun.status_code, begun.json()["state"]) == (200, "done")
    name = begun.json()["id"]
    for verb, state in (("pause", "paused"), ("resume", "running"), ("rollback", "rolling-back")):
        answer = api.post(f"{here}/migrations/{name}/{verb}", params={"wait": 5})
        assert answer.status_code == 200, answer.text
        assert api.get(f"{here}/migrations/{name}").json()["migration"]["state"] == state
    assert api.post(f"{here}/migrations/{name}/pause").status_code == 409
    told = api.get(f"{here}/migrations/{name}/report").json()
    assert (told["stays"], told["failing"], told["cut"]) == ([], [], False)
    [listed] = api.get(f"{here}/migrations").json()
    assert listed["migration"]["id"] == name
    missing = api.get(f"{here}/migrations/{name}x")
    assert (missing.status_code, missing.json()["rule"]) == (404, "unknown-migration")


def test_bad_input_is_refused_with_all_reasons_at_once(
    api: TestClient, job: PromptJob, url: str
) -> None:
    here = f"/trimtab/v1/clusters/{job.cluster_name}"
    before = stored(api, f"{here}/migrations")
    refused = begin(api, here, "green:8080", scope="nothing", errors=2.0)
    assert refused.status_code == 412
    for word in ("serviceUrl: ", "scope: ", "gate: errors"):
        assert word in refused.json()["reason"]
    blue = begin(api, here, f"http://{A}", scope="t/two")
    assert "green is blue" in blue.json()["reason"]
    job.urls.write(job.cluster_name, A, ServiceUrls(pulsar="pulsar://for-clients:6650"))
    clients = {"serviceUrl": url, "brokerServiceUrl": "pulsar://For-Clients"}
    body = {"target": clients, "scope": "t/two"}
    to_itself = api.post(f"{here}/migrations", json=body, params={"dryRun": True})
    assert "green is blue" in to_itself.json()["reason"]
    absent = begin(api, here, NOWHERE, scope="t/two")
    assert (absent.status_code, absent.json()["rule"]) == (412, "unreachable-target")
    assert stored(api, f"{here}/migrations") == before
    assert begin(api, here, url, scope="t/two").status_code == 200
    twice = begin(api, here, NOWHERE, scope="t/two")
    assert twice.status_code == 409
    assert "does not answer" in twice.json()["reason"]


def test_a_plan_of_the_cluster_says_what_has_migrated_before(
    kafka: KafkaServer, redis_server: RedisServer, url: str
) -> None:
    with (
        green({"clusters": ["other"], "brokers/other": ["o:8080"]}) as elsewhere,
        run_prompt_job(kafka, redis_server) as job,
        TestClient(create_app(Context(job, job.cluster_name))) as api,
    ):
        here = f"/trimtab/v1/clusters/{job.cluster_name}"
        for scope, web in (("t/one", url), ("t/two", elsewhere), ("t/three", elsewhere)):
            begun = begin(api, here, web, scope=scope).json()["id"]
            done = {"counts": [{"migrated": 1}], "migration": begun}
            asked = {"id": f"{begun}/done", "cluster": job.cluster_name, **done}
            kind = IntentKind.MIGRATION_PROGRESS
            job.send(msgspec.convert({**asked, "kind": kind}, Intent))
        body = {"target": urls(url)}
        planned = api.post(f"{here}/migrations", json=body, params={"dryRun": True})
        assert planned.json()["notes"][:2] == [
            "note: these are there already, and nothing is done for them: t/one",
            f"note: these stay on {elsewhere}, where they have migrated: t/three, t/two",
        ]
        assert begin(api, here, url).json()["state"] == "done"
        [whole] = [
            m["migration"]
            for m in api.get(f"{here}/migrations").json()
            if m["migration"]["scope"] == "cluster"
        ]
        assert sorted(whole["apart"]) == ["t/one", "t/three", "t/two"]
        # Pulsar's path must show it to a caller that asks whether green's green is blue.
        told = api.get(f"/admin/v2/clusters/{job.cluster_name}/migrate")
        assert told.json() == {"migrated": True, "migratedClusterUrl": urls(url)}


def test_a_member_that_is_misspelt_begins_no_migration(
    api: TestClient, job: PromptJob, url: str
) -> None:
    """Without its scope it would take the whole cluster."""
    here = f"/trimtab/v1/clusters/{job.cluster_name}/migrations"
    before = stored(api, here)
    bodies: list[dict[str, Any]] = [
        {"target": urls(url), "sope": "t/nine"},
        {"target": urls(url) | {"brokerserviceurl": "x"}, "scope": "t/nine"},
        {"target": urls(url), "scope": "t/nine", "waves": [{"scopes": ["t/nine"], "shar": 0.1}]},
    ]
    for body, name in zip(bodies, ("sope", "brokerserviceurl", "shar"), strict=True):
        refused = api.post(here, json=body)
        assert refused.status_code == 400
        assert name in refused.text
    assert stored(api, here) == before


def test_an_id_that_is_used_again_begins_nothing_and_is_refused(
    api: TestClient, job: PromptJob, url: str
) -> None:
    """The first one's outcome was the answer: done."""
    here = f"/trimtab/v1/clusters/{job.cluster_name}/migrations"
    named = {"Idempotency-Key": "ticket-4711"}

    def ask(scope: str, wait: float) -> Any:
        body = {"target": urls(url), "scope": scope}
        return api.post(here, json=body, params={"wait": wait}, headers=named)

    assert ask("i/one", 5).json()["state"] == "done"
    for wait in (5, 0):
        again = ask("i/two", wait)
        assert (again.status_code, again.json()["rule"]) == (409, "id-in-use")
        assert "was used for something else (migration-start)" in again.json()["reason"]
    scopes = {each["migration"]["scope"] for each in api.get(here).json()}
    assert "i/one" in scopes
    assert "i/two" not in scopes


def test_an_id_that_no_path_could_name_is_refused(
    api: TestClient, job: PromptJob, url: str
) -> None:
    here = f"/trimtab/v1/clusters/{job.cluster_name}/migrations"
    body = {"target": urls(url), "scope": "i/three"}
    for name in ("ticket/report", "report", "a/b/rollback"):
        refused = api.post(here, json=body, headers={"Idempotency-Key": name})
        assert (refused.status_code, refused.json()["rule"]) == (412, "invalid-id")
        assert f"ends in {name.rpartition('/')[2]}" in refused.json()["reason"]


def test_a_plan_says_how_many_namespaces_each_wave_has() -> None:
    waves = (Wave(("t/one", "persistent://t/two/x")), Wave(("t/smal",), 0.05))
    known = ["t/one", "t/two", "t/small", "t/rest"]
    assert list(wave_notes(CLUSTER, waves, lambda: known)) == [
        "note: wave 1: 1 namespace and 1 topic",
        "note: wave 2: 0 namespaces (5% of their topics)",
        "note: last: what is in no wave, with all of 2 namespaces that no wave names",
    ]
    assert list(wave_notes(CLUSTER, (), lambda: known)) == []
    assert [*wave_notes("t/one", (Wave(("t/one",)),), lambda: known)][-1].endswith(
        "with all of 0 namespaces that no wave names"
    )


def test_a_wave_of_topics_is_counted_by_topics_and_a_small_share_is_not_none() -> None:
    known = ["t/one", "t/two"]
    one, two = "persistent://t/one/x", "persistent://t/one/y"
    waves = (Wave((one,), 0.000001), Wave((one, two, "t/two"), 0.05))
    assert list(wave_notes(CLUSTER, waves, lambda: known))[:2] == [
        "note: wave 1: 1 topic (0.0001% of them)",
        "note: wave 2: 1 namespace and 2 topics (5% of their topics)",
    ]


def test_a_note_names_topics_that_no_broker_has_named() -> None:
    """A migration of one that is misspelt has nothing to do, and completes."""
    one, two = "persistent://t/one/x", "persistent://t/one/y"
    waves = (Wave((one, two, "t/one")),)
    said = list(unnamed_notes(one, waves, lambda topic: topic == one))
    [note] = said
    assert note.startswith(f"note: waves: no broker has named {two};")
    [note] = unnamed_notes(two, (), lambda _: False)
    assert note.startswith(f"note: scope: no broker has named {two};")
    assert not list(unnamed_notes("t/one", (Wave(("t/two",)),), lambda _: False))


def test_a_plan_notes_a_topic_that_no_broker_has_named() -> None:
    def silent(*_: object) -> Any:
        raise NoAnswer("away")

    topic = "persistent://t/one/x"
    blue = Blue((), (), lambda: ["t/one"], Migrations(), lambda *_: (), lambda _: False)
    intent = Intent(id="i", kind=IntentKind.MIGRATION_START, cluster="c", scope=topic)
    notes = AskedMigration(intent, blue, Target(), silent).notes(0.0, 0.0)
    assert any(f"no broker has named {topic}" in note for note in notes)


def test_a_green_that_is_small_is_noted_if_the_whole_cluster_goes(
    kafka: KafkaServer, redis_server: RedisServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.plane.whole_load", lambda _: 50.0)
    with (
        run_prompt_job(kafka, redis_server) as job,
        TestClient(create_app(Context(job, job.cluster_name))) as api,
    ):
        here = f"/trimtab/v1/clusters/{job.cluster_name}/migrations"
        for scope in (CLUSTER, "persistent://t/one/x"):
            body = {"target": urls(url), "scope": scope}
            told = api.post(here, json=body, params={"dryRun": True}).json()
            assert any("load takes" in each for each in told["notes"]) == (scope == CLUSTER)


def test_a_namespace_that_is_not_known_is_noted(api: TestClient, job: PromptJob, url: str) -> None:
    assert api.put("/admin/v2/namespaces/t/small").status_code == 204
    here = f"/trimtab/v1/clusters/{job.cluster_name}/migrations"
    body = {"target": urls(url), "scope": "t/smal"}
    [first, *_] = api.post(here, json=body, params={"dryRun": True}).json()["notes"]
    assert first == "note: scope: no bundle of t/smal is known; did you mean t/small?"
    named = {**body, "scope": "t/small"}
    said = api.post(here, json=named, params={"dryRun": True}).json()["notes"]
    assert not any("is known" in each for each in said)


def test_clients_that_find_no_way_to_green_are_noted(
    api: TestClient, job: PromptJob, url: str
) -> None:
    """They would be redirected to no URL at all."""
    here = f"/trimtab/v1/clusters/{job.cluster_name}/migrations"
    tls = {"serviceUrl": url, "brokerServiceUrlTls": url.replace("http:", "pulsar+ssl:")}
    body = {"target": tls, "scope": "t/ten"}
    [first, *_] = api.post(here, json=body, params={"dryRun": True}).json()["notes"]
    said = "clients that connect {} TLS, as they may here, find no way there"
    assert first == f"note: target: has no brokerServiceUrl: {said.format('without')}"
    secured = [ServiceUrls(pulsar_tls="pulsar+ssl://a:6651")]
    plain = Target(serviceUrl=url, brokerServiceUrl="pulsar://green:6650")
    assert [*one_way_notes(plain, secured)] == [
        f"note: target: has no brokerServiceUrlTls: {said.format('with')}"
    ]
    assert [*one_way_notes(plain, [ServiceUrls(pulsar="pulsar://a:6650")])] == []


def test_a_wave_that_names_no_namespace_that_is_known_is_noted() -> None:
    """Its topics would go with the last wave, past the gate that was meant."""
    waves = (Wave(("t/smal", "t/small")), Wave(("persistent://t/nothing/x", CLUSTER)))
    assert list(unknown_notes(CLUSTER, waves, lambda: ["t/small"])) == [
        "note: waves: no bundle of t/nothing is known; there is t/small",
        "note: waves: no bundle of t/smal is known; did you mean t/small?",
    ]


def test_green_is_asked_once_for_each_thing(api: TestClient, job: PromptJob) -> None:
    heard = list[Heard]()
    paths = {"clusters": ["green"], "brokers/green": ["g:8080"]}
    with green(paths, heard) as url:
        body = {"target": urls(url), "scope": "t/three"}
        here = f"/trimtab/v1/clusters/{job.cluster_name}/migrations"
        assert api.post(here, json=body, params={"dryRun": True}).status_code == 200
    assert sorted(each.path for each in heard) == [
        "/trimtab/v1/caller",
        "/trimtab/v1/clusters/green/migrations",
        "brokers/green",
        "clusters",
        "clusters/green",
        "clusters/green/migrate",
        "namespaces/t/three",
        "persistent/t/three",
        "tenants/t",
    ]


def test_pulsars_flags_of_clusters_and_namespaces(
    api: TestClient, job: PromptJob, url: str
) -> None:
    migrate = f"/admin/v2/clusters/{job.cluster_name}/migrate"
    assert api.put("/admin/v2/namespaces/p/ns").status_code == 204
    assert api.get(migrate).status_code == 404
    flag = "/admin/v2/namespaces/p/ns/migration"
    # Pulsar takes this flag, and nothing happens.
    assert api.post(flag, json=True).status_code == 412
    body = {**urls(url), "empty": False}
    assert api.post(migrate, params={"migrated": False}, json={}).status_code == 412
    assert api.post(migrate, params={"migrated": False}, json=body).status_code == 200
    assert api.get(migrate).json() == {"migrated": False, "migratedClusterUrl": urls(url)}
    assert api.post(flag, json=True).status_code == 204
    assert api.get("/admin/v2/namespaces/p/ns").json()["migrated"] is True
    assert api.post(flag, json=False).status_code == 204
    assert api.post("/admin/v2/namespaces/p/absent/migration", json=True).status_code == 404
    assert api.get("/admin/v2/clusters/other/migrate").status_code == 404


def test_a_cluster_is_marked_as_migrated_with_the_urls_of_green_and_no_other_is(
    kafka: KafkaServer, redis_server: RedisServer, url: str
) -> None:
    """Green may share the store and the API: what is said of blue is blue's alone."""
    both = {
        **urls(url),
        "serviceUrlTls": "https://green:8443",
        "brokerServiceUrlTls": url.replace("http:", "pulsar+ssl:"),
    }
    with (
        run_prompt_job(kafka, redis_server) as green_job,
        run_prompt_job(kafka, redis_server) as it,
    ):
        assert it.clusters().keys() >= {it.cluster_name, green_job.cluster_name}
        with TestClient(create_app(Context(it, it.cluster_name))) as api:
            migrate = f"/admin/v2/clusters/{it.cluster_name}/migrate"
            # The web service is asked by TLS if there is one; no server has that certificate here.
            assert api.post(migrate, params={"migrated": True}, json=both).status_code == 412
            assert api.get(migrate).status_code == 404
            plain = {**both, "serviceUrlTls": ""}
            assert api.post(migrate, params={"migrated": True}, json=plain).status_code == 200
            del plain["serviceUrlTls"]
            assert api.get(migrate).json() == {"migrated": True, "migratedClusterUrl": plain}
            own = f"/trimtab/v1/clusters/{it.cluster_name}/migrations"
            [found] = api.get(own).json()
            assert found["migration"]["scope"] == "cluster"
            assert found["migration"]["state"] == "running"
            there = green_job.cluster_name
            assert api.get(f"/admin/v2/clusters/{there}/migrate").status_code == 404
            assert api.get(f"/trimtab/v1/clusters/{there}/migrations").json() == []


def test_pulsars_flags_ask_green_if_topics_would_go_there_and_not_if_they_come_back(
    kafka: KafkaServer, redis_server: RedisServer
) -> None:
    with run_prompt_job(kafka, redis_server) as it:
        flag = "/admin/v2/namespaces/p/{}/migration"
        with TestClient(create_app(Context(it, it.cluster_name))) as api:
            for name in ("one", "two"):
                assert api.put(f"/admin/v2/namespaces/p/{name}").status_code == 204
            with green({"clusters": ["green"], "brokers/green": ["g:8080"]}) as url:
                migrate = f"/admin/v2/clusters/{it.cluster_name}/migrate"
                assert api.post(migrate, json=urls(url)).status_code == 200
                assert api.post(flag.format("one"), json=True).status_code == 204
            refused = api.post(flag.format("two"), json=True)
            assert (refused.status_code, refused.json()["rule"]) == (412, "unreachable-target")
            assert api.post(flag.format("one"), json=True).status_code == 204
            assert api.post(flag.format("one"), json=False).status_code == 204
            [found] = api.get(f"/trimtab/v1/clusters/{it.cluster_name}/migrations").json()
            assert found["migration"]["state"] == "rolling-back"


def test_an_unreachable_green_is_refused(api: TestClient, job: PromptJob) -> None:
    here = f"/trimtab/v1/clusters/{job.cluster_name}"
    before = stored(api, f"{here}/migrations")
    absent = begin(api, here, NOWHERE, scope="u/ns")
    assert (absent.status_code, absent.json()["rule"]) == (412, "unreachable-target")
    assert "does not answer" in absent.json()["reason"]
    assert stored(api, f"{here}/migrations") == before


@pytest.mark.parametrize("path", ["clusters", "brokers/green"])
def test_a_green_that_wants_a_token_is_refused_with_the_setting(path: str) -> None:
    with green({"clusters": ["green"], "brokers/green": ["g:8080"], path: 401}) as url:
        [(rule, said)] = green_flaws(Target(serviceUrl=url), (), ("t",), ask)
    assert (rule, said) == (
        "target-access",
        f"target: {url}/admin/v2/{path} answers 401: it wants a token: "
        "set green.token_file (TRIMTAB_GREEN__TOKEN_FILE)",
    )


def test_green_is_asked_with_the_token_and_no_other_cluster_is(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret-of-green\n")
    access = GreenAccess(token_file=file)
    paths: dict[str, Any] = {"clusters": ["green"], "brokers/green": ["g:8080"]}
    heard, elsewhere = list[Heard](), list[Heard]()
    with green(paths, heard=elsewhere) as other, green(paths, heard=heard) as url:
        paths["clusters/green/migrate"] = {
            "migrated": True,
            "migratedClusterUrl": {"serviceUrl": other},
        }
        paths["tenants/t"] = Sent(other.replace("127.0.0.1", "localhost"))
        target = Target(serviceUrl=url)
        assert list(green_flaws(target, ["b:8080"], ("t",), asking(target, access))) == []
    assert {each.token for each in heard} == {"Bearer secret-of-green"}
    assert elsewhere
    assert {each.token for each in elsewhere} == {None}


def test_a_token_that_green_does_not_take_is_named_by_its_setting_and_not_shown(
    tmp_path: Path,
) -> None:
    file = tmp_path / "token"
    file.write_text("secret-of-green")
    for access in (GreenAccess(token_file=file), GreenAccess(token=SecretStr("secret-of-green"))):
        with green({"clusters": 403}) as url:
            target = Target(serviceUrl=url)
            [(rule, said)] = green_flaws(target, (), (), asking(target, access))
        name = "green.token_file" if access.token_file else "green.token"
        assert said == (
            f"target: {url}/admin/v2/clusters answers 403: it does not take the token of {name}, "
            "or its role may not do this"
        )
        assert rule == "target-access"
        assert "secret-of-green" not in f"{access!r} {said}"


def test_green_is_asked_over_tls_by_the_authorities_of_the_setting(tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    paths: dict[str, Any] = {"clusters": ["green"], "brokers/green": ["g:8443"]}
    with green(paths, certificate=ours.issue("green")) as url:
        target = Target(serviceUrlTls=url)
        [(rule, said)] = green_flaws(target, (), (), ask)
        assert rule == "unreachable-target"
        assert said.endswith(
            "set green.ca (TRIMTAB_GREEN__CA) to the authorities that have signed it"
        )
        access = GreenAccess(ca=ours.ca)
        assert list(green_flaws(target, (), (), asking(target, access))) == []


def test_any_server_of_a_url_may_answer_for_green(url: str) -> None:
    several = url.replace("http://", "http://127.0.0.1:1,")
    assert list(green_flaws(Target(serviceUrl=several), (), (), ask)) == []
    [(rule, problem)] = green_flaws(Target(serviceUrl=f"{NOWHERE},127.0.0.1:2"), (), (), ask)
    assert rule == "unreachable-target"
    assert problem.count("does not answer") == 2


def test_a_cluster_without_a_broker_is_not_green() -> None:
    with green({"clusters": ["green"], "brokers/green": []}) as url:
        [(rule, problem)] = green_flaws(Target(serviceUrl=url), (), (), ask)
    assert (rule, problem) == (
        "unreachable-target",
        f"target: {url} has no broker that is alive",
    )


@pytest.mark.parametrize("hops", [1, 2])
def test_a_cycle_of_clusters_is_found_with_its_way(hops: int) -> None:
    middle: dict[str, Any] = {"clusters": ["m"], "brokers/m": ["m:8080"]}
    blue = {"migrated": True, "migratedClusterUrl": {"serviceUrl": "http://blue:8080"}}
    with green(middle) as second:
        if hops == 1:
            middle["clusters/m/migrate"] = blue
            assert [*find_cycles(second, ["blue:8080"], Going(), ask)] == [
                (second, "http://blue:8080")
            ]
            return
        middle["clusters/m/migrate"] = blue
        onward = {"migrated": True, "migratedClusterUrl": {"serviceUrl": second}}
        first_paths = {"clusters": ["f"], "brokers/f": ["f:1"], "clusters/f/migrate": onward}
        with green(first_paths) as first:
            assert [*find_cycles(first, ["blue:8080"], Going(), ask)] == [
                (first, second, "http://blue:8080")
            ]
            [(rule, _)] = green_flaws(Target(serviceUrl=first), ["blue:8080"], (), ask)
            assert rule == "migration-cycle"
            assert find_cycles(first, ["elsewhere:8080"], Going(), ask) == {}


def test_a_cycle_through_what_stands_in_front_of_blue_is_found() -> None:
    with green({"clusters": ["blue"], "brokers/blue": ["blue:8080"]}) as front:
        back = {"migrated": True, "migratedClusterUrl": {"serviceUrl": front}}
        paths = {"clusters": ["m"], "brokers/m": ["m:8080"], "clusters/m/migrate": back}
        with green(paths) as url:
            assert [*find_cycles(url, ["blue:8080"], Going(), ask)] == [(url, front)]
            assert find_cycles(url, ["elsewhere:8080"], Going(), ask) == {}


@pytest.mark.parametrize(
    ("clusters", "is_blue"),
    [
        ({"blue": ["blue:8080", "new:8080"]}, True),
        ({"blue": ["blue:8080"], "gone": []}, True),
        ({"green": ["g:8080"]}, False),
        # One web service may know both.
        ({"blue": ["blue:8080"], "green": ["g:8080"]}, False),
    ],
)
def test_green_that_is_blue_by_another_name_is_refused(
    clusters: dict[str, list[str]], is_blue: bool
) -> None:
    """A load balancer has an address that no broker has."""
    paths: dict[str, Any] = {f"brokers/{name}": ids for name, ids in clusters.items()}
    with green({"clusters": [*clusters], **paths}) as url:
        found = list(green_flaws(Target(serviceUrl=url), ["blue:8080"], (), ask))
    said = f"target: {url} is the cluster that is left, as its brokers are: green is blue"
    assert found == ([("invalid-target", said)] if is_blue else [])


def test_a_cluster_that_green_only_knows_of_is_not_green() -> None:
    """Pulsar redirects questions about its brokers there; that may be blue, or not exist at all."""
    with green({"clusters": ["blue"], "brokers/blue": ["blue:8080"]}) as blue:
        away = blue.replace("127.0.0.1", "localhost")
        for elsewhere in (f"{away}/admin/v2/brokers/blue", "http://localhost:1/"):
            paths: dict[str, Any] = {"clusters": ["blue", "green"], "brokers/green": ["g:8080"]}
            with green({**paths, "brokers/blue": Sent(elsewhere)}) as url:
                assert list(green_flaws(Target(serviceUrl=url), ["blue:8080"], (), ask)) == []
            lone = {"clusters": ["blue"], "brokers/blue": Sent(elsewhere)}
            with green(lone) as url:
                [(rule, said)] = green_flaws(Target(serviceUrl=url), ["blue:8080"], (), ask)
                assert (rule, said) == (
                    "unreachable-target",
                    f"target: {url} has no broker that is alive",
                )


@pytest.mark.parametrize("migrated", [True, False])
def test_a_namespace_that_green_sends_on_is_no_target(migrated: bool) -> None:
    """Its topics would be sent on as they come: to blue, in the worst case."""
    paths: dict[str, Any] = {"clusters": ["green"], "brokers/green": ["g:8080"]}
    paths["namespaces/t/one"] = {"migrated": migrated}
    with green(paths) as url:
        found = list(green_flaws(Target(serviceUrl=url), (), (), ask, Going("t/one")))
        assert [rule for rule, _ in found] == ["migration-cycle"] * migrated
        assert list(green_flaws(Target(serviceUrl=url), (), (), ask, Going("t/two"))) == []


Serving = Callable[..., str]


@pytest.fixture
def serving() -> Iterator[Serving]:
    """Serves clusters of trimtab, each with what migrates from it."""
    with ExitStack() as stack:

        def serve(*migrations: Migration, cluster: str = "green", **more: object) -> str:
            told = [{"migration": msgspec.to_builtins(each)} for each in migrations]
            paths = {
                "clusters": [cluster],
                f"brokers/{cluster}": [f"{cluster}:8080"],
                f"/trimtab/v1/clusters/{cluster}/migrations": told,
            }
            return stack.enter_context(green(paths | more))

        yield serve


BLUE = "http://blue:8080"


def going_to(web: str, scope: str, **more: object) -> Migration:
    it = Migration("m", "green", scope, Target(serviceUrl=web, brokerServiceUrl="pulsar://x:1"))
    return replace(it, **more)  # type: ignore[arg-type]


def cycles(web: str, going: Going) -> dict[tuple[str, ...], list[str]]:
    return find_cycles(web, ["blue:8080"], going, ask)


def test_all_that_green_sends_back_to_blue_is_named_before_anything_changes(
    serving: Serving,
) -> None:
    """It migrates no cluster: only its namespaces and topics have targets of their own."""
    topic = "persistent://t/two/x"
    third = serving(going_to(BLUE, topic), cluster="third")
    elsewhere = serving(cluster="elsewhere")
    url = serving(
        going_to(BLUE, "t/one"),
        going_to(BLUE, "t/zero", state=MigrationState.COMPLETED),
        going_to(third, "t/two"),
        going_to(elsewhere, "t/three"),
        going_to(BLUE, "t/four", state=MigrationState.ROLLED_BACK),
    )
    assert cycles(url, Going()) == {(url, BLUE): ["t/one", "t/zero"], (url, third, BLUE): [topic]}
    said = [
        (rule, text)
        for rule, text in green_flaws(Target(serviceUrl=url), ["blue:8080"], (), ask)
        if "migrates" in text
    ]
    assert sorted(said) == sorted(
        [
            (
                "migration-cycle",
                f"target: green migrates t/one, t/zero too, and the way leads back here: "
                f"{url} -> {BLUE}",
            ),
            (
                "migration-cycle",
                f"target: green migrates {topic} too, and the way leads back here: "
                f"{url} -> {third} -> {BLUE}",
            ),
        ]
    )


@pytest.mark.parametrize(
    ("going", "scopes"),
    [
        (Going("t/one"), ["t/one"]),
        (Going("persistent://t/one/x"), ["persistent://t/one/x"]),
        (Going("t/two"), []),
        (Going("persistent://t/two/x"), []),
        # They are elsewhere already, and do not go with the rest.
        (Going(CLUSTER, apart=["t/one"]), []),
        (Going(CLUSTER, apart=["t/two"]), ["t/one"]),
    ],
)
def test_only_what_goes_to_green_can_come_back(
    serving: Serving, going: Going, scopes: list[str]
) -> None:
    url = serving(going_to(BLUE, "t/one"))
    assert [*cycles(url, going).values()] == [scopes] * bool(scopes)


def test_a_part_that_has_gone_elsewhere_from_green_does_not_come_back_with_the_rest(
    serving: Serving,
) -> None:
    url = serving(going_to(BLUE, CLUSTER, apart=("t/one",)))
    assert cycles(url, Going("t/one")) == {}
    assert cycles(url, Going("t/two")) == {(url, BLUE): ["t/two"]}


def test_a_way_that_leads_from_one_scope_into_another_is_no_cycle(serving: Serving) -> None:
    third = serving(going_to(BLUE, "t/two"), cluster="third")
    url = serving(going_to(third, "t/one"))
    assert cycles(url, Going()) == {}


def test_a_chain_of_clusters_that_leads_nowhere_ends(serving: Serving) -> None:
    last = serving(going_to(BLUE, CLUSTER), cluster="last")
    for number in range(MOST_HOPS):
        last = serving(going_to(last, CLUSTER), cluster=f"c{number}")
    assert cycles(last, Going()) == {}
    both = list[Any]()
    told = {"/trimtab/v1/clusters/circle/migrations": both}
    url = serving(cluster="circle", **told)
    both.append(msgspec.to_builtins({"migration": going_to(url, CLUSTER)}))
    assert cycles(url, Going()) == {}


@pytest.mark.parametrize(
    "told", [{"state": "running"}, {"state": "running", "scope": "t/one", "target": 7}, 3, None]
)
def test_what_another_version_says_of_its_migrations_is_left_out(
    serving: Serving, told: object
) -> None:
    url = serving(**{"/trimtab/v1/clusters/green/migrations": [told, {"migration": told}]})
    assert cycles(url, Going()) == {}


def test_a_namespace_that_a_pulsar_sends_back_by_its_flag_is_found() -> None:
    """Its cluster does not migrate, but has the URL that the flags of namespaces follow."""
    paths: dict[str, Any] = {"clusters": ["green"], "brokers/green": ["g:8080"]}
    paths |= {f"namespaces/t/{name}": {"migrated": name != "two"} for name in ("one", "two", "six")}
    going = Going(CLUSTER, ["t/six"], lambda: ["t/one", "t/six", "t/two"])
    heard = list[Heard]()
    with green(paths, heard) as url:
        assert cycles(url, going) == {}
        # Without a URL no flag has an effect.
        assert not any(each.path.startswith("namespaces") for each in heard)
        paths["clusters/green/migrate"] = {
            "migrated": False,
            "migratedClusterUrl": {"serviceUrl": BLUE},
        }
        assert cycles(url, going) == {(url, BLUE): ["t/one"]}
        assert cycles(url, Going("t/two")) == {}
        assert cycles(url, Going("persistent://t/one/x")) == {(url, BLUE): ["persistent://t/one/x"]}
        target = Target(serviceUrl=url)
        [(rule, _)] = green_flaws(target, ["blue:8080"], (), ask, Going("t/one"))
        assert rule == "migration-cycle"


def test_a_plan_names_what_would_come_back_with_all_else_that_is_wrong(
    api: TestClient, job: PromptJob, serving: Serving
) -> None:
    here = f"/trimtab/v1/clusters/{job.cluster_name}/migrations"
    before = stored(api, here)
    back = going_to(f"http://{A}", "c/one")
    theirs = {"tenants/c": {"allowedClusters": ["east"]}}
    url = serving(back, **theirs)
    assert api.put("/admin/v2/namespaces/c/one").status_code == 204
    for scope in (CLUSTER, "c/one"):
        body = {"target": urls(url), "scope": scope, "errors": 2.0}
        refused = api.post(here, json=body)
        for word in ("gate: errors", "allowed-clusters", f"back here: {url} -> http://{A}"):
            assert word in refused.json()["reason"]
    assert stored(api, here) == before
    other = {"target": urls(url), "scope": "d/one"}
    assert api.post(here, json=other, params={"dryRun": True}).status_code == 200


def test_a_cycle_by_tls_alone_is_found() -> None:
    blue = {"migrated": True, "migratedClusterUrl": {"serviceUrlTls": "https://blue:8443"}}
    with green({"clusters": ["m"], "clusters/m/migrate": blue}) as url:
        assert [*find_cycles(url, ["blue:8443"], Going(), ask)] == [(url, "https://blue:8443")]


def test_what_answers_nonsense_is_not_green() -> None:
    with green({}) as url:
        [(rule, problem)] = green_flaws(Target(serviceUrl=url), (), (), ask)
        assert rule == "unreachable-target"
        assert "answers 404: a server is there, but no web service of Pulsar's" in problem


def test_a_topic_says_how_far_it_has_migrated(api: TestClient, job: PromptJob) -> None:
    assert api.put("/admin/v2/namespaces/s/ns").status_code == 204
    here = f"/trimtab/v1/clusters/{job.cluster_name}/topics/persistent/s/ns/x"
    topic = "persistent://s/ns/x"
    assert "migrated" not in api.get(here).json()
    to = Target(serviceUrl="http://green:8080", brokerServiceUrl="pulsar://green:6650")
    job.migrations.write(job.cluster_name, 1, [Migration("s", job.cluster_name, "s/ns", to)])
    for state, migrated in (("active", False), ("terminated", True), ("draining", True)):
        _put(job, topic, state)
        told = api.get(here).json()
        assert (told["migration"], told["migrated"]) == (state, migrated)
        assert told["broker"]


def test_a_topic_of_which_nothing_is_left_is_found_on_green(
    api: TestClient, job: PromptJob
) -> None:
    assert api.put("/admin/v2/namespaces/g/ns").status_code == 204
    to = Target(serviceUrl="http://green:8080", brokerServiceUrl="pulsar://green:6650")
    job.migrations.write(job.cluster_name, 1, [Migration("g", job.cluster_name, "g/ns", to)])
    _put(job, "persistent://g/ns/x", "migrated")
    # The lookups' migrations may be a second old, and another test's lookup was just before.
    job._lookups.clear()
    found = api.get("/lookup/v2/topic/persistent/g/ns/x").json()
    assert (found["brokerUrl"], found["httpUrl"]) == (to.brokerServiceUrl, to.serviceUrl)
    here = f"/trimtab/v1/clusters/{job.cluster_name}/topics/persistent/g/ns/x"
    assert api.get(here).json()["migrated"] is True
    stats = api.get("/admin/v2/persistent/g/ns/x/stats", follow_redirects=False)
    assert stats.headers["location"] == "http://green:8080/admin/v2/persistent/g/ns/x/stats"


def _put(job: PromptJob, topic: str, state: str) -> None:
    """As the topic's owner would write it."""
    record = TopicRecord(state=TopicState(state), migration=topic[13])
    key = topics_key(job.cluster_name, namespace_of(topic))
    job._redis.hset(key, topic, msgspec.json.encode(record))


def test_a_tenant_that_green_lets_be_elsewhere_only_is_named_before_anything_changes() -> None:
    paths: dict[str, Any] = {"clusters": ["green"], "brokers/green": ["g:8080"]}
    paths["tenants/open"] = {"allowedClusters": []}
    paths["tenants/ours"] = {"allowedClusters": ["east", "green"]}
    paths["tenants/theirs"] = {"allowedClusters": ["east"]}
    with green(paths) as url:
        tenants = ("absent", "open", "ours", "theirs")
        [(rule, problem)] = green_flaws(Target(serviceUrl=url), (), tenants, ask)
    assert rule == "target-policy"
    assert "tenants update theirs --allowed-clusters green" in problem


@pytest.mark.parametrize(("load", "needed"), [(1.7, 2), (2.6, 4)])
def test_a_green_that_is_too_small_is_noted(load: float, needed: int) -> None:
    paths = {"clusters": ["green"], "brokers/green": ["g:8080", "h:8080"]}
    with green(paths) as url:
        notes = list(green_notes(Target(serviceUrl=url), load, 0.85, ask))
    assert bool(notes) == (needed > 2)
    assert all(f"takes {needed} brokers" in each and "has 2 alive" in each for each in notes)


def test_a_plan_checks_the_tenants_of_its_scope(api: TestClient, job: PromptJob) -> None:
    here = f"/trimtab/v1/clusters/{job.cluster_name}"
    paths: dict[str, Any] = {"clusters": ["green"], "brokers/green": ["g:8080"]}
    paths["tenants/q"] = {"allowedClusters": ["east"]}
    with green(paths) as url:
        assert begin(api, here, url, scope="q/ns").json()["rule"] == "target-policy"
        assert begin(api, here, url, scope="r/ns").status_code == 200
