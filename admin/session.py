"""A command's connection: to the API of its context, or else to one in this process.

Without an API the same paths are answered here, against the Kafka and Redis of the settings, so
that each command is written once.
"""

from __future__ import annotations

import asyncio
import getpass
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx2
import typer

from admin.contexts import InvalidContexts, Target, locate_file, read_contexts
from admin.ending import end, next_doctor
from admin.exit_codes import FAILED, NOT_FOUND, OF_STATUS, UNREACHABLE, USAGE
from streaming.config import InvalidConfig, load_config

if TYPE_CHECKING:
    # Both take long to import, and a context with an API needs none of them.
    from fastapi import FastAPI

    from control.plane import ControlPlane

_PATIENCE_S: Final = 75.0
"""More than a request may wait for its outcome."""


class Refusal(Exception):
    """An answer of the API that is an error."""

    def __init__(self, status: int, reason: str, rule: str, path: str, next: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason, self.rule, self.path = status, reason, rule, path
        self.next = next
        """What the API says to type."""

    @property
    def code(self) -> int:
        """The exit code of a command that ends by it."""
        return OF_STATUS.get(self.status, FAILED)


@dataclass
class Session:
    """Asks the API; all methods raise Refusal."""

    target: Target
    plane: ControlPlane | None
    """The connection of the API in this process; None where the context names another."""
    asked_cluster: str = ""
    """The cluster that the command line or the context names."""
    reason: str = ""
    """Why, for the audit log and the intents."""
    own_id: str = ""
    _headers: dict[str, str] = field(default_factory=dict)

    @cached_property
    def cluster(self) -> str:
        """The cluster concerned: the one named, or the only one there is."""
        if self.asked_cluster:
            return self.asked_cluster
        names = [each["cluster"] for each in self.ask("GET", "/clusters")]
        if len(names) == 1:
            return str(names[0])
        if not names:
            reason = "no round of any cluster is recorded: start a job (trimtab job)"
            raise Refusal(503, reason, "", "")
        raise Refusal(400, f"there are {', '.join(names)}: give --cluster NAME", "", "")

    def get(self, path: str, /, **query: object) -> Any:
        """Ask about the cluster; ``path`` is below its own."""
        return self.ask("GET", self.path(path), query=query)

    def path(self, path: str) -> str:
        """The path of something of the cluster's."""
        below = f"/{quote(path)}" if path else ""
        return f"/clusters/{quote(self.cluster, safe='')}{below}"

    def ask(
        self, method: str, path: str, body: object = None, query: Mapping[str, object] | None = None
    ) -> Any:
        """The document that answers a request; parameters that are empty are left out."""
        given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        answer = asyncio.run(self._send(method, "/trimtab/v1" + path, body, given))
        told = answer.json() if "json" in answer.headers.get("content-type", "") else {}
        if answer.is_success:
            return told
        reason = told.get("reason") or f"{answer.status_code} {answer.text[:200]}".strip()
        raise Refusal(answer.status_code, reason, told.get("rule", ""), path, told.get("next", ""))

    async def _send(
        self, method: str, path: str, body: object, query: Mapping[str, Any]
    ) -> httpx2.Response:
        said = ((b"X-Trimtab-Reason", self.reason), (b"Idempotency-Key", self.own_id))
        # A header is one line of text, in UTF-8.
        headers = {name: " ".join(text.split()).encode() for name, text in said if text}
        async with self._client() as client:
            return await client.request(
                method, path, json=body, params=dict(query), headers=headers
            )

    def _client(self) -> httpx2.AsyncClient:
        if self.plane is None:
            return _remote(self.target)
        transport = httpx2.ASGITransport(self._app)
        return httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=None)

    @cached_property
    def _app(self) -> FastAPI:
        # Imported here: a context with an API needs none of it.
        from api.app import Access, create_app
        from api.context import Context
        from api.tokens import Caller, Role

        assert self.plane is not None
        access = Access(local=Caller(getpass.getuser(), Role.ADMIN))
        return create_app(Context(self.plane), access)


def _remote(target: Target) -> httpx2.AsyncClient:
    headers = {}
    if target.token_file is not None:
        # Read for each request, so that a token rotates under a command that runs on.
        headers["Authorization"] = f"Bearer {target.token_file.read_text('utf-8').strip()}"
    verify: ssl.SSLContext | bool = True
    if target.api.startswith("https:"):
        verify = ssl.create_default_context(cafile=target.ca)
        if target.cert:
            verify.load_cert_chain(target.cert, target.key)
    return httpx2.AsyncClient(
        base_url=target.api, headers=headers, verify=verify, timeout=_PATIENCE_S
    )


@contextmanager
def connect(context: str, config: Path | None, cluster: str = "") -> Iterator[Session]:
    """The session of a context, or of a settings file; what goes wrong within ends the program with
    its cause, the next command, and an exit code that is alike for all commands."""
    session = None
    try:
        target = _target(context, config)
        named = cluster or target.cluster
        if target.api:
            session = Session(target, None, named)
            yield session
            return
        from control.plane import ControlPlane

        with ControlPlane(load_config(target.config)) as plane:
            session = Session(target, plane, named)
            yield session
    except InvalidContexts as error:
        raise end(f"{error}\nNext: trimtab contexts list", USAGE) from None
    except InvalidConfig as error:
        raise end(error.told(), USAGE) from None
    except Refusal as error:
        raise end_refused(error, session) from None
    except (httpx2.TransportError, OSError, ssl.SSLError) as error:
        text = f"{target.api}: {str(error) or type(error).__name__}"
        raise end(f"{text}\nNext: trimtab contexts list", UNREACHABLE) from None


def end_refused(error: Refusal, session: Session | None) -> typer.Exit:
    """Say why the API refused, and what to type next."""
    rule = f" ({error.rule})" if error.rule else ""
    next_line = f"\nNext: {_next(error, session)}" if session else ""
    return end(f"{error.reason}{rule}{next_line}", error.code)


def _next(error: Refusal, session: Session | None) -> str:
    assert session is not None
    if error.code == UNREACHABLE:
        if session.plane is None:
            return error.next or "trimtab contexts list"
        return next_doctor(session.target.config)
    cluster = f" --cluster {session.asked_cluster}" if session.asked_cluster else ""
    if error.rule in _OF_MIGRATIONS:
        return f"trimtab migration status{cluster}"
    if error.rule in _OF_TARGETS:
        return "trimtab migration plan --help"
    listed = next((each for each in _LISTS if f"/{each}/" in error.path), "clusters")
    if error.code == NOT_FOUND:
        return f"trimtab {listed} list{'' if listed == 'clusters' else cluster}"
    if error.code == USAGE:
        return "trimtab --help"
    # The same request may do later: what is the cluster's state, or the plan's?
    return f"trimtab {'plans list' if listed == 'plans' else 'status'}{cluster}"


_OF_MIGRATIONS: Final = ("already-migrating", "migration-state", "unknown-migration")
_OF_TARGETS: Final = (
    "invalid-scope",
    "invalid-target",
    "migration-cycle",
    "target-access",
    "target-policy",
    "unreachable-target",
)
"""Rules of migrations: what to look at next is the others, or how one is asked for."""
_LISTS: Final = ("brokers", "bundles", "namespaces", "plans", "pins", "policies", "rounds")


def _target(context: str, config: Path | None) -> Target:
    if config is not None:
        return Target(config=config)
    found = read_contexts(locate_file()).choose(context)
    return found or Target.model_construct()
