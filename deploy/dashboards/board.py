"""What a board is: rows of panels, each a question and the queries that answer it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Unit(StrEnum):
    """Units by Grafana's names."""

    BYTES = "bytes"
    BYTES_PER_SECOND = "Bps"
    COUNT = "short"
    PER_SECOND = "ops"
    RATIO = "percentunit"
    SECONDS = "s"


class Kind(StrEnum):
    """How a panel is drawn."""

    BUCKETS = "buckets"
    """A histogram's buckets over time."""
    DISTRIBUTION = "distribution"
    """How many series are at which value, over time: readable with ten thousand brokers."""
    GRID = "grid"
    """A row for each series, coloured by its value."""
    LINES = "lines"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, and how its series are called; ``$cluster`` is the board's choice."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """``asks`` is the question that it answers, shown as its description."""

    title: str
    asks: str
    queries: tuple[Query, ...]
    unit: Unit
    kind: Kind = Kind.LINES
    width: int = 8
    """Columns, of 24."""


@dataclass(frozen=True, slots=True)
class Board:
    """``uid`` is its address in Grafana, and the name of its file."""

    uid: str
    title: str
    asks: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...] = field(default=())
    """Each row with its title."""

    @property
    def queries(self) -> tuple[Query, ...]:
        """All of its queries."""
        return tuple(query for _, row in self.rows for panel in row for query in panel.queries)
