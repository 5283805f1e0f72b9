"""The situation of each pool before a plan, and whether the planner rests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from trimtab.load import find_measured
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.wariness import find_tolerated_range, unrest_of
from trimtab.planner.constraints import Draft
from trimtab.planner.fleet_changes import settings_now
from trimtab.planner.pools import Pool, pools
from trimtab.planner.ranges import find_forced_range
from trimtab.planner.search.floor import floor_of
from trimtab.planner.search.ground import Ground
from trimtab.planner.trigger import Pair, reach, widest
from trimtab.settings import Settings
from trimtab.view import View

CLEARLY: Final = 1.1
"""A range that a single bundle forces is acted on only above this multiple of it. Lower: moves that
gain almost nothing; higher: a real skew next to a large bundle stays."""
_TWO: Final = 2
"""The fewest brokers that have a range."""


class Prospect(NamedTuple):
    """The situation of one pool."""

    pool: Pool
    ground: Ground
    pair: Pair
    """The two brokers whose difference is furthest beyond what is accepted."""
    floor: float
    """The range that the largest bundle forces wherever it is, or that immovable load forces."""

    target: float
    """The range that is accepted without noise and recent plans."""
    tolerated: float
    """The range that is accepted without noise."""

    @property
    def forced(self) -> float:
        """The range that is left alone because of the floor."""
        return self.widened(CLEARLY * self.floor, self.tolerated)

    def widened(self, floor: float, accepted: float) -> float:
        """A range at the ``floor`` with what recent plans add to the target: no more than half of
        what is ``accepted`` without a floor, as the hot end is the bundle's."""
        return floor + min(max(accepted - self.target, 0.0), accepted / 2)

    @property
    def beyond(self) -> float:
        """How far the range is above the one that the planner leaves alone."""
        return self.pair.range - max(self.pair.accepted, self.forced)


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """All pools; ``ground``, ``pair`` and ``floor`` belong to the foremost pool, with the largest
    `Prospect.beyond`; None and 0 if there is nothing to compare."""

    fleet: Fleet
    draft: Draft
    """For the plan: with no moves yet, and with the settings to plan with."""
    unrest: float = 0.0
    """The number of recent plans."""
    prospects: tuple[Prospect, ...] = ()
    unmeasured: tuple[int, ...] = ()
    """Rows of the brokers that do not tell how busy they are: they take no part."""

    @property
    def ground(self) -> Ground | None:
        """The brokers and bundles of the foremost pool."""
        return self._foremost.ground if self.prospects else None

    @property
    def pair(self) -> Pair | None:
        """The pair of brokers of the foremost pool."""
        return self._foremost.pair if self.prospects else None

    @property
    def floor(self) -> float:
        """The floor of the foremost pool, see `Prospect.floor`."""
        return self._foremost.floor if self.prospects else 0.0

    @property
    def rests(self) -> bool:
        """Whether there is nothing to plan."""
        return all(prospect.beyond <= 0 for prospect in self.prospects)

    def under(self, settings: Settings) -> Outlook:
        """The outlook on the same fleet under other settings of what is accepted."""
        changed = (
            _compare(each.pool, each.ground, each.floor, settings, self.unrest)
            for each in self.prospects
        )
        return replace(self, prospects=tuple(changed))

    @property
    def _foremost(self) -> Prospect:
        return max(self.prospects, key=lambda prospect: prospect.beyond)


def look_ahead(
    view: View, history: PlannerHistory, settings: Settings
) -> tuple[Outlook, PlannerHistory]:
    """The outlook, and the history that counts the view's reports; a second call with the same view
    and that history gives the same result."""
    fleet, history = observe_fleet(view, history, settings)
    settings = settings_now(settings, history, view.now_ms)
    draft = Draft(view, fleet, settings, reach(history.misses))
    unrest = unrest_of(history, view.now_ms)
    if not fleet.ready or len(fleet.usage) < _TWO:
        return Outlook(fleet, draft, unrest), history
    brokers, permits = view.brokers, draft.projection.permits
    measured = find_measured(brokers.smoothed_resources, brokers.limits, settings.weights)
    found = (
        find_prospect(draft, pool, unrest)
        for pool in pools(view.bundles, view.policies, permits, brokers.available & measured)
    )
    unmeasured = tuple(np.flatnonzero(~measured).tolist())
    return Outlook(fleet, draft, unrest, tuple(filter(None, found)), unmeasured), history


def find_prospect(draft: Draft, pool: Pool, unrest: float) -> Prospect | None:
    """The situation of a pool after the draft's moves; None if nothing can move."""
    if np.count_nonzero(pool.brokers) < _TWO:
        return None
    ground = draft.ground(pool)
    if not len(ground.receivers):
        return None
    floor = floor_of(ground)
    if draft.bound:
        floor = max(floor, find_forced_range(ground, pool))
    return _compare(pool, ground, floor, draft.settings, unrest)


def _compare(
    pool: Pool, ground: Ground, floor: float, settings: Settings, unrest: float
) -> Prospect:
    pair, tolerated = widest(ground, settings, unrest), find_tolerated_range(settings, unrest)
    return Prospect(pool, ground, pair, floor, settings.planner.target, tolerated)
