"""pulsar-admin, many times in one JVM, says what it says alone."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Final

import pytest

from tests.support.admin_script import Answer
from tests.support.pulsar_admin import PulsarAdmin, pulsar_admin

ANSWERS: Final = {
    "/admin/v2/namespaces/shop/eight/bundles": (200, '{"boundaries": ["0x0"], "numBundles": 1}'),
    "/admin/v2/namespaces/shop/nowhere/bundles": (404, '{"reason": "Kein Laden in Köln"}'),
}


class Broker(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, text = ANSWERS[self.path]
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: pytest shows what is written."""


@pytest.fixture(scope="module")
def admin(admin_class_path: str) -> Iterator[PulsarAdmin]:
    with HTTPServer(("127.0.0.1", 0), Broker) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with pulsar_admin(admin_class_path, f"http://127.0.0.1:{server.server_port}") as admin:
            yield admin
        server.shutdown()


def test_what_a_broker_answers_is_printed(admin: PulsarAdmin) -> None:
    said = admin.run(["namespaces", "bundles", "shop/eight"])
    assert said == Answer(0, '{\n  "boundaries" : [ "0x0" ],\n  "numBundles" : 1\n}\n', "")


def test_a_refusal_has_an_exit_code_and_its_reason(admin: PulsarAdmin) -> None:
    said = admin.run(["namespaces", "bundles", "shop/nowhere"])
    assert said == Answer(1, "", "Kein Laden in Köln\n\nReason: Kein Laden in Köln\n")


def test_wrong_usage_is_refused_before_the_broker_is_asked(admin: PulsarAdmin) -> None:
    said = admin.run(["namespaces", "bundles"])
    assert (said.exit, said.stdout) == (1, "")
    assert said.stderr.startswith("Missing required parameter: '<namespaceName>'\nUsage:")


def test_each_command_starts_again(admin: PulsarAdmin) -> None:
    refused = admin.run(["namespaces", "bundles", "shop/nowhere"])
    assert admin.run(["namespaces", "bundles", "shop/eight"]).exit == 0
    assert admin.run(["namespaces", "bundles", "shop/nowhere"]) == refused


@pytest.mark.parametrize("argument", ["a\tb", "a\nb"])
def test_what_would_break_the_frame_is_refused(admin: PulsarAdmin, argument: str) -> None:
    with pytest.raises(ValueError, match="a tab or a line break"):
        admin.run(["tenants", "get", argument])
