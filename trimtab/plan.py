"""What strategies propose and a round disposes."""

from __future__ import annotations

from dataclasses import dataclass, field

from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.reasons import Reason, Rule


@dataclass(frozen=True, slots=True)
class Shed:
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
class Divide:
    """A trigger's wish: divide bundle row ``bundle`` of the view."""

    bundle: int
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
class Plan:
    """One round's output. ``skipped`` says why no strategy was asked, or that none proposed."""

    moves: tuple[Move, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    splits: tuple[Split, ...] = ()
    repairs: tuple[Repair, ...] = ()
    skipped: Rule | None = None
    summary: dict[str, float] = field(default_factory=dict)
    """What an operator asks first: ``brokers``, ``bundles``, and as fractions ``usage_min``,
    ``usage_mean``, ``usage_max``, ``usage_range``."""
