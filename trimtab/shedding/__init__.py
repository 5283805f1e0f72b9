"""Which bundles should leave their brokers: one strategy a file, chosen by name.

A shedder only proposes. It sees the available brokers, must skip bundles that are not ``movable``,
and need not care for cool-downs, budgets or destinations: the round does, once for all strategies.
The order of its wishes is the order in which they are granted.
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
        """What should move, and the history after this round."""


PLANNING: Final = frozenset({"trimtab"})
"""Those whose plan says where the halves of divided bundles go, which no placement then does."""

SHEDDERS: Final[Mapping[str, Shedder[Any]]] = {
    "trimtab": planner.shed,
    "threshold": threshold.shed,
    "overload": overload.shed,
    "uniform": uniform.shed,
    "avg": avg.shed,
    "transfer": transfer.shed,
}
