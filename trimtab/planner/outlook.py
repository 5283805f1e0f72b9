"""What the planner looks at before it plans, and whether it then rests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from trimtab.load_model.fleet import Fleet, observe_fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.planner.board import Ground
from trimtab.planner.constraints import Draft, Pool, find_forced_range, pools
from trimtab.planner.search import floor_of
from trimtab.planner.trigger import HALF_LIFE_MS, Pair, widest
from trimtab.settings import Settings
from trimtab.view import View

CLEARLY: Final = 1.1
"""A range that a single bundle forces is not acted on until it is so many times that."""
_TWO: Final = 2


class Prospect(NamedTuple):
    """What becomes of one pool."""

    pool: Pool
    ground: Ground
    pair: Pair
    """The two brokers that are furthest beyond what is accepted."""
    floor: float
    """Range that its largest bundle forces wherever it is, or what cannot move does."""

    @property
    def beyond(self) -> float:
        """How far the range is above what is left alone."""
        return self.pair.range - max(self.pair.accepted, CLEARLY * self.floor)


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """All pools; ``ground``, ``pair`` and ``floor`` are of the one that is furthest beyond what is
    left alone, None and 0 where there is nothing to compare."""

    fleet: Fleet
    unrest: float = 0.0
    """Recent plans."""
    prospects: tuple[Prospect, ...] = ()

    @property
    def ground(self) -> Ground | None:
        """Who may go where in it."""
        return self._foremost.ground if self.prospects else None

    @property
    def pair(self) -> Pair | None:
        """Its two brokers that are furthest apart."""
        return self._foremost.pair if self.prospects else None

    @property
    def floor(self) -> float:
        """See `Prospect.floor`."""
        return self._foremost.floor if self.prospects else 0.0

    @property
    def rests(self) -> bool:
        """Whether nothing is to be planned."""
        return all(prospect.beyond <= 0 for prospect in self.prospects)

    def under(self, settings: Settings) -> Outlook:
        """The same fleet with other settings of what is accepted."""
        changed = (
            each._replace(pair=widest(each.ground, settings, self.unrest))
            for each in self.prospects
        )
        return replace(self, prospects=tuple(changed))

    @property
    def _foremost(self) -> Prospect:
        return max(self.prospects, key=lambda prospect: prospect.beyond)


def look_ahead(
    view: View, history: PlannerHistory, settings: Settings
) -> tuple[Outlook, PlannerHistory]:
    """The outlook, and the history with the view's reports counted; to look again at the same view
    with that history gives the same."""
    fleet, history = observe_fleet(view, history, settings)
    unrest = unrest_of(history, view.now_ms)
    if not fleet.ready or len(fleet.usage) < _TWO:
        return Outlook(fleet, unrest), history
    draft = Draft(view, fleet, settings)
    found = (prospect(draft, pool, unrest) for pool in pools(view))
    return Outlook(fleet, unrest, tuple(each for each in found if each is not None)), history


def prospect(draft: Draft, pool: Pool, unrest: float) -> Prospect | None:
    """A pool after the draft's moves; None where nothing can move."""
    if np.count_nonzero(pool.brokers) < _TWO:
        return None
    ground = draft.ground(pool)
    if not len(ground.receivers):
        return None
    floor = floor_of(ground)
    if draft.bound:
        floor = max(floor, find_forced_range(ground, pool))
    return Prospect(pool, ground, widest(ground, draft.settings, unrest), floor)


def swung(history: PlannerHistory, settings: Settings, now_ms: int) -> bool:
    """Whether a plan is for another swing: what could not be done at once is done within the
    cool-down, and is none."""
    return now_ms - history.planned_ms >= 1000 * settings.round.grace_period


def unrest_of(history: PlannerHistory, now_ms: int) -> float:
    """How many plans there were of late."""
    elapsed_ms = max(now_ms - history.planned_ms, 0)
    return float(history.unrest * 0.5 ** (elapsed_ms / HALF_LIFE_MS))
