"""What blue asks of green's admin interface, by Pulsar's paths and one of our own."""

from __future__ import annotations

from collections.abc import Iterable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLCertVerificationError
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from agent.migration.port import CannotMigrate
from sinks.errors import Misconfigured
from sinks.green_access import NO_ACCESS, NOT_TRUSTED, WHO_ASKS, GreenAccess
from trimtab.migration.migration import Target
from trimtab.store.lookup import parse_topic

ANSWER_S: Final = 3.0
"""A call must end well before the lease does."""
_THERE: Final = 409
"""Pulsar's answer for what exists already: here that is success."""
_MOST_HOPS: Final = 3


class _Answer(NamedTuple):
    host: str
    """The one that answered; not always the one that was asked."""
    body: bytes


class Green:
    """One other cluster, for one thread."""

    def __init__(self, target: Target, access: GreenAccess = NO_ACCESS) -> None:
        self._access = access
        scheme, _, hosts = target.web.partition("://")
        self._hosts = [f"{scheme}://{host}" for host in hosts.rstrip("/").split(",")]
        self._made: set[str] = set()
        """Tenants and namespaces that are known to be there."""

    def create(self, topic: str, subscriptions: Iterable[str]) -> None:
        """Create tenant, namespace, topic and subscriptions from the first message on; raises
        CannotMigrate."""
        _, namespace = parse_topic(topic)
        for path in (f"tenants/{namespace.split('/')[0]}", f"namespaces/{namespace}"):
            if path not in self._made:
                self._ask("PUT", path)
                self._made.add(path)
        owner = self._ask("PUT", _path(topic)).host
        for name in subscriptions:
            path = f"{_path(topic)}/subscription/{quote(name, safe='')}"
            self._ask("PUT", path, b'"earliest"', owner)

    def give_back(self, topic: str, home: Target) -> bool:
        """Have green end the topic, unless it has taken a write of it; raises CannotMigrate."""
        asked = msgspec.json.encode(home)
        answer = self._ask("POST", f"{_path(topic)}/give-back", asked)
        return msgspec.json.decode(answer.body, type=bool)

    def _ask(self, method: str, path: str, body: bytes = b"", first: str = "") -> _Answer:
        """Ask ``first``, and then each host in turn until one answers."""
        why = ""
        for host in [first, *self._hosts] if first else tuple(self._hosts):
            try:
                return _asked(method, f"{host}/admin/v2/{path}", body, self._access)
            except Misconfigured as error:
                raise CannotMigrate(str(error)) from error
            except (OSError, HTTPException) as error:
                why = f"{host}: {error}"
                if isinstance(error, SSLCertVerificationError):
                    why += f"; {NOT_TRUSTED}"
                if host == self._hosts[0]:
                    # The next question begins with another one.
                    self._hosts = [*self._hosts[1:], host]
        raise CannotMigrate(f"green does not answer: {why}")


def _asked(method: str, url: str, body: bytes, access: GreenAccess) -> _Answer:
    """The answer, after what redirects there are; raises Misconfigured too."""
    headers = {"content-type": "application/json", **access.headers()}
    is_safe = url.startswith("https:")
    for _ in range(_MOST_HOPS):
        parts = urlsplit(url)
        if is_safe and parts.scheme != "https":
            raise CannotMigrate(f"{method} {parts.path}: green leads from TLS to {url}")
        line = (
            HTTPSConnection(parts.netloc, timeout=ANSWER_S, context=access.context())
            if parts.scheme == "https"
            else HTTPConnection(parts.netloc, timeout=ANSWER_S)
        )
        try:
            line.request(method, parts.path, body, headers)
            answer = line.getresponse()
            text, status = answer.read(), answer.status
        finally:
            line.close()
        if status != 307:
            break
        url = answer.headers["location"]
    if status in WHO_ASKS:
        raise CannotMigrate(f"{method} {parts.path}: {status}: {access.say_refused()}")
    if status >= 300 and status != _THERE:
        says = text[:200].decode(errors="replace")
        raise CannotMigrate(f"{method} {parts.path}: {status} {says}")
    return _Answer(f"{parts.scheme}://{parts.netloc}", text)


def _path(topic: str) -> str:
    domain, _, rest = topic.partition("://")
    tenant, namespace, name = rest.split("/", 2)
    return f"{domain}/{tenant}/{namespace}/{quote(name, safe='')}"
