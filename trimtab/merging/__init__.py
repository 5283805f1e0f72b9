"""Which neighbours should be merged: one strategy a file, chosen by name.

A strategy only says which and why. The owner has nothing to find out: what two neighbours become is
known. The order of what it says decides which are done first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from trimtab.merging import cold_neighbours
from trimtab.plan import Merge, MergeWish
from trimtab.settings import Settings
from trimtab.view import View

Merger = Callable[[View, Settings], Sequence[MergeWish]]

MERGERS: Final[Mapping[str, Merger]] = {"cold-neighbours": cold_neighbours.merge}


def plan_merges(view: View, settings: Settings) -> tuple[Merge, ...]:
    """What is to be merged in a round that sees ``view``."""
    if not (settings.merge.enabled and settings.split.enabled):
        return ()
    joins = MERGERS[settings.merge.strategy](view, settings)
    return tuple(_merge(view, join) for join in joins)


def _merge(view: View, join: MergeWish) -> Merge:
    names = view.bundles.names
    lower, upper = names[join.bundle], names[join.neighbour]
    return Merge(
        bundle=lower,
        neighbour=upper,
        broker=view.brokers.names[view.bundles.owner[join.bundle]],
        reason=join.reason,
        epoch=view.epoch(lower),
        neighbour_epoch=view.epoch(upper),
    )
