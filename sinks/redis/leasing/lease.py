"""A lease, as the store answers a renewal."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

FOR_THE_NEXT: Final = -1
"""Given instead of a time: leave the rest of the lease to the next process of this name."""

NO_SESSION: Final = "0"
"""Holder of a lease whose process has ended and left the rest of it to the next."""

OLDER_JOB: Final = "{}: a job of an older version is at work; upgrade the job first"
"""Why no lease is granted in the cluster of this name."""


class Renewal(StrEnum):
    """The result of a renewal."""

    HELD = "held"
    """Held, and the store is open."""
    ASSERTED = "asserted"
    """Held, and the store is closed: meanwhile no broker can have been given a bundle."""
    ASSERT = "assert"
    """Not held: the store is closed, and needs this broker's assertion."""
    WAITING = "waiting"
    """Not held: an older process of this name (``detail``, if known) may serve for another ``ms``,
    but cannot renew its lease."""
    SUPERSEDED = "superseded"
    """Not held: a later process uses this broker's name."""
    RELEASED = "released"
    """Given up, or left to the next process of this name."""


class Lease(NamedTuple):
    """The answer to a renewal."""

    renewal: Renewal
    detail: str
    """The session that held the lease until now, "" for none; the closed history (ASSERT)."""
    ms: int
    """The time granted; the time that the older process has left (WAITING)."""
    server_ms: int
    """The server's clock."""
    history: str
    """The history of the server's data."""
    must_have_left_ms: int = 0
    """Time that a lease from another history must have left to continue here without a gap: the
    server that granted it may be alive, and not know yet that it was replaced."""
