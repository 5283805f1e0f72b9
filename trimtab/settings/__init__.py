"""Every setting that decisions read: unit, default, bounds, the cost of either extreme, Pulsar key.

A setting is named by its path (``avg.low_threshold``) or by Pulsar's key, whose unit is converted.
Some numbers can be given in words, by a second name (``planner.aim`` for ``planner.target``).
All problems of a change are reported at once.
"""

from __future__ import annotations

from trimtab.settings.brokers import DoubtSettings, FlappingSettings
from trimtab.settings.bundles import SplitSettings
from trimtab.settings.plans import PlanSettings
from trimtab.settings.review import ShadowSettings
from trimtab.settings.rounds import RoundSettings, WeightSettings
from trimtab.settings.shedding import AvgSettings, UnloadSettings
from trimtab.settings.spellings import Value
from trimtab.settings.whole import Settings, catalogue, contradictions, unread_spellings
from trimtab.settings.words import (
    IN_WORDS,
    MERGING,
    NO_SHADOW,
    PLACEMENT,
    SHEDDING,
    SPLIT_ALGORITHMS,
    SPLIT_TRIGGERS,
)

__all__ = [
    "IN_WORDS",
    "MERGING",
    "NO_SHADOW",
    "PLACEMENT",
    "SHEDDING",
    "SPLIT_ALGORITHMS",
    "SPLIT_TRIGGERS",
    "AvgSettings",
    "DoubtSettings",
    "FlappingSettings",
    "PlanSettings",
    "RoundSettings",
    "Settings",
    "ShadowSettings",
    "SplitSettings",
    "UnloadSettings",
    "Value",
    "WeightSettings",
    "catalogue",
    "contradictions",
    "unread_spellings",
]
