"""Which bundles should leave their brokers: one strategy per file, chosen by name.

A shedder only proposes. It sees the available brokers and must skip bundles that are not
``movable``. The round handles cool-downs, budgets and destinations for all strategies. Wishes are
granted in the shedder's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from trimtab import planner
from trimtab.plan import ShedWish
from trimtab.settings import Settings
from trimtab.shedding import avg, overload, threshold, transfer, uniform
from trimtab.view import View

H = TypeVar("H")


class Shedder(Protocol[H]):
    """A shedding strategy with its history ``H`` (None for one that keeps none)."""

    def __call__(self, view: View, history: H, settings: Settings) -> tuple[Sequence[ShedWish], H]:
        """The bundles to move, and the history after this round."""


PLANNING: Final = frozenset({"trimtab"})
"""Strategies whose plan, instead of a placement, says where the children of split bundles go."""

SHEDDERS: Final[Mapping[str, Shedder[Any]]] = {
    "trimtab": planner.shed,
    "threshold": threshold.shed,
    "overload": overload.shed,
    "uniform": uniform.shed,
    "avg": avg.shed,
    "transfer": transfer.shed,
}
