"""What the other cluster is asked with: read from its settings, never shown, checked before use."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from agent.migration.port import CannotMigrate
from simulation.traffic.green import Green
from simulation.traffic.green_line import ANSWER_S
from sinks.errors import Misconfigured
from sinks.green_access import NO_ACCESS, GreenAccess, access_of_environment
from streaming.config import InvalidConfig, load_config
from tests.support.certificates import Authority
from tests.support.green_server import Heard, Sent, green
from trimtab.migration.migration import Target

CANARY = "canary-in-the-mine"
TOPIC = "persistent://t/ns/x"


def test_without_settings_no_token_is_sent() -> None:
    assert NO_ACCESS.headers() == {}
    assert access_of_environment() == NO_ACCESS == load_config(None).green


def test_a_token_file_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    access = GreenAccess(token_file=file)
    assert access.headers() == {"Authorization": "Bearer first"}
    file.write_text("second")
    assert access.headers() == {"Authorization": "Bearer second"}
    file.unlink()
    with pytest.raises(Misconfigured, match=r"green\.token_file: .*token: No such file"):
        access.headers()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"token": CANARY, "token_file": "{file}"}, "two tokens", id="both"),
        pytest.param({"token_file": "/nowhere"}, "/nowhere: No such file", id="no such file"),
        pytest.param({"token_file": "{empty}"}, "is empty", id="nothing in it"),
        pytest.param({"token": f"{CANARY} x"}, "one word", id="two words"),
        pytest.param({"token": f"{CANARY}\nX-Role: admin"}, "one word", id="a header"),
        pytest.param({"ca": "/nowhere"}, "ca: /nowhere: No such file", id="no authorities"),
        pytest.param({"tocken": CANARY}, "tocken", id="misspelt"),
    ],
)
def test_what_makes_no_sense_is_told_without_the_token(
    given: dict[str, str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"file": tmp_path / "file", "empty": tmp_path / "empty"}
    files["file"].write_text(CANARY)
    files["empty"].write_text(" \n")
    given = {name: value.format_map(files) for name, value in given.items()}
    with pytest.raises(ValidationError) as caught:
        GreenAccess.model_validate(given)
    assert problem in str(caught.value)
    assert CANARY not in str(caught.value)
    for name, value in given.items():
        monkeypatch.setenv(f"TRIMTAB_GREEN__{name.upper()}", value)
    with pytest.raises(InvalidConfig, match=problem) as told:
        load_config(None)
    with pytest.raises(Misconfigured, match="green: ") as refused:
        access_of_environment()
    assert CANARY not in f"{told.value} {refused.value}"


def test_the_environment_says_what_a_broker_asks_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMTAB_GREEN__TOKEN", CANARY)
    found = access_of_environment()
    assert found.headers() == {"Authorization": f"Bearer {CANARY}"}
    assert CANARY not in repr(found)
    assert load_config(None).green == found


def test_every_resource_is_created_with_the_token_and_over_tls(tmp_path: Path) -> None:
    ours, heard = Authority(tmp_path, "ours"), list[Heard]()
    paths = {"tenants/t": 204, "namespaces/t/ns": 204, "persistent/t/ns/x": 204}
    paths["persistent/t/ns/x/subscription/s"] = 204
    with green(paths, heard, ours.issue("green")) as url:
        access = GreenAccess(token=SecretStr(CANARY), ca=ours.ca)
        Green(Target(serviceUrlTls=url), access).create(TOPIC, ["s"])
        assert [each.path for each in heard] == [*paths]
        assert {each.token for each in heard} == {f"Bearer {CANARY}"}
        with pytest.raises(CannotMigrate, match=r"set green\.ca \(TRIMTAB_GREEN__CA\)"):
            Green(Target(serviceUrlTls=url)).create(TOPIC, [])


def test_a_step_that_green_refuses_names_the_setting() -> None:
    with green({"tenants/t": 401}) as url:
        with pytest.raises(CannotMigrate) as refused:
            Green(Target(serviceUrl=url)).create(TOPIC, [])
        assert str(refused.value) == (
            "PUT /admin/v2/tenants/t: 401: it wants a token: set green.token_file "
            "(TRIMTAB_GREEN__TOKEN_FILE)"
        )
        access = GreenAccess(token=SecretStr(CANARY))
        with pytest.raises(CannotMigrate, match=r"does not take the token of green\.token,") as two:
            Green(Target(serviceUrl=url), access).create(TOPIC, [])
        assert CANARY not in str(two.value)


def test_a_slow_green_is_asked_for_a_while_and_the_next_time_goes_on() -> None:
    """Each question may take a third of a lease: the sum of them lost the broker its bundles."""
    now, heard = [0.0], list[Heard]()

    class Slow(list[Heard]):
        def append(self, each: Heard) -> None:
            heard.append(each)
            now[0] += 0.9 * ANSWER_S

    paths = {"tenants/t": 204, "namespaces/t/ns": 204, "persistent/t/ns/x": 204}
    names = ["a", "b"]
    paths |= {f"persistent/t/ns/x/subscription/{name}": 204 for name in names}
    with green(paths, Slow()) as url:
        it = Green(Target(serviceUrl=url), clock=lambda: now[0])
        for _ in range(2):
            with pytest.raises(CannotMigrate, match="takes more than 3 s for one topic"):
                it.create(TOPIC, names)
        it.create(TOPIC, names)
        # It is complete, and is asked for again: others may have deleted it there.
        with pytest.raises(CannotMigrate, match="takes more than 3 s for one topic"):
            it.create(TOPIC, names)
    assert [each.path for each in heard[:5]] == [*paths]
    assert [each.path for each in heard[5:]] == ["persistent/t/ns/x", *[*paths][3:4]]


def test_a_token_does_not_leave_tls(tmp_path: Path) -> None:
    ours, heard = Authority(tmp_path, "ours"), list[Heard]()
    with green({}, heard) as plain:
        to_plain = {"tenants/t": Sent(f"{plain}/admin/v2/tenants/t")}
        with green(to_plain, certificate=ours.issue("green")) as url:
            access = GreenAccess(token=SecretStr(CANARY), ca=ours.ca)
            with pytest.raises(CannotMigrate, match="leads from TLS to http://"):
                Green(Target(serviceUrlTls=url), access).create(TOPIC, [])
    assert heard == []
