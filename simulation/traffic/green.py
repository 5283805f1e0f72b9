"""What blue asks of green's admin interface, by Pulsar's paths and one of our own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR
from ssl import SSLCertVerificationError
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from agent.migration.port import CannotMigrate
from sinks.deadline import within
from sinks.errors import Misconfigured
from sinks.green_access import NO_ACCESS, NOT_TRUSTED, WHO_ASKS, GreenAccess
from sinks.kafka.readable import MALFORMED
from trimtab.migration.migration import Target
from trimtab.store.lookup import parse_topic

ANSWER_S: Final = 3.0
"""What is asked for one topic must end well before the lease does: a third of its 10 s."""
_THERE: Final = 409
"""Pulsar's answer for what exists already: here that is success."""
_MOST_HOPS: Final = 3


class _Answer(NamedTuple):
    host: str
    """The one that answered; not always the one that was asked."""
    status: int
    body: bytes


class _Refused(CannotMigrate):
    """Green has understood what it is asked, and does not do it."""


class GivenBack(msgspec.Struct, frozen=True):
    """What green answers when it is asked to give a topic back."""

    ended: bool
    """False: it has taken a write, and keeps the topic."""
    subscriptions: tuple[str, ...] = ()
    """All that it had, those too that began there."""
    gone: str = ""
    """The web service to which a migration from there sends its clients, if one does."""


class _Stats(msgspec.Struct, frozen=True):
    """What is read of a topic's stats."""

    msgInCounter: int


class Green:
    """One other cluster, for one thread. What is asked for one topic ends after ANSWER_S, however
    many questions that are: the broker's lease is not kept meanwhile."""

    def __init__(
        self,
        target: Target,
        access: GreenAccess = NO_ACCESS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access, self._clock = access, clock
        scheme, _, hosts = target.web.partition("://")
        self._hosts = [f"{scheme}://{host}" for host in hosts.rstrip("/").split(",")]
        self._made: set[str] = set()
        """Tenants and namespaces that are known to be there."""
        self._half_made: dict[str, set[str]] = {}
        """Topics that are not complete there, with what is: the next time goes on."""
        self._until = 0.0

    def create(self, topic: str, subscriptions: Iterable[str], *, begins: bool = True) -> None:
        """Create tenant, namespace, topic and subscriptions from the first message on; raises
        CannotMigrate, and goes on when it is called again. ``begins``: blue takes its writes still,
        so green must have no message of it."""
        self._until = self._clock() + ANSWER_S
        _, namespace = parse_topic(topic)
        for path in (f"tenants/{namespace.split('/')[0]}", f"namespaces/{namespace}"):
            if path not in self._made:
                self._ask("PUT", path)
                self._made.add(path)
        there = self._half_made.setdefault(topic, set())
        owner = ""
        if _path(topic) not in there:
            made = self._ask("PUT", _path(topic))
            owner = made.host
            if begins and made.status == _THERE:
                self._check_empty(topic, owner)
            there.add(_path(topic))
        for name in subscriptions:
            path = f"{_path(topic)}/subscription/{quote(name, safe='')}"
            if path not in there:
                self._subscribe(topic, path, owner)
                there.add(path)
        del self._half_made[topic]

    def _subscribe(self, topic: str, path: str, owner: str) -> None:
        try:
            self._ask("PUT", path, b'"earliest"', owner)
        except _Refused:
            # Pulsar keeps no subscription of these: a client makes it.
            if not topic.startswith("non-persistent:"):
                raise

    def give_back(self, topic: str, home: Target) -> GivenBack:
        """Have green end the topic, unless it has taken a write of it; raises CannotMigrate."""
        self._until = self._clock() + ANSWER_S
        self._half_made.pop(topic, None)
        asked = msgspec.json.encode(home)
        answer = self._ask("POST", f"{_path(topic)}/give-back", asked)
        try:
            return msgspec.json.decode(answer.body, type=GivenBack)
        except MALFORMED as error:
            raise CannotMigrate(f"green does not say whether it has ended it: {error}") from error

    def _check_empty(self, topic: str, owner: str) -> None:
        """Raise CannotMigrate if a topic that green has already was written there: those messages
        would come before blue's, and a producer of the same name would count as having sent its
        next ones."""
        answer = self._ask("GET", f"{_path(topic)}/stats", first=owner)
        try:
            messages = msgspec.json.decode(answer.body, type=_Stats).msgInCounter
        except MALFORMED as error:
            raise CannotMigrate(f"green does not say whether it has messages: {error}") from error
        if messages:
            raise CannotMigrate(
                f"green has a topic of this name with {messages} messages that are not from here: "
                "delete it there (pulsar-admin topics delete), or leave it out of the scope"
            )

    def _ask(self, method: str, path: str, body: bytes = b"", first: str = "") -> _Answer:
        """Ask ``first``, and then each host in turn until one answers."""
        why = ""
        for host in [first, *self._hosts] if first else tuple(self._hosts):
            try:
                return self._asked(method, f"{host}/admin/v2/{path}", body)
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

    def _asked(self, method: str, url: str, body: bytes) -> _Answer:
        """The answer, after what redirects there are; raises Misconfigured too."""
        headers = {"content-type": "application/json", **self._access.headers()}
        is_safe = url.startswith("https:")
        for _ in range(_MOST_HOPS):
            parts = urlsplit(url)
            if is_safe and parts.scheme != "https":
                raise CannotMigrate(f"{method} {parts.path}: green leads from TLS to {url}")
            status, text, location = self._once(method, parts, body, headers)
            if status != 307:
                break
            url = location
        if status in WHO_ASKS:
            raise CannotMigrate(f"{method} {parts.path}: {status}: {self._access.say_refused()}")
        if status >= 300 and status != _THERE:
            says = text[:200].decode(errors="replace")
            kind = _Refused if status < 500 else CannotMigrate
            raise kind(f"{method} {parts.path}: {status} {says}")
        return _Answer(f"{parts.scheme}://{parts.netloc}", status, text)

    def _once(
        self, method: str, url: SplitResult, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes, str]:
        """Status, body and location of one answer, all of which has come in time."""
        left = self._until - self._clock()
        if left <= 0:
            raise CannotMigrate(f"green takes more than {ANSWER_S:g} s for one topic: it goes on")
        line = (
            HTTPSConnection(url.netloc, timeout=left, context=self._access.context())
            if url.scheme == "https"
            else HTTPConnection(url.netloc, timeout=left)
        )

        def ask() -> tuple[int, bytes, str]:
            try:
                line.request(method, url.path, body, headers)
                answer = line.getresponse()
                return answer.status, answer.read(), answer.headers.get("location", "")
            finally:
                line.close()

        return within(left, ask, partial(_cut, line))


def _cut(line: HTTPConnection) -> None:
    """End what waits for it."""
    with suppress(OSError, AttributeError):
        # None before it is connected, which ends by its timeout.
        line.sock.shutdown(SHUT_RDWR)


def _path(topic: str) -> str:
    domain, _, rest = topic.partition("://")
    tenant, namespace, name = rest.split("/", 2)
    return f"{domain}/{tenant}/{namespace}/{quote(name, safe='')}"
