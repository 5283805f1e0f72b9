"""What blue asks of green's admin interface, by Pulsar's paths and one of our own."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

import httpx2
import msgspec

from agent.migration.port import CannotMigrate
from trimtab.migration.migration import Target
from trimtab.store.lookup import parse_topic

ANSWER_S: Final = 3.0
"""A call must end well before the lease does."""
_THERE: Final = 409
"""Pulsar's answer for what exists already: here that is success."""


class Green:
    """One other cluster; any thread may use it."""

    def __init__(self, target: Target) -> None:
        scheme, _, hosts = target.web.partition("://")
        self._hosts = [f"{scheme}://{host}" for host in hosts.rstrip("/").split(",")]
        self._first = 0
        self._made: set[str] = set()
        """Tenants and namespaces that are known to be there."""
        self._http = httpx2.Client(timeout=ANSWER_S, follow_redirects=True)
        self._changing = threading.Lock()

    def close(self) -> None:
        self._http.close()

    def create(self, topic: str, subscriptions: Iterable[str]) -> None:
        """Create tenant, namespace, topic and subscriptions from the first message on; raises
        CannotMigrate."""
        _, namespace = parse_topic(topic)
        for path in (f"tenants/{namespace.split('/')[0]}", f"namespaces/{namespace}"):
            if path not in self._made:
                self._ask("PUT", path)
                self._made.add(path)
        self._ask("PUT", _path(topic))
        for name in subscriptions:
            self._ask("PUT", f"{_path(topic)}/subscription/{quote(name, safe='')}", b'"earliest"')

    def give_back(self, topic: str, home: Target) -> bool:
        """Have green end the topic, unless it has taken a write of it; raises CannotMigrate."""
        answer = self._ask("POST", f"{_path(topic)}/give-back", msgspec.json.encode(home))
        return msgspec.json.decode(answer, type=bool)

    def _ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        with self._changing:
            order = self._hosts[self._first :] + self._hosts[: self._first]
        why = ""
        for host in order:
            try:
                answer = self._http.request(
                    method,
                    f"{host}/admin/v2/{path}",
                    content=body,
                    headers={"content-type": "application/json"},
                )
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                why = f"{host}: {error}"
                with self._changing:
                    self._first = (self._hosts.index(host) + 1) % len(self._hosts)
                continue
            if answer.is_success or answer.status_code == _THERE:
                return answer.content
            raise CannotMigrate(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        raise CannotMigrate(f"green does not answer: {why}")


def _path(topic: str) -> str:
    domain, _, rest = topic.partition("://")
    tenant, namespace, name = rest.split("/", 2)
    return f"{domain}/{tenant}/{namespace}/{quote(name, safe='')}"
