"""What became of a bundle, or of a broker, in a round."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Of a bundle, and after a space of a broker."""

    MOVED = "moved"
    SPLIT = "split"
    MERGED = "merged"
    REPAIRED = "repaired"
    REFUSED = "refused"
    STAYED = "stayed"
    """Nobody wanted it moved."""
    UNKNOWN = "unknown"

    GIVES = "gives"
    """Bundles, and may get others."""
    GETS = "gets"
    LEFT = "left-as-it-is"
    AWAY = "away"
