"""Certificates rotate while the server runs."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Callable
from pathlib import Path

from structlog.testing import capture_logs

from api.certificates import follow_files
from tests.support.certificates import Authority


def handshake(server: ssl.SSLContext, trusted: Path) -> bytes:
    """The certificate that a client is shown, DER."""
    client = ssl.create_default_context(cafile=trusted)
    client.check_hostname = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    ended = False
    while not ended:
        ended = _step(ours.do_handshake) & _step(theirs.do_handshake)
    return ours.getpeercert(binary_form=True) or b""


def _step(shake: Callable[[], None]) -> bool:
    try:
        shake()
    except ssl.SSLWantReadError:
        return False
    return True


def test_the_next_connection_gets_the_new_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    file, first, second = tmp_path / "now.pem", authority.issue("one"), authority.issue("two")

    def build() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    shutil.copy(first, file)
    followed = follow_files(build, [file])
    before = handshake(followed, authority.ca)
    assert handshake(followed, authority.ca) == before
    file.write_text("half a certif")
    with capture_logs() as lines:
        assert handshake(followed, authority.ca) == before
    assert [line["event"] for line in lines] == ["new certificates cannot be used"]
    shutil.copy(second, file)
    after = handshake(followed, authority.ca)
    assert after != before
    assert after == ssl.PEM_cert_to_DER_cert(_certificate(second))


def _certificate(file: Path) -> str:
    begin = "-----BEGIN CERTIFICATE-----"
    end = "-----END CERTIFICATE-----"
    text = file.read_text()
    return text[text.index(begin) : text.index(end) + len(end)]
