"""A broker's admin interface, for other clusters and for people.

PUT   tenants/T, namespaces/T/N                     accepted; this broker needs only a bundle
PUT   persistent/T/N/NAME                           a topic; 409 if it is there
PUT   persistent/T/N/NAME/subscription/S            from its first entry on; 409 if it is there
DELETE persistent/T/N/NAME                          the whole topic; 412 if it has migrated
POST  persistent/T/N/NAME/give-back                 ClusterUrl: end it, unless it took a write
GET   persistent/T/N/NAME/stats                     messages, backlogs, whether it has migrated
GET   clusters, brokers/CLUSTER                     its own cluster, and the ids of its brokers
GET   clusters/CLUSTER                              that cluster's URLs
GET   broker-stats/load-report                      the agent's newest report
All paths are below /admin/v2/. One more answers as `trimtab api` does, but without waves, so that
clusters which migrate in a circle can be found:
GET   /trimtab/v1/clusters/CLUSTER/migrations
Topics of ``non-persistent/`` are stored like others. For a topic of another broker the answer is a
307 to that broker, as in Pulsar.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from agent.migration.port import CannotMigrate
from simulation.traffic.migrating import MigratingBroker
from simulation.traffic.standing import Standing
from sinks.errors import SinkError
from sinks.kafka.readable import MALFORMED
from trimtab.migration.migration import Migration, Target
from trimtab.model import InvalidName
from trimtab.store.lookup import parse_topic
from trimtab.wire.lookup import Answer
from trimtab.wire.reports.load_report import encode

PREFIX: Final = "/admin/v2/"


class Reply(NamedTuple):
    """A status with its body, or the place to ask instead."""

    status: int
    body: bytes = b""
    location: str = ""


class Admin:
    """Listens from its making on; ``start`` serves."""

    def __init__(
        self,
        broker: MigratingBroker,
        find_owner: Callable[[str], Answer],
        address: tuple[str, int],
        migrations: Callable[[], Iterable[Migration]] = tuple,
    ) -> None:
        """``find_owner``: `agent.lookup.server.Lookup.lookup` with ``here``. Another cluster asks
        for topics that have gone on from here too, and their owner knows where they are.
        ``migrations``: those of its cluster; raises SinkError."""
        self._broker, self._find_owner, self._migrations = broker, find_owner, migrations
        admin = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer()

            do_PUT = do_POST = do_DELETE = do_GET

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                reply = admin.answer(self.command, self.path, body)
                self.send_response(reply.status)
                if reply.location:
                    self.send_header("location", reply.location)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: object) -> None:
                """Nothing: the agent's log is the broker's."""

        self._server = ThreadingHTTPServer(address, Handler)
        # What is under way is waited for at the end; a connection is for one request.
        self._server.daemon_threads = False
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10.0)

    def answer(self, method: str, path: str, body: bytes) -> Reply:  # noqa: C901 - a row for each
        """Answer a request."""
        kind, *names = path.partition("?")[0].removeprefix(PREFIX).split("/")
        match method, kind, [unquote(name) for name in names]:
            case "PUT", "tenants", [_]:
                return Reply(204)
            case "PUT", "namespaces", [_, _]:
                return Reply(204)
            case "GET", "clusters", []:
                return Reply(200, msgspec.json.encode([self._broker.cluster]))
            case "GET", "clusters", [name] if name == self._broker.cluster:
                return Reply(200, msgspec.json.encode(self._broker.home.urls()))
            case "GET", "brokers", [name] if name == self._broker.cluster:
                return Reply(200, msgspec.json.encode(self._broker.peers))
            case "GET", "broker-stats", ["load-report"]:
                return Reply(200, encode(self._broker.reported))
            case "GET", "", ["trimtab", "v1", "clusters", name, "migrations"] if (
                name == self._broker.cluster
            ):
                return self._say_migrations()
            case _, "persistent" | "non-persistent", [tenant, namespace, name, *rest]:
                try:
                    topic, _ = parse_topic(f"{kind}://{tenant}/{namespace}/{name}")
                except InvalidName as error:
                    return Reply(412, _says(str(error)))
                return self._of_topic(method, topic, rest, body) or self._elsewhere(topic, path)
        return Reply(404, _says(f"no {method} {path}"))

    def _say_migrations(self) -> Reply:
        try:
            # Waves may fill megabytes, and no caller needs them here.
            told = [{"migration": replace(each, waves=())} for each in self._migrations()]
        except SinkError as error:
            return Reply(503, _says(str(error)))
        return Reply(200, msgspec.json.encode(told))

    def _of_topic(  # noqa: C901 - a row for each path
        self, method: str, topic: str, rest: list[str], body: bytes
    ) -> Reply | None:
        """None: another broker serves it."""
        if self._broker.desk.token(topic) is None:
            return None
        broker = self._broker
        try:
            match method, rest:
                case "PUT", []:
                    return Reply(204 if broker.create(topic) else 409)
                case "DELETE", []:
                    return Reply(204 if broker.delete(topic) else 412)
                case "PUT", ["subscription", name]:
                    return Reply(204 if broker.subscribe(topic, name) else 409)
                case "POST", ["give-back"]:
                    home = msgspec.json.decode(body, type=Target)
                    return Reply(200, msgspec.json.encode(broker.give_back(topic, home)))
                case "GET", ["stats"]:
                    return Reply(200, msgspec.json.encode(self._stats(topic)))
        except CannotMigrate as error:
            return Reply(503, _says(str(error)))
        except MALFORMED as error:
            return Reply(400, _says(str(error)))
        return Reply(404, _says(f"no {method} {'/'.join(rest)} of a topic"))

    def _stats(self, topic: str) -> dict[str, Any]:
        known = self._broker.known(topic)
        backlogs = self._broker.backlog(topic)
        return {
            # What it had before another cluster handed it over is of no account.
            "msgInCounter": known.next - max(known.first, 0),
            "migrated": known.standing in (Standing.TERMINATED, Standing.REMOVED),
            "subscriptions": {name: {"msgBacklog": left} for name, left in backlogs.items()},
        }

    def _elsewhere(self, topic: str, path: str) -> Reply:
        answer = self._find_owner(topic)
        web = answer.urls.web if answer.urls else None
        if web is None:
            return Reply(503, _says(answer.says or f"no broker serves {topic} now"))
        return Reply(307, location=f"{web}{path}")


def _says(reason: str) -> bytes:
    return msgspec.json.encode({"reason": reason})
