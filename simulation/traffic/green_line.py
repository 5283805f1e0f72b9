"""How green is asked: over HTTP or TLS, each of its servers in turn, and in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR
from ssl import SSLCertVerificationError
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from agent.migration.port import CannotMigrate
from sinks.deadline import within
from sinks.errors import Misconfigured
from sinks.green_access import NOT_TRUSTED, WHO_ASKS, GreenAccess
from trimtab.migration.migration import Target

ANSWER_S: Final = 3.0
"""What is asked for one topic must end well before the lease does: a third of its 10 s."""
THERE: Final = 409
"""Pulsar's answer for what exists already: here that is success."""
_MOST_HOPS: Final = 3


class Answer(NamedTuple):
    host: str
    """The one that answered; not always the one that was asked."""
    status: int
    body: bytes


class Refused(CannotMigrate):
    """Green has understood what it is asked, and does not do it."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


class _Silent(Exception):
    """A server that does not answer, by its URL, and why."""


class GreenLine:
    """One other cluster, for one thread. What is asked between two calls of ``begin`` ends after
    ANSWER_S, however many questions that are: the broker's lease is not kept meanwhile."""

    def __init__(self, target: Target, access: GreenAccess, clock: Callable[[], float]) -> None:
        self._access, self._clock = access, clock
        scheme, _, hosts = target.web.partition("://")
        self._hosts = [f"{scheme}://{host}" for host in hosts.rstrip("/").split(",")]
        self._until = 0.0

    def begin(self) -> None:
        """What is asked from now on is for another topic."""
        self._until = self._clock() + ANSWER_S

    def ask(self, method: str, path: str, body: bytes = b"", first: str = "") -> Answer:
        """Ask ``first``, and then each host in turn until one answers; raises CannotMigrate."""
        why = ""
        for host in [first, *self._hosts] if first else tuple(self._hosts):
            try:
                return self._asked(method, f"{host}/admin/v2/{path}", body)
            except Misconfigured as error:
                raise CannotMigrate(str(error)) from error
            except _Silent as error:
                why = str(error)
                if host == self._hosts[0]:
                    # The next question begins with another one.
                    self._hosts = [*self._hosts[1:], host]
        raise CannotMigrate(f"green does not answer: {why}")

    def _asked(self, method: str, url: str, body: bytes) -> Answer:
        """The answer, after what redirects there are; raises _Silent and Misconfigured too."""
        headers = {"content-type": "application/json", **self._access.headers()}
        is_safe = url.startswith("https:")
        for _ in range(_MOST_HOPS):
            parts = urlsplit(url)
            if is_safe and parts.scheme != "https":
                raise CannotMigrate(f"{method} {parts.path}: green leads from TLS to {url}")
            try:
                status, text, location = self._once(method, parts, body, headers)
            except (OSError, HTTPException) as error:
                # Not always the one that was asked: that may have led here.
                why = f"{parts.scheme}://{parts.netloc}: {error}"
                untrusted = isinstance(error, SSLCertVerificationError)
                raise _Silent(f"{why}; {NOT_TRUSTED}" if untrusted else why) from error
            if status != 307:
                break
            url = location
        if status in WHO_ASKS:
            raise CannotMigrate(f"{method} {parts.path}: {status}: {self._access.say_refused()}")
        if status >= 300 and status != THERE:
            says = f"{method} {parts.path}: {status} {text[:200].decode(errors='replace')}"
            raise Refused(says, status) if status < 500 else CannotMigrate(says)
        return Answer(f"{parts.scheme}://{parts.netloc}", status, text)

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
        path = f"{url.path}?{url.query}" if url.query else url.path

        def ask() -> tuple[int, bytes, str]:
            try:
                line.request(method, path, body, headers)
                answer = line.getresponse()
                return answer.status, answer.read(), answer.headers.get("location", "")
            finally:
                line.close()

        return within(left, ask, partial(_cut, line))


def path_of(topic: str) -> str:
    """A topic's admin path."""
    domain, _, rest = topic.partition("://")
    tenant, namespace, name = rest.split("/", 2)
    return f"{domain}/{tenant}/{namespace}/{quote(name, safe='')}"


def _cut(line: HTTPConnection) -> None:
    """End what waits for it."""
    with suppress(OSError, AttributeError):
        # None before it is connected, which ends by its timeout.
        line.sock.shutdown(SHUT_RDWR)
