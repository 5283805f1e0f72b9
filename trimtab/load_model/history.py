"""The planner's memory from one round to the next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Floats, Ints, same_columns
from trimtab.load_model.estimating.estimates import Estimates, Keys
from trimtab.load_model.estimating.leap_record import LeapRecord
from trimtab.load_model.falls import Highs
from trimtab.load_model.fleet_change import FleetChange
from trimtab.load_model.resources.costs import Costs
from trimtab.load_model.resources.needs import Needs

SETTLED_MS: Final = 300_000
"""Time after bundles came or went from which reports are believed. Shorter: a report that is older
than a move hides it; longer: wrong counters are believed after each move."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A bundle's share of the fleet's traffic, and the time (ms) of that figure."""

    size: float
    at_ms: int


class Foreseen(NamedTuple):
    """A broker's prediction from the last view; see `trimtab.load_model.fleet.Fleet`."""

    usage: float
    gain: float
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Hosted:
    """(n,) columns of what is known of brokers with the bundles that they have
    (`trimtab.load_model.reported_use`)."""

    names: tuple[str, ...] = ()
    checksum: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    """The sum of the bundles' keys."""
    seen_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The newest report."""
    newest: Floats = field(default_factory=lambda: np.zeros(0))
    """The usage in that report."""
    least: Floats = field(default_factory=lambda: np.zeros(0))
    """The least usage that was reported with these bundles; 0 until reports tell of them."""
    changed_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """When a bundle last came or went; 0 if that was not seen."""
    stirs: Floats = field(default_factory=lambda: np.zeros(0))
    """Variance of the usage from one report to the next."""

    def __eq__(self, other: object) -> bool:
        return same_columns(self, other)


@dataclass(frozen=True, slots=True)
class PlannerHistory:
    """The planner's memory; replaced each round, never changed.

    It is stored in the order of its fields. Those of recent plans (`trimtab.load_model.wariness`):
    ``unrest``, ``planned_ms``, ``counted``, ``swing`` and ``cut``; those of each broker's usage
    (`trimtab.load_model.traffic_cost`): ``unexplained``, ``since_ms``, ``strays``, ``ahead``,
    ``corrections`` and ``beyond``.
    """

    estimates: Estimates = field(default_factory=Estimates)
    costs: Costs = field(default_factory=Costs)
    unexplained: dict[str, float] = field(default_factory=dict)
    """Broker to the usage (fraction) that its traffic does not explain: what its average traffic
    does not explain of its average usage, and what it is ``ahead`` of these averages."""
    since_ms: dict[str, int] = field(default_factory=dict)
    """Broker to the first report from which that was learned."""
    strays: dict[str, float] = field(default_factory=dict)
    """Broker to the standard deviation of what a single report does not explain around that."""
    unrest: float = 0.0
    """Number of recent plans at ``planned_ms``; each counts half as much after half a day."""
    planned_ms: int = 0
    """When the last of them was made."""
    counted: float = 0.0
    """What the last of them counted."""
    swing: int = 0
    """Moves of the last of them."""
    sent: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Bundle to the broker that a plan sent it to, and when (ms); kept for a while."""
    foreseen: dict[str, Foreseen] = field(default_factory=dict)
    shifted: dict[str, float] = field(default_factory=dict)
    """Broker to the usage that the plan made on ``foreseen`` adds to it: what is placed before the
    next prediction must not take a broker that the plan fills for an empty one."""
    change: FleetChange = field(default_factory=FleetChange)
    filling_ms: int = 0
    """The time of the last view, if many of its brokers had just come; else 0."""
    ahead: dict[str, float] = field(default_factory=dict)
    """Broker to the part of ``unexplained`` that a finished plan showed and the averages do not
    yet; it fades as they follow."""
    corrections: dict[str, float] = field(default_factory=dict)
    """Broker to its own cost as a multiple of its kind's, learned from moves; 1 where absent."""
    giants: dict[str, Weighed] = field(default_factory=dict)
    """Bundles that no plan made room for in the last round, with the time when each was first found
    (`trimtab.planner.giants`)."""
    looked_ms: int = 0
    """When giants were last searched for."""
    needs: Needs = field(default_factory=Needs)
    """What bundles take of each resource; empty while one resource rules all brokers."""
    divided: dict[str, Weighed] = field(default_factory=dict)
    """Giants whose split was requested (`trimtab.splitting.triggers.planned`)."""
    leaps: LeapRecord = field(default_factory=LeapRecord)
    """Whether leaps of bundles have lasted in this fleet."""
    highs: Highs = field(default_factory=Highs)
    """What namespaces carried of late at their highest."""
    cut: bool = False
    """Whether the last plan was unfinished: cut short by its effort or by what may move now, or
    made while several bundles leapt together, whose new levels were hardly known, or one that only
    relieved a broker near overload."""
    misses: int = 0
    """Plans of late whose outcome missed the forecast; a hit halves the number."""
    hosted: Hosted = field(default_factory=Hosted)
    """What brokers reported with the bundles that they have."""
    beyond: dict[str, float] = field(default_factory=dict)
    """Broker to the bytes/s of its reports that are not its bundles', on average; below 0 where it
    reports less than they have."""

    @property
    def known_since_ms(self) -> int:
        """The first report of the broker that is known for longest."""
        return min(self.since_ms.values(), default=0)

    def without_usage(self) -> PlannerHistory:
        """This history without what is counted in usage, by weights that hold no more."""
        return replace(
            self,
            costs=Costs(),
            unexplained={},
            strays={},
            ahead={},
            corrections={},
            foreseen={},
            misses=0,
            hosted=Hosted(),
        )
