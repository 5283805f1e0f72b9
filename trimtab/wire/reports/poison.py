"""Why a load report is rejected."""

from __future__ import annotations

from enum import StrEnum


class Poison(StrEnum):
    """Why a report is rejected; the label of the dead-letter counter."""

    KEY = "bad-key"
    HEADERS = "bad-headers"
    SIZE = "too-large"
    JSON = "bad-json"
    SHAPE = "wrong-type"
    RANGE = "out-of-range"
    """A figure outside the computable range."""
    IMPLAUSIBLE = "implausible"
    """A figure beyond the limits of hardware."""
    BUNDLE = "bad-bundle-name"


class PoisonReport(ValueError):
    """A malformed report, which must not touch any state."""

    def __init__(self, poison: Poison, detail: str, field: str = "") -> None:
        super().__init__(f"{poison.value}: {detail}")
        self.poison = poison
        self.field = field
        """The member whose figure is not believed, if that is the reason."""
