"""Which neighbours should be merged: one strategy per file, chosen by name.

A strategy only says which ones and why. The owner has nothing to look up: the merged range is
known. The order of the wishes decides which merges come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from trimtab.merging import cold_neighbours
from trimtab.plan import MergeWish
from trimtab.settings import Settings
from trimtab.view import View

Merger = Callable[[View, Settings], Sequence[MergeWish]]

MERGERS: Final[Mapping[str, Merger]] = {"cold-neighbours": cold_neighbours.merge}
