"""Writes a line for each request that changes something or is not let in: who, what, why, outcome.

The intents themselves are on trimtab.control with their writer, and the outcome of each is on
trimtab.rounds, both by the id that stands in the line.
"""

from __future__ import annotations

import time
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec
import structlog
from fastapi import Request, Response

from api.tokens import Caller

log = structlog.get_logger()

REASON_HEADER: Final = "x-trimtab-reason"
"""Why the caller asks, in their words."""
INTENT_HEADER: Final = "x-trimtab-intent"
"""The id of the intent that a request became."""

_LONGEST: Final = 500
"""Characters of a member: a caller may send any text."""


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One request; ``at`` in epoch ms."""

    at: int
    by: str
    address: str
    method: str
    path: str
    reason: str
    status: int
    intent: str


def reason_of(request: Request) -> str:
    """The caller's reason: UTF-8, as shells and programs send it, else latin-1, HTTP's own."""
    raw = request.headers.get(REASON_HEADER, "").encode("latin-1")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


class AuditLog:
    """Appends to a file, which may be moved away at any time; without one it writes nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, Lock()

    def note(self, request: Request, response: Response) -> None:
        """Write the line of a request that was answered; to the process's log where it cannot."""
        refused = response.status_code in (401, 403, 429)
        if self._path is None or (request.method in ("GET", "HEAD") and not refused):
            return
        caller: Caller | None = getattr(request.state, "caller", None)
        query = f"?{request.url.query}" if request.url.query else ""
        line = AuditLine(
            at=time.time_ns() // 1_000_000,
            by=caller.name if caller else "",
            address=request.client.host if request.client else "",
            method=request.method,
            path=(request.url.path + query)[:_LONGEST],
            reason=reason_of(request)[:_LONGEST],
            status=response.status_code,
            intent=response.headers.get(INTENT_HEADER, ""),
        )
        try:
            with self._lock, self._path.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")
        except OSError as error:
            # What was asked for is done: the answer must say so.
            log.error("a line of the audit log is lost", cause=str(error), line=line)
