"""State with its own version: a new field must not stop a query on an old checkpoint."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

STATE: Final = "schema int, payload binary"
"""Columns of every versioned value; Spark refuses a checkpoint whose columns changed."""


class ForeignCheckpoint(RuntimeError):
    """Another version of the job wrote this state; a retry cannot help."""


def payload_of(stored: Any, read: Collection[int], what: str) -> bytes:
    """The stored bytes, empty for none; raises ForeignCheckpoint for a schema that is not read."""
    if not stored:
        return b""
    found, payload = stored
    if found not in read:
        raise ForeignCheckpoint(
            f"the checkpoint holds {what} of schema {found}, this job of {max(read)}"
        )
    return bytes(payload)
