"""Who may ask what: bearer tokens, whose hashes are in a file, and their roles.

Without a file everybody is an administrator, which `trimtab api` allows on loopback only. The file
is read again when it changes, so that tokens rotate without a restart::

    [[token]]
    name = "alice"                 # in the audit log, and `by` of her intents
    sha256 = "9f86d081884c7d65..." # of the token; `trimtab api-token` makes both
    role = "operator"              # viewer, operator or admin
    tenants = ["shop"]             # only these; without it all
    expires = 2027-01-01T00:00:00Z # without it never
"""

from __future__ import annotations

import hashlib
import hmac
import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from pydantic import BaseModel, Field, ValidationError, field_validator

from api.rate_limit import RateLimit
from api.refusal import RefusedRequest

LONGEST_NAME: Final = 100
"""Characters of a caller's name, which is in each of their audit lines."""

_CHANGING: Final = frozenset({"POST", "PUT", "DELETE", "PATCH"})


class Role(IntEnum):
    """What a caller may do; each role may do what those below it may."""

    VIEWER = 1
    """See everything."""
    OPERATOR = 2
    """Create namespaces, move and split bundles, set anti-affinity groups."""
    ADMIN = 3
    """Change settings and policies."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; ``tenants`` is None if all are open to them."""

    name: str
    role: Role
    tenants: frozenset[str] | None = None


LOCAL: Final = Caller("local", Role.ADMIN)
"""Everybody, where no tokens are configured."""


class InvalidTokens(ValueError):
    """The file of tokens cannot be used; ``problems`` says all that is wrong with it."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class _Token(BaseModel, extra="forbid", hide_input_in_errors=True):
    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    role: Role
    tenants: frozenset[str] | None = None
    expires: datetime | None = None

    @field_validator("role", mode="before")
    @classmethod
    def _is_named(cls, value: object) -> object:
        named = {role.name.lower(): role for role in Role}
        if not isinstance(value, str) or value not in named:
            raise ValueError(f"must be one of {', '.join(named)}")
        return named[value]

    @field_validator("expires")
    @classmethod
    def _has_a_zone(cls, value: datetime | None) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError("must name its time zone, as in 2027-01-01T00:00:00Z")
        return value


class _File(BaseModel, extra="forbid", hide_input_in_errors=True):
    token: list[_Token] = []


class Tokens:
    """The tokens of a file; any number of threads may use them. Raises InvalidTokens at first; a
    file that becomes invalid later leaves the tokens of before in force."""

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self._path, self._now = path, now
        self._lock = Lock()
        self._stamp = _stamp(path)
        self._known = _read(path)
        self.problem = ""
        """Why the file's newest state is not in force."""

    def caller_of(self, token: str) -> Caller | None:
        """Who has this token; None if nobody, or no longer."""
        given = hashlib.sha256(token.encode()).hexdigest()
        found = None
        for each in self._newest():
            # All are compared, each in constant time: the answer's delay tells nothing.
            if hmac.compare_digest(each.sha256, given):
                found = each
        if found is None or (found.expires is not None and found.expires <= self._now()):
            return None
        return Caller(found.name, found.role, found.tenants)

    def _newest(self) -> list[_Token]:
        with self._lock:
            try:
                stamp = _stamp(self._path)
                if stamp != self._stamp:
                    self._known, self._stamp, self.problem = _read(self._path), stamp, ""
            except (InvalidTokens, OSError) as error:
                self.problem = str(error)
            return self._known


def allow(changes: Role) -> Any:
    """A router's dependency: viewers may ask, callers of the role ``changes`` may change."""

    def check(request: Request) -> Caller:
        caller = _authenticate(request)
        request.state.caller = caller
        needed = changes if request.method in _CHANGING else Role.VIEWER
        if caller.role < needed:
            reason = (
                f"{caller.name} is {caller.role.name.lower()}; this takes {needed.name.lower()}"
            )
            raise RefusedRequest(403, reason)
        if request.method in _CHANGING:
            _bound(request, caller)
        tenant = request.path_params.get("tenant", "")
        if caller.tenants is not None and tenant not in caller.tenants:
            open_to = ", ".join(sorted(caller.tenants)) or "no tenant"
            raise RefusedRequest(403, f"{caller.name} may only ask about {open_to}")
        return caller

    return Depends(check)


def _authenticate(request: Request) -> Caller:
    tokens: Tokens | None = request.app.state.tokens
    if tokens is None:
        origin = request.headers.get("origin", "")
        if request.method in _CHANGING and origin.rpartition("://")[2] not in ("", _host(request)):
            # A page of another site, open in a browser here.
            raise RefusedRequest(403, f"{origin} is another site")
        return LOCAL
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    caller = tokens.caller_of(token.strip()) if scheme.lower() == "bearer" else None
    if caller is None:
        reason = "give a token that is in force: Authorization: Bearer TOKEN"
        raise RefusedRequest(401, reason, headers={"WWW-Authenticate": "Bearer"})
    return caller


def _bound(request: Request, caller: Caller) -> None:
    limit: RateLimit = request.app.state.limit
    if wait_s := limit.wait_s(caller.name):
        reason = f"{caller.name} changes more than {limit.per_minute:g} things a minute"
        raise RefusedRequest(429, reason, headers={"Retry-After": str(math.ceil(wait_s))})


def _host(request: Request) -> str:
    return request.headers.get("host", "")


def _caller(request: Request) -> Caller:
    found: Caller = request.state.caller
    return found


ByCaller = Annotated[Caller, Depends(_caller)]
"""A path's parameter: who asks."""


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidTokens([f"{path}: {error.strerror}"]) from None
    return found.st_mtime_ns, found.st_size


def _read(path: Path) -> list[_Token]:
    try:
        tokens = _File(**tomllib.loads(path.read_text("utf-8"))).token
    except OSError as error:
        raise InvalidTokens([f"{path}: {error.strerror}"]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidTokens([f"{path}: not TOML: {error}"]) from None
    except ValidationError as error:
        raise InvalidTokens([f"{path}: {each}" for each in _problems(error)]) from None
    names = [each.name for each in tokens]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidTokens([f"{path}: {name} is there twice" for name in twice])
    return tokens


def _problems(error: ValidationError) -> Iterator[str]:
    for each in error.errors():
        where = ".".join(map(str, each["loc"]))
        if each["type"] == "extra_forbidden":
            yield f"{where}: no such member"
            continue
        yield f"{where}: {each['msg'].removeprefix('Value error, ')}"
