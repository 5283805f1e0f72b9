"""The admin interface of a Pulsar, as far as blue asks it: every answer as Pulsar 4.0.8 gave it.

A terminated topic takes no write and stays terminated, whatever happens to it. What counts its
messages begins at nothing when it is unloaded, and its ledgers go once all is read: then its
cursors alone show that it was written. A topic that is deleted is made again by a consumer that is
attached.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

PREFIX = "/admin/v2/"


@dataclass
class PulsarTopic:
    """One topic, by what its stats are made of."""

    terminated: bool = False
    added: int = 0
    """Messages since it was loaded."""
    kept: int = 0
    """In ledgers that are there still."""
    cursors: dict[str, int] = field(default_factory=dict)
    """Subscription to the last entry that it has read; -1: none."""

    def write(self) -> None:
        assert not self.terminated
        self.added += 1
        self.kept += 1

    def read_and_unload(self, subscription: str) -> None:
        """All is read, and the ledgers are gone."""
        self.cursors[subscription] = self.kept - 1
        self.added = self.kept = 0


class PulsarCluster:
    """``answer`` is asked by the server below, and by tests."""

    def __init__(self) -> None:
        self.tenants = {"public": ["green"]}
        self.namespaces = {"public/default"}
        self.topics: dict[str, PulsarTopic] = {}
        self.attached = False
        """Whether consumers are attached to every topic."""
        self.writes_meanwhile = False
        """Whether a producer writes once just before a topic is terminated."""

    def topic(self, name: str) -> PulsarTopic:
        return self.topics[name.replace("://", "/", 1)]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        path, _, query = path.removeprefix(PREFIX).partition("?")
        kind, *names = path.split("/")
        names = [unquote(each) for each in names]
        match method, kind, names:
            case "GET", "clusters", []:
                return 200, ["green", "global"]
            case "PUT", "tenants", [tenant]:
                return self._tenant(tenant, body)
            case "PUT", "namespaces", [tenant, name]:
                if tenant not in self.tenants:
                    return 404, {"reason": "Tenant does not exist"}
                if f"{tenant}/{name}" in self.namespaces:
                    return 409, {"reason": "Namespace already exists"}
                self.namespaces.add(f"{tenant}/{name}")
                return 204, None
            case _, "persistent" | "non-persistent", [tenant, namespace, name, *rest]:
                if f"{tenant}/{namespace}" not in self.namespaces:
                    return 404, {"reason": "Namespace does not exist"}
                return self._of_topic(method, f"{kind}/{tenant}/{namespace}/{name}", rest, query)
        return 404, None

    def _tenant(self, tenant: str, body: bytes) -> tuple[int, Any]:
        if not body:
            return 412, {"reason": "TenantInfo is null"}
        if not json.loads(body).get("allowedClusters"):
            return 412, {"reason": "Clusters cannot be empty or blank"}
        if tenant in self.tenants:
            return 409, {"reason": "Tenant already exist"}
        self.tenants[tenant] = json.loads(body)["allowedClusters"]
        return 204, None

    def _of_topic(self, method: str, name: str, rest: list[str], query: str) -> tuple[int, Any]:
        known = self.topics.get(name)
        match method, rest:
            case "PUT", []:
                self.topics.setdefault(name, PulsarTopic())
                return (204, None) if known is None else (409, {"reason": "It exists already"})
            case "POST", ["terminate"] if name.startswith("non-persistent"):
                return 406, {"reason": "Need to provide a persistent topic name"}
            case "DELETE", [] if known is not None:
                return self._delete(name, known, query)
        if known is None or rest == ["give-back"]:
            return 404, {"reason": f"Topic {name} not found"}
        return self._of_known(method, known, rest)

    def _of_known(self, method: str, topic: PulsarTopic, rest: list[str]) -> tuple[int, Any]:
        match method, rest:
            case "PUT", ["subscription", name]:
                there = name in topic.cursors
                topic.cursors.setdefault(name, -1)
                return (409, {"reason": "It exists already"}) if there else (204, None)
            case "GET", ["subscriptions"]:
                return 200, sorted(topic.cursors)
            case "GET", ["stats"]:
                return 200, {"msgInCounter": topic.added}
            case "GET", ["internalStats"]:
                return 200, _internal(topic)
            case "POST", ["terminate"]:
                if self.writes_meanwhile and not topic.terminated:
                    topic.write()
                topic.terminated = True
                return 200, {"ledgerId": 2, "entryId": topic.kept - 1, "partitionIndex": -1}
        return 405, None

    def _delete(self, name: str, topic: PulsarTopic, query: str) -> tuple[int, Any]:
        if topic.cursors and query != "force=true":
            return 412, {"reason": "Topic has active producers/subscriptions"}
        del self.topics[name]
        if self.attached:
            self.topics[name] = PulsarTopic(cursors=dict.fromkeys(topic.cursors, -1))
        return 204, None


def _internal(topic: PulsarTopic) -> dict[str, Any]:
    return {
        "entriesAddedCounter": topic.added,
        "numberOfEntries": topic.kept,
        "lastConfirmedEntry": f"2:{topic.kept - 1}",
        "state": "Terminated" if topic.terminated else "LedgerOpened",
        "cursors": {name: {"markDeletePosition": f"2:{at}"} for name, at in topic.cursors.items()},
    }


@contextmanager
def pulsar_cluster() -> Iterator[tuple[PulsarCluster, str]]:
    """A cluster, and the URL of its web service."""
    cluster = PulsarCluster()

    class Paths(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, said = cluster.answer(self.command, self.path, body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"" if said is None else json.dumps(said).encode())

        do_PUT = do_POST = do_DELETE = do_GET

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Paths) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield cluster, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
