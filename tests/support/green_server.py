"""Green's admin paths, as far as they are asked, over HTTP."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple


class Sent(str):
    """An answer that redirects to this URL."""

    __slots__ = ()


class Heard(NamedTuple):
    """A request: its path, and the credentials in it."""

    path: str
    token: str | None


@contextmanager
def green(
    answers: dict[str, Any], heard: list[Heard] | None = None, certificate: Path | None = None
) -> Iterator[str]:
    """Serve JSON by path below /admin/v2/, and 404 for others; yields the URL. ``heard``: gets the
    requests in their order; ``certificate``: with its key, for TLS. An answer that is a number is a
    status."""

    class Paths(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        do_PUT = do_POST = do_GET

        def _answer(self) -> None:
            path = self.path.removeprefix("/admin/v2/")
            self.rfile.read(int(self.headers.get("content-length") or 0))
            if heard is not None:
                heard.append(Heard(path, self.headers.get("authorization")))
            found = answers.get(path)
            status = found if isinstance(found, int) else 200
            self.send_response(404 if found is None else 307 if isinstance(found, Sent) else status)
            if isinstance(found, Sent):
                self.send_header("location", found)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Paths) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
