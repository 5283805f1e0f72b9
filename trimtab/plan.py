"""Wishes, which strategies propose, and the plan that a round makes from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.reasons import Reason, Rule

MOST_AT_ONCE: Final = 10_000
"""The most repairs, splits and merges of one round, and moves unless settings allow more: a batch
holds the rounds of all clusters, each waits for the others, and this many take about two seconds.
"""


@dataclass(frozen=True, slots=True)
class ShedWish:
    """A strategy's wish: take bundle row ``bundle`` off broker row ``source`` of the view.

    ``destination`` is a broker row where the strategy also places (AvgShedder), else None.
    """

    bundle: int
    source: int
    reason: str
    """A `Reason`, or a word that the strategy brings."""
    destination: int | None = None
    or_stay: bool = False
    """Whether the bundle may stay if placement finds no better broker."""


@dataclass(frozen=True, slots=True)
class SplitWish:
    """A trigger's wish: split bundle row ``bundle`` of the view."""

    bundle: int
    reason: Reason
    hindered: Rule | None = None
    """Why it cannot be split: the round records this and leaves the bundle whole."""


@dataclass(frozen=True, slots=True)
class MergeWish:
    """A merger's wish: merge bundle row ``bundle`` with ``neighbour``, the row just above."""

    bundle: int
    neighbour: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Move:
    """A move the round decided; the store must still hold the record's ``epoch``."""

    bundle: str
    source: str
    destination: str
    reason: str
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Split:
    """A split the round decided; the owner finds the split point, unless ``positions`` say it."""

    bundle: str
    broker: str
    reason: Reason
    epoch: Epoch
    algorithm: str = ""
    """Instead of the setting's, if it is not empty."""
    positions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge the round decided, of two neighbours on ``broker``; both epochs must still hold."""

    bundle: str
    neighbour: str
    """The bundle just above."""
    broker: str
    reason: Reason
    epoch: Epoch
    neighbour_epoch: Epoch

    @property
    def parts(self) -> tuple[str, str]:
        """Both bundles, ascending."""
        return self.bundle, self.neighbour


def parts_of(merges: Iterable[Merge]) -> set[str]:
    """All bundles of these merges."""
    return {part for merge in merges for part in merge.parts}


@dataclass(frozen=True, slots=True)
class Repair:
    """An ``event`` for a record that cannot stay so; ASSIGN gives the bundle to ``broker``."""

    bundle: str
    event: Event
    broker: str | None
    reason: Reason
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Refusal:
    """A wish that the round did not grant, and the rule that decided."""

    bundle: str
    source: str
    rule: Rule
    destination: str | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """A broker's usage (fraction) after the whole plan has landed, predicted and realised."""

    before: float
    """Predicted without the plan, with all earlier moves landed."""
    predicted: float
    realised: float
    """Usage as reported, less the load that later moves brought."""


@dataclass(frozen=True, slots=True)
class LandedMove:
    """A move that landed, and its result on both brokers."""

    bundle: str
    source: str
    destination: str
    round: int
    """The round that decided it."""
    seconds: float
    """From the decision until it was settled."""
    left: Forecast
    """The forecast for the source."""
    joined: Forecast
    """The forecast for the destination."""


@dataclass(frozen=True, slots=True)
class Review:
    """The results of earlier plans."""

    settled: tuple[LandedMove, ...] = ()
    closed: dict[str, int] = field(default_factory=dict)
    """Counts of earlier moves that are no longer waited for, by `trimtab.review.ledger.Outcome`."""
    tripped: dict[str, str] = field(default_factory=dict)
    """Why the breaker tripped in this round: cause to finding."""
    undo: tuple[Move, ...] = ()
    """The moves that would undo the harmful plans, last ones first."""
    frozen: bool = False
    """True while no strategy may be asked."""
    awaiting: bool = False
    """True while a plan must wait until the one before it is judged."""


@dataclass(frozen=True, slots=True)
class Held:
    """What strategies want and is not carried out: it waits for a person or for a window."""

    moves: tuple[Move, ...] = ()
    splits: tuple[Split, ...] = ()
    merges: tuple[Merge, ...] = ()

    @property
    def changes(self) -> tuple[Move | Split | Merge, ...]:
        return (*self.moves, *self.splits, *self.merges)

    def __bool__(self) -> bool:
        return bool(self.changes)


@dataclass(frozen=True, slots=True)
class Plan:
    """The output of a round. ``skipped`` says why no shedder was asked, or that none proposed."""

    moves: tuple[Move, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    splits: tuple[Split, ...] = ()
    merges: tuple[Merge, ...] = ()
    repairs: tuple[Repair, ...] = ()
    postponed: int = 0
    """How many repairs are left to the next batch, because this one is full."""
    skipped: Rule | None = None
    summary: dict[str, float] = field(default_factory=dict)
    """The key figures: ``brokers``, ``bundles``, and as fractions ``usage_min``, ``usage_mean``,
    ``usage_max``, ``usage_range``."""
    review: Review = Review()
    held: Held = Held()

    @property
    def changes(self) -> int:
        """How many changes of records the plan makes."""
        return len(self.moves) + len(self.splits) + len(self.merges) + len(self.repairs)

    @property
    def as_held(self) -> Held:
        """Its moves, splits and merges, if none of them is carried out."""
        return Held(self.moves, self.splits, self.merges)
