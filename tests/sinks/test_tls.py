"""Redis over TLS: only the server that the operator's authority vouches for is spoken to."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from deploy.ports import free_port
from deploy.process import ServerError
from deploy.redis_server import RedisServer
from deploy.sentinel_server import NAME, SentinelServer
from sinks.errors import Misconfigured, StoreUnavailable
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import TIMEOUT_SECONDS, redis_client
from tests.support.certificates import Authority


class Secured(NamedTuple):
    """A server with a plain port and one for TLS."""

    server: RedisServer
    port: int
    ours: Authority
    theirs: Authority
    files: list[str]
    """Lines of a configuration that speaks TLS."""

    def url(self, *options: str, scheme: str = "rediss", host: str = "127.0.0.1") -> str:
        query = "?" + "&".join(options) if options else ""
        return f"{scheme}://:{self.password}@{host}:{self.port}/0{query}"

    @property
    def password(self) -> str:
        return (self.server.folder / "password").read_text()

    def trusted(self, *options: str) -> str:
        return self.url(f"ssl_ca_certs={self.ours.ca}", *options)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder, port = tmp_path_factory.mktemp("tls"), free_port()
    ours, theirs = Authority(folder, "ours"), Authority(folder, "theirs")
    certificate = ours.issue("server")
    files = [
        f'tls-cert-file "{certificate}"',
        f'tls-key-file "{certificate}"',
        f'tls-ca-cert-file "{ours.ca}"',
        "tls-auth-clients optional",
    ]
    server = RedisServer(folder / "redis", settings=[f"tls-port {port}", *files])
    try:
        server.start()
    except ServerError as error:
        if "Failed finding TLS support" not in str(error):
            raise
        pytest.skip("this machine's Redis was built without TLS, as the Valkey wheel is")
    yield Secured(server, port, ours, theirs, files)
    server.stop()


@pytest.fixture
def demanding(secured: Secured) -> Iterator[Secured]:
    """The same while it asks clients for a certificate."""
    with redis_client(secured.server.url) as admin:
        admin.config_set("tls-auth-clients", "yes")
        yield secured
        admin.config_set("tls-auth-clients", "optional")


def ping(url: str) -> None:
    with redis_client(url) as client:
        OwnershipStore(client).ping()


def refusal(secured: Secured, url: str) -> str:
    with pytest.raises(Misconfigured) as caught:
        ping(url)
    said = f"{caught.value!r} {caught.value.__cause__!r}"
    assert secured.password not in said
    return said


def test_a_server_of_the_private_authority_is_spoken_to(secured: Secured) -> None:
    ping(secured.trusted())


def test_it_may_ask_for_a_certificate(demanding: Secured) -> None:
    mine = demanding.ours.issue("client")
    ping(demanding.trusted(f"ssl_certfile={mine}"))
    ping(demanding.trusted(f"ssl_certfile={mine}", f"ssl_keyfile={mine}"))


@pytest.mark.parametrize("stranger", [False, True], ids=["no certificate", "another authority's"])
def test_a_client_without_the_required_certificate_is_refused(
    demanding: Secured, stranger: bool
) -> None:
    """Whether the reason arrives before the server hangs up is chance, in TLS 1.3."""
    shown = [f"ssl_certfile={demanding.theirs.issue('stranger')}"] if stranger else []
    with pytest.raises((Misconfigured, StoreUnavailable)) as caught:
        ping(demanding.trusted(*shown))
    assert isinstance(caught.value, StoreUnavailable) or "ssl_certfile" in str(caught.value)


def test_a_server_of_another_authority_is_refused(secured: Secured) -> None:
    said = refusal(secured, secured.url(f"ssl_ca_certs={secured.theirs.ca}"))
    assert "ssl_ca_certs must hold" in said


def test_a_server_of_a_private_authority_is_not_trusted_by_default(secured: Secured) -> None:
    assert "ssl_ca_certs must hold" in refusal(secured, secured.url())


def test_a_server_of_another_name_is_refused(secured: Secured) -> None:
    url = secured.url(f"ssl_ca_certs={secured.ours.ca}", host="localhost")
    assert "Hostname mismatch" in refusal(secured, url)


def test_sentinels_and_the_master_they_name_are_both_spoken_to_over_tls(
    secured: Secured, tmp_path: Path
) -> None:
    port = free_port()
    lines = [f"tls-port {port}", "tls-replication yes", *secured.files]
    with SentinelServer(
        tmp_path / "sentinel", secured.server, through=secured.port, quorum=1, settings=lines
    ):
        url = f"rediss+sentinel://:{secured.password}@127.0.0.1:{port}/{NAME}/0"
        ping(f"{url}?ssl_ca_certs={secured.ours.ca}")
        assert "ssl_ca_certs must hold" in refusal(secured, url)
        with pytest.raises((Misconfigured, StoreUnavailable)) as caught:
            ping(url.replace("rediss", "redis"))
        assert secured.password not in str(caught.value)


def test_a_plain_client_gets_no_answer_on_the_port_of_tls(secured: Secured) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        ping(secured.url(scheme="redis"))
    assert secured.password not in str(caught.value)


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile"])
def test_a_file_that_tls_cannot_use_is_named_before_anything_connects(
    tmp_path: Path, option: str
) -> None:
    (tmp_path / "text.pem").write_text("no certificate")
    for file in ("text.pem", "missing.pem"):
        with pytest.raises(Misconfigured) as caught:
            redis_client(f"rediss://:sesame@127.0.0.1:1/0?{option}={tmp_path / file}")
        assert option in str(caught.value)
        assert file in str(caught.value)
        assert "sesame" not in str(caught.value)


def test_an_encrypted_key_is_refused_and_not_asked_about(tmp_path: Path) -> None:
    """OpenSSL would ask for the password on the terminal, and a service would hang there."""
    plain = Authority(tmp_path, "ours").issue("client")
    locked = tmp_path / "locked.key"
    encrypt = "openssl", "pkey", "-aes256", "-passout", "pass:x"
    subprocess.run([*encrypt, "-in", plain, "-out", locked], check=True)
    with pytest.raises(Misconfigured, match="ssl_certfile"):
        redis_client(f"rediss://127.0.0.1:1/0?ssl_certfile={plain}&ssl_keyfile={locked}")


@pytest.mark.parametrize(
    "address",
    [
        "rediss://:sesame@h:1/0?ssl_cert_reqs=none",
        "rediss://:sesame@h:1/0?ssl_check_hostname=false",
        "rediss://:sesame@h:1/0?socket_timeout=60",
        "redis://:sesame@h:1/0?retry_on_timeout=true",
        "redis://:sesame@h:1/0?ssl_ca_certs=/ca.pem",
    ],
)
def test_an_address_cannot_switch_off_what_protects_us(address: str) -> None:
    with pytest.raises(Misconfigured, match="may not say") as caught:
        redis_client(address)
    assert "sesame" not in str(caught.value)


def test_a_write_over_tls_is_given_up_soon_and_not_repeated() -> None:
    with redis_client("rediss://127.0.0.1:1/0") as client:
        chosen = client.connection_pool.connection_kwargs
        assert chosen["socket_timeout"] == chosen["socket_connect_timeout"] == TIMEOUT_SECONDS
        assert chosen["retry"].get_retries() == 0
