"""Where a bundle goes: one strategy a file, chosen by name.

A placer gets the candidates that the filters left, at least one, in the order of ties, and returns
all that are equally good; the round draws one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeVar

from trimtab.placement import avg, least_long_term_rate, least_resource_usage
from trimtab.placement.request import Request
from trimtab.settings import Settings
from trimtab.view import Ints

H = TypeVar("H")


class Placer(Protocol[H]):
    """A placement strategy with its history ``H`` (None for one that keeps none)."""

    def __call__(
        self, request: Request, candidates: Ints, history: H, settings: Settings
    ) -> tuple[Ints, H]:
        """The best of ``candidates`` as sorted rows, and the history after this call."""


PLACERS: Final[Mapping[str, Placer[Any]]] = {
    "least-long-term-rate": least_long_term_rate.place,
    "least-resource-usage": least_resource_usage.place,
    "avg": avg.place,
}
