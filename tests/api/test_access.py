"""Only those with a token that is in force are let in, as far as its role and tenants go."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from structlog.testing import capture_logs
from typer.testing import CliRunner

from admin import cli
from api.app import Access, create_app
from api.audit_log import AuditLog
from api.context import Context
from api.rate_limit import RateLimit
from api.tokens import Caller, InvalidTokens, Role, Tokens
from control.plane import ControlPlane
from deploy.kafka_server import KafkaServer
from simulation.replay.recorded import RecordedTopics
from tests.api.conftest import BUNDLES as EXISTING_BUNDLES
from tests.api.conftest import CLUSTER
from trimtab.wire.keys import CONTROL

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BROKERS = "/admin/v2/brokers"
SETTING = "/admin/v2/brokers/configuration/loadBalancerSheddingIntervalMinutes/many"
UNLOAD = "/admin/v2/namespaces/t/n/junk/unload"
BUNDLES = "/admin/v2/namespaces/t/n/bundles"
EXISTING = EXISTING_BUNDLES[0]


def entry(name: str, role: str, more: str = "") -> str:
    """An entry of a file of tokens, for the token `name`."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f'[[token]]\nname = "{name}"\nrole = "{role}"\nsha256 = "{digest}"\n{more}\n'


ALL = "".join(
    [
        entry("vera", "viewer"),
        entry("oscar", "operator"),
        entry("ada", "admin"),
        entry("tom", "operator", 'tenants = ["t"]'),
        entry("uma", "operator", 'tenants = ["u"]'),
        entry("past", "admin", "expires = 2026-06-01T00:00:00Z"),
        entry("soon", "admin", "expires = 2026-06-01T00:00:01Z"),
    ]
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(ALL)
    return path


@pytest.fixture
def guarded(plane: ControlPlane, file: Path) -> TestClient:
    log = AuditLog(file.with_name("audit.jsonl"))
    access = Access(Tokens(file, lambda: NOW), log, RateLimit(3, lambda: 0.0))
    return TestClient(create_app(Context(plane, CLUSTER, patience_s=0.0), access))


def asked(client: TestClient, method: str, path: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return client.request(method, path, headers=headers).status_code


@pytest.mark.parametrize(
    ("token", "statuses"),
    [
        # See, move (a bundle that does not exist), set (a value that cannot be), one tenant's.
        ("", (401, 401, 401, 401)),
        ("nobody", (401, 401, 401, 401)),
        ("past", (401, 401, 401, 401)),
        ("soon", (200, 412, 412, 200)),
        ("vera", (200, 403, 403, 200)),
        ("oscar", (200, 412, 403, 200)),
        ("ada", (200, 412, 412, 200)),
        ("tom", (403, 412, 403, 200)),
        ("uma", (403, 403, 403, 403)),
    ],
)
def test_each_role_may_do_its_own(
    guarded: TestClient, token: str, statuses: tuple[int, ...]
) -> None:
    requests = (("GET", BROKERS), ("PUT", UNLOAD), ("POST", SETTING), ("GET", BUNDLES))
    assert tuple(asked(guarded, method, path, token) for method, path in requests) == statuses


@pytest.mark.parametrize(
    ("token", "statuses"),
    [
        # Empty a broker (that does not exist), move a bundle of the tenant t, set (no setting).
        ("vera", (403, 403, 403)),
        ("oscar", (404, 200, 403)),
        ("ada", (404, 200, 412)),
        ("tom", (403, 200, 403)),
        ("uma", (403, 403, 403)),
    ],
)
def test_own_paths_ask_for_the_role_and_the_tenant(
    guarded: TestClient, token: str, statuses: tuple[int, ...]
) -> None:
    own = f"/trimtab/v1/clusters/{CLUSTER}"
    requests = (
        ("POST", f"{own}/brokers/nobody:1/drain", None),
        ("POST", f"{own}/bundles/{EXISTING}/unload", None),
        ("PATCH", f"{own}/settings", {"settings": {"no.such": 1}}),
    )
    headers = {"Authorization": f"Bearer {token}"}
    answers = (
        guarded.request(method, path, params={"dryRun": True}, json=body, headers=headers)
        for method, path, body in requests
    )
    assert tuple(each.status_code for each in answers) == statuses


def test_every_path_but_the_description_needs_a_token(guarded: TestClient) -> None:
    paths = guarded.get("/openapi.json").json()["paths"]
    assert len(paths) > 20
    for path, methods in paths.items():
        for method in methods:
            assert asked(guarded, method.upper(), path, "") == 401, (method, path)


def test_tokens_rotate_while_it_runs(guarded: TestClient, file: Path) -> None:
    file.write_text(entry("new", "viewer"))
    assert [asked(guarded, "GET", BROKERS, each) for each in ("ada", "new")] == [401, 200]
    file.write_text("[[token]] nonsense")
    assert asked(guarded, "GET", BROKERS, "new") == 200
    file.unlink()
    assert asked(guarded, "GET", BROKERS, "new") == 200


def test_a_wrong_file_is_refused_with_all_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    digest = "0" * 64
    path.write_text(
        f'[[token]]\nname = ""\nsha256 = "{digest}"\nrole = "king"\n'
        '[[token]]\nname = "b"\nsha256 = "zz"\nrole = "viewer"\nexpires = 2027-01-01T00:00:00\n'
    )
    with pytest.raises(InvalidTokens) as found:
        Tokens(path, lambda: NOW)
    for part in ("token.0.name", "token.0.role: must be one of", "token.1.sha256", "time zone"):
        assert part in str(found.value)
    path.write_text(entry("a", "viewer") * 2)
    with pytest.raises(InvalidTokens, match="a is there twice"):
        Tokens(path, lambda: NOW)
    with pytest.raises(InvalidTokens, match="No such file"):
        Tokens(tmp_path / "none", lambda: NOW)


def test_a_caller_who_changes_too_much_waits(guarded: TestClient) -> None:
    assert [asked(guarded, "PUT", UNLOAD, "oscar") for _ in range(4)] == [412, 412, 412, 429]
    assert asked(guarded, "GET", BROKERS, "oscar") == 200
    assert asked(guarded, "PUT", UNLOAD, "ada") == 412


def test_a_minutes_changes_come_back_within_a_minute() -> None:
    now = 0.0
    limit = RateLimit(60, lambda: now)
    assert [limit.wait_s("a") for _ in range(61)] == [0.0] * 60 + [1.0]
    now = 1.0
    assert [limit.wait_s("a"), limit.wait_s("a")] == [0.0, 1.0]
    now = 1000.0
    assert [limit.wait_s("a") for _ in range(61)][-2:] == [0.0, 1.0]


def test_changes_and_refusals_are_noted_with_who_and_why(guarded: TestClient, file: Path) -> None:
    why = {"Authorization": "Bearer oscar", "X-Trimtab-Reason": "it is hot"}
    done = guarded.put("/admin/v2/namespaces/t/n/unload", headers=why)
    asked(guarded, "POST", SETTING, "vera")
    asked(guarded, "GET", BROKERS, "nobody")
    asked(guarded, "GET", BROKERS, "ada")
    lines = [json.loads(line) for line in file.with_name("audit.jsonl").read_text().splitlines()]
    assert [(line["by"], line["method"], line["status"]) for line in lines] == [
        ("oscar", "PUT", 503),
        ("vera", "POST", 403),
        ("", "GET", 401),
    ]
    assert lines[0]["reason"] == "it is hot"
    assert lines[0]["intent"] == done.headers["x-trimtab-intent"]
    assert lines[0]["path"] == "/admin/v2/namespaces/t/n/unload"


def test_an_intent_carries_the_reason_of_its_request(
    guarded: TestClient, kafka: KafkaServer
) -> None:
    why = {"Authorization": "Bearer oscar", "X-Trimtab-Reason": "its disk is full"}
    done = guarded.put("/admin/v2/namespaces/t/n/unload", headers=why)
    topics = RecordedTopics(kafka.bootstrap)
    intents = [json.loads(record.value or b"{}") for record in topics.all(CONTROL)]
    topics.close()
    (sent,) = (each for each in intents if each["id"] == done.headers["x-trimtab-intent"])
    assert (sent["by"], sent["reason"]) == ("oscar", "its disk is full")


@pytest.mark.parametrize(
    "said", ["Störung".encode(), "Störung".encode("latin-1")], ids=["UTF-8", "latin-1"]
)
def test_a_reason_may_have_any_letters(guarded: TestClient, file: Path, said: bytes) -> None:
    why = {b"Authorization": b"Bearer oscar", b"X-Trimtab-Reason": said}
    guarded.put("/admin/v2/namespaces/t/n/unload", headers=why)
    line = json.loads(file.with_name("audit.jsonl").read_text().splitlines()[-1])
    assert line["reason"] == "Störung"


def test_an_id_with_other_letters_is_refused(guarded: TestClient) -> None:
    own = {b"Authorization": b"Bearer oscar", b"Idempotency-Key": "Störung".encode()}
    refused = guarded.put("/admin/v2/namespaces/t/n/unload", headers=own)
    assert (refused.status_code, "id" in refused.json()["reason"]) == (400, True)


def test_a_page_of_another_site_changes_nothing(api: TestClient) -> None:
    """Where no tokens are needed, a browser on this machine could be made to ask."""
    foreign = api.put(UNLOAD, headers={"Origin": "http://evil.example"})
    own = api.put(UNLOAD, headers={"Origin": "http://testserver"})
    assert (foreign.status_code, own.status_code) == (403, 412)


def test_a_callers_own_id_names_the_request(api: TestClient) -> None:
    asked_for = api.put("/admin/v2/namespaces/t/n/unload", headers={"Idempotency-Key": "ticket-7"})
    assert asked_for.headers["x-trimtab-intent"] == "ticket-7"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("api", "--host", "0.0.0.0"), "give --tokens FILE"),
        (("api", "--tls-cert", "nowhere.pem"), "give both or neither"),
        (("api", "--client-ca", "nowhere.pem"), "--client-ca: needs --tls-cert"),
        (("api", "--tokens", "nowhere.toml"), "nowhere.toml: No such file"),
        (("api", "--tokens", "nowhere.toml"), "Next: trimtab tokens create NAME"),
        (("api", "--tls-cert", __file__, "--tls-key", __file__), "not a certificate and its key"),
        (
            ("api", "--tls-cert", __file__, "--tls-key", __file__, "--client-ca", __file__),
            "not certificates in PEM",
        ),
        (("tokens", "create", "ada", "--role", "king"), "must be one of viewer, operator, admin"),
        (("tokens", "create", ""), "must have 1 to 100 characters"),
    ],
)
def test_wrong_options_are_refused(words: tuple[str, ...], says: str) -> None:
    done = CliRunner().invoke(cli.build_app(), words)
    assert (done.exit_code, says in done.stderr) == (2, True), done.output


@pytest.mark.parametrize("option", ["--port", "--host", "--audit"])
def test_a_server_that_cannot_listen_or_note_does_not_start(
    tmp_path: Path, kafka: KafkaServer, option: str
) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(ALL)
    port = kafka.bootstrap.rpartition(":")[2]
    # 192.0.2.1 is for documentation, and no machine's own.
    value = {"--port": port, "--host": "192.0.2.1", "--audit": str(tmp_path)}[option]
    done = CliRunner().invoke(
        cli.build_app(["api"]), ["api", "--tokens", str(tokens), option, value]
    )
    assert (done.exit_code, value in done.stderr, "give another" in done.stderr) == (1, True, True)


def test_a_change_that_cannot_be_noted_is_in_the_log(plane: ControlPlane, tmp_path: Path) -> None:
    """And its answer says what became of it."""
    access = Access(None, AuditLog(tmp_path), RateLimit(3, lambda: 0.0))
    client = TestClient(create_app(Context(plane, CLUSTER, patience_s=0.0), access))
    with capture_logs() as lines:
        assert client.put(UNLOAD).status_code == 412
    assert [line["event"] for line in lines] == ["a line of the audit log is lost"]


def test_a_token_that_is_made_opens(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        cli.build_app(["tokens"]),
        ["tokens", "create", 'a"b', "--role", "operator", "--tenant", "shop"],
    )
    path = tmp_path / "tokens.toml"
    path.write_text(done.stdout)
    token = done.stderr.split()[-1]
    caller = Tokens(path, lambda: NOW).caller_of(token)
    assert caller == Caller('a"b', Role.OPERATOR, frozenset({"shop"}))
    assert token not in done.stdout
