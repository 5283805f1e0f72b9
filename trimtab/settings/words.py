"""The words that each word-valued setting accepts."""

from __future__ import annotations

from typing import Final

SHEDDING: Final = ("trimtab", "threshold", "overload", "uniform", "avg", "transfer")
PLACEMENT: Final = (
    "least-long-term-rate",
    "least-resource-usage",
    "least-average-usage",
    "least-predicted-usage",
    "round-robin",
    "avg",
)
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
