"""What an operator must read of the pages that Spark prints about a failed query."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 2000
_PLAN: Final = "=== Streaming Query ==="


def cause_of(error: str) -> str:
    """The innermost exception's line; everything else is in Spark's own log."""
    # Frames and Spark's own continuation lines are indented; exceptions stand at the margin.
    said = [line for line in error.partition(_PLAN)[0].splitlines() if line.strip() == line != ""]
    return said[-1][:_LONGEST] if said else error[:_LONGEST]
