"""Place where usage will be least with the bundle, by the planner's model of the fleet.

usage = predicted after everything in flight has landed, and the last plan's moves, plus what this
        plan has placed so far;
        as reported, for a broker that the model does not know yet; above all others for one that
        does not tell how busy it is
load  = the bundle's average share of the fleet's traffic, times its cost on the broker; an average
        bundle's if it is unknown, and an equal part of all usage if nothing is known
best  = the first candidate with the least usage + load
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.filters.request import Projection
from trimtab.load import find_measured, usage
from trimtab.load_model.estimating.rows import locate_keys
from trimtab.load_model.history import PlannerHistory
from trimtab.names import identities
from trimtab.settings import Settings

_LEAST: Final = 1e-9
"""Assumed usage of an idle bundle: above 0, so that many of them do not go to one broker."""


class LeastPredictedUsage:
    """A Placer that reads the planner's history."""

    counts: ClassVar[bool] = True
    compared: ClassVar[str] = "which would have the least predicted usage at that point"

    def __init__(self, projection: Projection, history: PlannerHistory, settings: Settings) -> None:
        view = projection.view
        self._history, names = history, view.brokers.names
        known = [history.foreseen.get(name) for name in names]
        reported = usage(view.brokers.resources, settings.weights).tolist()
        self._usage: Floats = np.array(
            [each.usage if each else used for each, used in zip(known, reported, strict=True)]
        )
        self._usage += [history.shifted.get(name, 0.0) for name in names]
        measured = find_measured(
            view.brokers.smoothed_resources, view.brokers.limits, settings.weights
        )
        # They seem idle, and may be the busiest: the last ones to get anything.
        self._usage[~measured] += float(self._usage.max(initial=0.0)) + 1.0
        gains = [each.gain for each in known if each]
        usual = float(np.median(gains)) if gains else float(self._usage.sum())
        self._gain: Floats = np.array([each.gain if each else usual for each in known])
        self._typical = 1.0 / max(len(history.estimates.level), len(view.bundles.names), 1)
        self._placed: dict[str, tuple[int, float]] = {}

    def best(self, bundle: str, candidates: Ints) -> Ints:
        """The candidate with the least usage; a second call for a bundle drops the first answer."""
        if bundle in self._placed:
            row, load = self._placed.pop(bundle)
            self._usage[row] -= load
        loads = np.maximum(self._gain * self._size(bundle), _LEAST)
        row = int(candidates[np.argmin((self._usage + loads)[candidates])])
        self._usage[row] += loads[row]
        self._placed[bundle] = (row, float(loads[row]))
        return np.array([row])

    def loads(self) -> Floats:
        """(n,) predicted usage, with what this plan has placed."""
        return self._usage.copy()

    def remembered(self) -> PlannerHistory:
        """The history, unchanged."""
        return self._history

    def _size(self, bundle: str) -> float:
        estimates = self._history.estimates
        at, known = locate_keys(estimates, identities([bundle]))
        return float(estimates.current[at[0]]) if known[0] else self._typical
