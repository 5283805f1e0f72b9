"""Which neighbours should be merged: one strategy per file, chosen by name.

A strategy only says which ones and why. The owner has nothing to look up: the merged range is
known. The order of the wishes decides which merges come first.
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
    """The merges of a round that sees ``view``."""
    if not (settings.merge.enabled and settings.split.enabled):
        return ()
    wishes = MERGERS[settings.merge.strategy](view, settings)
    return tuple(_merge(view, wish) for wish in wishes)


def _merge(view: View, wish: MergeWish) -> Merge:
    names = view.bundles.names
    lower, upper = names[wish.bundle], names[wish.neighbour]
    return Merge(
        bundle=lower,
        neighbour=upper,
        broker=view.brokers.names[view.bundles.owner[wish.bundle]],
        reason=wish.reason,
        epoch=view.epoch(lower),
        neighbour_epoch=view.epoch(upper),
    )
