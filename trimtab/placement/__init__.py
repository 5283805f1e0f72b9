"""Where a bundle goes: one strategy per file, chosen by name.

A placer is created for one plan. It gets the candidates that passed the filters, at least one, in
tie order, and returns all that are equally good; the round draws one of them at random. A new one
also needs its line in `PLACERS` and its word in `trimtab.settings.words`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol, TypeVar

from trimtab.arrays import Floats, Ints
from trimtab.filters.request import Projection
from trimtab.placement.avg import Avg
from trimtab.placement.least_average_usage import LeastAverageUsage
from trimtab.placement.least_long_term_rate import LeastLongTermRate
from trimtab.placement.least_predicted_usage import LeastPredictedUsage
from trimtab.placement.least_resource_usage import LeastResourceUsage
from trimtab.placement.round_robin import RoundRobin
from trimtab.settings import Settings

H_co = TypeVar("H_co", covariant=True)


class Placer(Protocol[H_co]):
    """A placement strategy during one plan, with its history (None if it keeps none)."""

    counts: ClassVar[bool]
    """Whether it counts what it has placed. The others would give all bundles of a lost broker to
    their best broker; the round makes them give every broker equally many."""
    compared: ClassVar[str]
    """What set its choice apart, as the end of a sentence for `trimtab why`; empty where its
    strategy names destinations itself."""

    def __init__(self, projection: Projection, history: H_co, settings: Settings) -> None: ...

    def best(self, bundle: str, candidates: Ints) -> Ints:
        """The best of ``candidates`` (broker rows), in their order."""

    def loads(self) -> Floats:
        """(n,) its measure of each broker, for lookups between two rounds: they choose the least,
        and count an equal share of the sum for each bundle that they have placed. All 0: they give
        every broker equally many."""

    def remembered(self) -> H_co:
        """The history after every call of `best` so far."""


PLACERS: Final[Mapping[str, type[Placer[Any]]]] = {
    "least-long-term-rate": LeastLongTermRate,
    "least-resource-usage": LeastResourceUsage,
    "least-average-usage": LeastAverageUsage,
    "least-predicted-usage": LeastPredictedUsage,
    "round-robin": RoundRobin,
    "avg": Avg,
}
