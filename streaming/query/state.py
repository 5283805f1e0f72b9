"""State with a version of its own: a new field must not stop a query over an old checkpoint."""

from __future__ import annotations

from typing import Any, Final

STATE: Final = "schema int, payload binary"
"""Columns of every versioned value; Spark refuses a checkpoint whose columns changed."""


class ForeignCheckpoint(RuntimeError):
    """Another version of the job wrote this state; trying again cannot help."""


def payload_of(stored: Any, schema: int, what: str) -> bytes:
    """The bytes that were stored, empty for none; raises ForeignCheckpoint for another schema."""
    if not stored:
        return b""
    found, payload = stored
    if found != schema:
        raise ForeignCheckpoint(
            f"the checkpoint holds {what} of schema {found}, this job of {schema}"
        )
    return bytes(payload)
