"""Places bundles one after the other by the placement strategy of one plan."""

from __future__ import annotations

import numpy as np

from trimtab.arrays import Bools, Ints
from trimtab.filters import FILTERS, narrow
from trimtab.filters.request import Projection, Request
from trimtab.load import usage
from trimtab.placement import PLACERS
from trimtab.settings import Settings
from trimtab.state.round_state import Histories
from trimtab.view import Brokers, View


class Placing:
    """The placement of one plan; repairs and moves share it, so that each sees the others."""

    def __init__(
        self, view: View, histories: Histories, settings: Settings, rng: np.random.Generator
    ) -> None:
        self.view, self.settings = view, settings
        self.light = lightly_used(view.brokers, settings)
        self.projection = Projection(view)
        self.staying = self.projection.own_bundles()
        """(n,) bundles each broker will have, without heartbeat and SLA bundles."""
        self._histories, self._rng = histories, rng
        self._placer = PLACERS[settings.round.placement](
            self.projection, histories.of(settings.round.placement), settings
        )

    def draw(self, bundle: str, candidates: Bools) -> int:
        """One of the ``candidates`` (at least one) that the strategy finds best."""
        best = self._placer.best(bundle, np.flatnonzero(candidates))
        return int(best[self._rng.integers(len(best))])

    def draw_evenly(self, bundle: str, request: Request, allowed: Bools, given: Ints) -> int:
        """A broker for a bundle that must have one: not an overloaded one, nor one that the filters
        reject, if others are left; ``given`` (n,) says how many such bundles each has got."""
        light = prefer_wanted(allowed, self.light)
        candidates = narrow(request, light, FILTERS, self.settings)
        if not self._placer.counts:
            candidates = candidates & (given == given[candidates].min())
        return self.draw(bundle, candidates)

    def note(self, bundle: str, broker: int) -> None:
        """Tell a strategy that counts what it places of a bundle that broker row ``broker`` will
        have."""
        if self._placer.counts:
            self._placer.best(bundle, np.array([broker]))

    def remembered(self) -> Histories:
        """The histories with the strategy's after everything it has placed."""
        return self._histories.having(self.settings.round.placement, self._placer.remembered())


def lightly_used(brokers: Brokers, settings: Settings) -> Bools:
    """(n,) brokers that are not overloaded."""
    loads = usage(brokers.resources, settings.weights)
    light: Bools = loads <= settings.round.overloaded_threshold
    return light


def prefer_wanted(candidates: Bools, wanted: Bools) -> Bools:
    """Those of ``candidates`` that are ``wanted``; all of them if none is."""
    both = candidates & wanted
    return both if both.any() else candidates
