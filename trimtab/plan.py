"""What strategies propose and a round disposes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.reasons import Reason, Rule

MOST_AT_ONCE: Final = 10_000
"""Repairs, divisions and merges of one round, and moves unless settings allow more: a batch holds
every cluster's rounds, all wait while one is carried out, and so many take about two seconds."""


@dataclass(frozen=True, slots=True)
class ShedWish:
    """A strategy's wish: take bundle row ``bundle`` off broker row ``source`` of the view.

    ``destination`` is a broker row where the strategy also places (AvgShedder), else None.
    """

    bundle: int
    source: int
    reason: Reason
    destination: int | None = None
    or_stay: bool = False
    """Whether it may stay, if placement finds no better broker."""


@dataclass(frozen=True, slots=True)
class SplitWish:
    """A trigger's wish: divide bundle row ``bundle`` of the view."""

    bundle: int
    reason: Reason
    hindered: Rule | None = None
    """Why it cannot be: the round tells it, and leaves the bundle whole."""


@dataclass(frozen=True, slots=True)
class MergeWish:
    """A merger's wish: make one of bundle row ``bundle`` and ``neighbour``, the row just above."""

    bundle: int
    neighbour: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Move:
    """A move the round stands behind; the store must still hold the record's ``epoch``."""

    bundle: str
    source: str
    destination: str
    reason: Reason
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Split:
    """A division the round stands behind; the owner finds the place."""

    bundle: str
    broker: str
    reason: Reason
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge the round stands behind, of two neighbours of ``broker``; both epochs must hold."""

    bundle: str
    neighbour: str
    """The one just above."""
    broker: str
    reason: Reason
    epoch: Epoch
    neighbour_epoch: Epoch

    @property
    def parts(self) -> tuple[str, str]:
        """Both bundles, ascending."""
        return self.bundle, self.neighbour


def parts_of(merges: Iterable[Merge]) -> set[str]:
    """The bundles that are to be merged."""
    return {part for merge in merges for part in merge.parts}


@dataclass(frozen=True, slots=True)
class Repair:
    """``event`` on a record that cannot stay as it is; ASSIGN gives the bundle to ``broker``."""

    bundle: str
    event: Event
    broker: str | None
    reason: Reason
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Refusal:
    """A wish the round did not grant, and the rule that bound."""

    bundle: str
    source: str
    rule: Rule
    destination: str | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of a broker's usage (fraction), for the time when the whole plan had landed."""

    before: float
    """Predicted without the plan, everything earlier landed."""
    predicted: float
    realised: float
    """As reported, less what later moves brought."""


@dataclass(frozen=True, slots=True)
class LandedMove:
    """A move that landed, and what came of it on both sides."""

    bundle: str
    source: str
    destination: str
    round: int
    """That decided it."""
    seconds: float
    """From the decision until it was settled."""
    left: Forecast
    """Of the source."""
    joined: Forecast
    """Of the destination."""


@dataclass(frozen=True, slots=True)
class Review:
    """What became of earlier plans."""

    settled: tuple[LandedMove, ...] = ()
    closed: dict[str, int] = field(default_factory=dict)
    """Earlier moves that are waited for no longer, by `trimtab.review.ledger.Outcome`."""
    tripped: dict[str, str] = field(default_factory=dict)
    """Why the breaker tripped in this round: cause to what was found."""
    undo: tuple[Move, ...] = ()
    """The moves that would take back the plans that did harm, last ones first."""
    frozen: bool = False
    """Whether no strategy may be asked."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One round's output. ``skipped`` says why no strategy was asked, or that none proposed."""

    moves: tuple[Move, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    splits: tuple[Split, ...] = ()
    merges: tuple[Merge, ...] = ()
    repairs: tuple[Repair, ...] = ()
    postponed: int = 0
    """What must be mended and is left to the next batch, for there is enough in this one."""
    skipped: Rule | None = None
    summary: dict[str, float] = field(default_factory=dict)
    """What an operator asks first: ``brokers``, ``bundles``, and as fractions ``usage_min``,
    ``usage_mean``, ``usage_max``, ``usage_range``."""
    review: Review = Review()

    @property
    def changes(self) -> int:
        """How much of the records it changes."""
        return len(self.moves) + len(self.splits) + len(self.merges) + len(self.repairs)
