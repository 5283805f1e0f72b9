"""Commands ask the API that a context names, with the token of its file."""

from __future__ import annotations

import json
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner, Result

from admin import cli
from admin.contexts import FILE_VARIABLE, InvalidContexts, read_contexts
from admin.exit_codes import DENIED, NOT_FOUND, OK, UNREACHABLE, USAGE
from control.plane import ControlPlane
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.process import Process
from deploy.redis_server import RedisServer
from tests.agent.support import A, B
from tests.api.conftest import BUNDLES, CLUSTER

START_S = 100.0


def typed(*words: str) -> Result:
    return CliRunner().invoke(cli.build_app(words[:1]), words)


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No contexts of the user who runs the tests."""
    path = tmp_path / "contexts.toml"
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    return path


@pytest.fixture
def served(
    plane: ControlPlane, kafka: KafkaServer, redis_server: RedisServer, tmp_path: Path
) -> Iterator[str]:
    """The URL of a server that knows the tokens in tokens.toml."""
    del plane
    viewer, admin = (typed("tokens", "create", f"a-{r}", "--role", r) for r in ("viewer", "admin"))
    (tmp_path / "tokens.toml").write_text(viewer.stdout + admin.stdout)
    for name, made in (("viewer", viewer), ("admin", admin)):
        (tmp_path / name).write_text(made.stderr.split()[-1] + "\n")
    port = free_port()
    program = str(Path(sysconfig.get_path("scripts")) / "trimtab")
    server = Process(
        "api",
        [program, "api", "--port", str(port), "--tokens", str(tmp_path / "tokens.toml")],
        folder=tmp_path,
        log=tmp_path / "api.log",
        environment={
            **os.environ,
            "TRIMTAB_KAFKA__BOOTSTRAP": kafka.bootstrap,
            "TRIMTAB_REDIS_URL": redis_server.url,
        },
    )
    url = f"http://127.0.0.1:{port}"
    server.start(lambda: _answers(url), START_S)
    yield url
    server.stop(30.0)


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/openapi.json").is_success
    except httpx2.TransportError:
        return False


def test_commands_go_to_the_api_of_the_context(served: str, tmp_path: Path) -> None:
    for name in ("viewer", "admin"):
        words = ("--api", served, "--token-file", str(tmp_path / name), "--cluster", CLUSTER)
        assert typed("contexts", "set", name, *words).exit_code == OK
    listed = typed("brokers", "list", "-o", "name")
    assert (listed.exit_code, listed.stdout.split()) == (OK, [A, B]), listed.output
    denied = typed("bundles", "unload", BUNDLES[0])
    assert denied.exit_code == DENIED
    assert "a-viewer is viewer; this takes operator" in denied.stderr
    checked = typed("bundles", "unload", BUNDLES[0], "--context", "admin", "-o", "json")
    assert (checked.exit_code, json.loads(checked.stdout)["state"]) == (OK, "checked")
    unknown = typed("why", "nothing:1", "--context", "admin")
    assert (unknown.exit_code, "nothing of nothing:1" in unknown.stderr) == (NOT_FOUND, True)
    # A token that is replaced counts for the next request.
    (tmp_path / "viewer").write_text((tmp_path / "admin").read_text())
    assert typed("bundles", "unload", BUNDLES[0]).exit_code == OK
    (tmp_path / "viewer").write_text("unknown")
    assert typed("brokers", "list").exit_code == DENIED


def test_an_api_that_is_away_is_named() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    typed("contexts", "set", "gone", "--api", url)
    away = typed("brokers", "list", "--cluster", "c")
    assert away.exit_code == UNREACHABLE
    assert url in away.stderr
    assert away.stderr.endswith("Next: trimtab contexts list\n")


def test_contexts_are_set_chosen_and_deleted(file: Path) -> None:
    typed("contexts", "set", "one", "--api", "http://one:1")
    typed("contexts", "set", "two", "--config", "two.toml", "--cluster", "east")
    assert typed("contexts", "use", "two").exit_code == OK
    rows = json.loads(typed("contexts", "list", "-o", "json").stdout)
    assert [(each["name"], each["current"]) for each in rows] == [("one", ""), ("two", "*")]
    target = read_contexts(file).choose("")
    assert target is not None
    assert (target.config, target.cluster) == (Path("two.toml").absolute(), "east")
    assert typed("contexts", "delete", "two").exit_code == OK
    assert read_contexts(file).choose("") is None


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("contexts", "set", "a"), USAGE, "give either api or config"),
        (("contexts", "set", "a", "--api", "ftp://x"), USAGE, "api "),
        (("contexts", "set", "a", "--api", "http://x", "--key", "k"), USAGE, "both cert and key"),
        (("contexts", "use", "a"), NOT_FOUND, "there is no context a; there is none"),
        (("brokers", "list", "--context", "a"), USAGE, "there is no context a"),
    ],
)
def test_what_is_wrong_with_a_context_is_said(words: tuple[str, ...], code: int, says: str) -> None:
    done = typed(*words)
    assert (done.exit_code, says in done.stderr) == (code, True), done.output


def test_a_file_that_is_no_list_of_contexts_is_refused(file: Path) -> None:
    file.write_text('[context.a]\napi = "http://x"\nurl = 1\n')
    with pytest.raises(InvalidContexts, match=r"context\.a\.url"):
        read_contexts(file)
    file.write_text("nonsense")
    assert typed("contexts", "list").exit_code == USAGE
