"""Green's admin paths, as far as they are asked, over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Sent(str):
    """An answer that sends who asks to this URL."""

    __slots__ = ()


@contextmanager
def green(answers: dict[str, Any], asked: list[str] | None = None) -> Iterator[str]:
    """Serve JSON by path below /admin/v2/, and 404 for others; yields the URL. ``asked``: gets the
    paths in the order of the requests. An answer that is a number is a status."""

    class Paths(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix("/admin/v2/")
            if asked is not None:
                asked.append(path)
            found = answers.get(path)
            status = found if isinstance(found, int) else 200
            self.send_response(404 if found is None else 307 if isinstance(found, Sent) else status)
            if isinstance(found, Sent):
                self.send_header("location", found)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Paths) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
