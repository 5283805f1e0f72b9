"""Which bundles should leave their brokers: one strategy per file, chosen by name.

A shedder only proposes. It sees the available brokers and must skip bundles that are not
``movable``. The round handles cool-downs, budgets and destinations for all strategies. Wishes are
granted in the shedder's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from trimtab import planner
from trimtab.settings import SHEDDING, Settings
from trimtab.shedding import avg, overload, threshold, transfer, uniform
from trimtab.shedding.strategy import Shedder, Strategy

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "trimtab": Strategy(
        planner.shed,
        learning=planner.is_learning,
        waiting=planner.is_waiting,
        places_children=True,
    ),
    "threshold": Strategy(threshold.shed),
    "overload": Strategy(overload.shed),
    "uniform": Strategy(uniform.shed),
    "avg": Strategy(avg.shed, hits=avg.count_hits),
    "transfer": Strategy(transfer.shed, hits=transfer.count_hits),
}

SHEDDERS: Final[Mapping[str, Shedder[Any]]] = {
    name: strategy.shed for name, strategy in STRATEGIES.items()
}


def with_own(settings: Settings, strategies: Mapping[str, Strategy]) -> Settings:
    """The settings with those that ``strategies`` bring."""
    added = {name: each for name, each in strategies.items() if name not in SHEDDING}
    own = tuple((name, each.settings and each.settings()) for name, each in added.items())
    return replace(settings, own=own)


DEFAULTS: Final = with_own(Settings(), STRATEGIES)
"""The defaults of every setting, also of those that strategies bring."""
