"""State with its own version: a new field must not stop a query on an old checkpoint."""

from __future__ import annotations

from typing import Any, Final

STATE: Final = "schema int, payload binary"
"""Columns of every versioned value; Spark refuses a checkpoint whose columns changed."""


class ForeignCheckpoint(RuntimeError):
    """Another version of the job wrote this state; a retry cannot help."""


def payload_of(stored: Any, schema: int, what: str) -> bytes:
    """Return the stored bytes, empty for none; raises ForeignCheckpoint for another schema."""
    if not stored:
        return b""
    found, payload = stored
    if found != schema:
        raise ForeignCheckpoint(
            f"the checkpoint holds {what} of schema {found}, this job of {schema}"
        )
    return bytes(payload)
