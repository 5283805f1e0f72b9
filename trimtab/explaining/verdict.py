"""The result of a round for a bundle or a broker."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The verdict on a bundle and, after the blank line, on a broker."""

    MOVED = "moved"
    SPLIT = "split"
    MERGED = "merged"
    REPAIRED = "repaired"
    REFUSED = "refused"
    STAYED = "stayed"
    """No wish to move it was made."""
    UNKNOWN = "unknown"

    GIVES = "gives"
    """It gives bundles, and may also get some."""
    GETS = "gets"
    LEFT = "left-as-it-is"
    AWAY = "away"
