"""The words that each word-valued setting accepts, and those that stand for a number."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

SHEDDING: Final = ("trimtab", "threshold", "overload", "uniform", "avg", "transfer")
PLACEMENT: Final = (
    "least-long-term-rate",
    "least-resource-usage",
    "least-average-usage",
    "least-predicted-usage",
    "round-robin",
    "avg",
)
AUTOMATIC: Final = "automatic"
MODES: Final = (AUTOMATIC, "propose", "approve")
"""Modes of a whole cluster (`trimtab.controls.Mode`); its ``observe`` is ``round.observe_only``."""
AHEAD: Final = "ahead"
AT_LOOKUP: Final = "at-lookup"
ASSIGNMENT: Final = (AHEAD, AT_LOOKUP)
NO_SHADOW: Final = "none"
UNDO: Final = ("off", "propose", "issue")
SPLIT_TRIGGERS: Final = ("long-term", "instantaneous", "planned")
MERGING: Final = ("cold-neighbours",)
SPLIT_ALGORITHMS: Final = (
    "range_equally_divide",
    "topic_count_equally_divide",
    "specified_positions_divide",
    "flow_or_qps_equally_divide",
)
BY_POSITIONS: Final = "specified_positions_divide"
"""Needs an operator's positions, so that it is no default."""

AIMS: Final[Mapping[str, float]] = MappingProxyType({"calm": 0.15, "balanced": 0.05, "tight": 0.02})
"""``planner.target`` in words. ``calm`` is what AvgShedder accepts: ``avg.low_threshold``."""
OTHER: Final = "other"
"""Shown for a number that no word stands for."""


class InWords(NamedTuple):
    """A second name of a setting, by which it is given in words."""

    path: str
    numbers: Mapping[str, float]

    def word_of(self, number: object) -> str:
        """The word that stands for the number."""
        return next((word for word, each in self.numbers.items() if each == number), OTHER)


IN_WORDS: Final[Mapping[str, InWords]] = MappingProxyType(
    {"planner.aim": InWords("planner.target", AIMS)}
)
"""By the second name. Only the number is kept, so of two changes the later one counts."""
