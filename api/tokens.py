"""The tokens of callers, whose hashes are in a file, and what each role may do.

The file is read again when it changes, so that tokens rotate without a restart::

    [[token]]
    name = "alice"                 # in the audit log, and `by` of her intents
    sha256 = "9f86d081884c7d65..." # of the token; `trimtab tokens create` makes both
    role = "operator"              # viewer, operator or admin
    tenants = ["shop"]             # only these; without it all
    expires = 2027-01-01T00:00:00Z # without it never
"""

from __future__ import annotations

import hashlib
import hmac
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from threading import Lock
from typing import Final

from pydantic import BaseModel, Field, ValidationError, field_validator


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
    """The caller of a request; ``tenants`` is None if the caller may use all of them."""

    name: str
    role: Role
    tenants: frozenset[str] | None = None


LONGEST_NAME: Final = 100
"""Characters of a caller's name, which is in each of their audit lines."""

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
    """The tokens of a file; any number of threads may use them. Making it raises InvalidTokens if
    the file is wrong. If the file becomes wrong later, the last good tokens stay in force."""

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self._path, self._now = path, now
        self._lock = Lock()
        self._stamp = _stamp(path)
        self._known = _read(path)
        self.problem = ""
        """Why the file as it is now is not in force; empty if it is."""

    def caller_of(self, token: str) -> Caller | None:
        """Who has this token; None if it is unknown or no longer valid."""
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
