"""Which bundles should be split: one trigger per file, chosen by name.

A trigger only says which ones and why. The owner of a bundle finds the split point, with
`trimtab.splitting.DIVIDERS`. The order of the rows decides which bundles get the last free places
of a namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from trimtab.plan import SplitWish
from trimtab.settings import Settings
from trimtab.splitting.triggers import instantaneous, long_term, planned
from trimtab.view import View

H = TypeVar("H")


class Trigger(Protocol[H]):
    """A split trigger with its history ``H`` (None for one that keeps none)."""

    def __call__(self, view: View, history: H, settings: Settings) -> tuple[Sequence[SplitWish], H]:
        """The bundles to split, in order of row, and the history after this round."""


TRIGGERS: Final[Mapping[str, Trigger[Any]]] = {
    "long-term": long_term.split,
    "instantaneous": instantaneous.split,
    "planned": planned.split,
}
