"""The planner's model of the last view, for modules that compare it with what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trimtab.arrays import Floats
from trimtab.load import usage
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.estimating.rows import locate_keys
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.passing_use import leave_out_own
from trimtab.load_model.resources.takes import Takes, spread_traffic, takes_of
from trimtab.load_model.traffic_cost import cost_of, traffic_of
from trimtab.names import identities
from trimtab.settings import Settings
from trimtab.view import View


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The model of the n brokers of a view; usage is in fractions."""

    usage: Floats
    """(n,) predicted, after everything in flight has landed."""
    gain: Floats
    """(n,) usage that a bundle of size 1 adds."""
    variance: Floats
    """(n,) variance of ``usage`` by chance."""
    used: Floats
    """(n,) usage as last reported."""
    traffic: Floats
    """(n,) bytes/s in the same report, messages included (`traffic_of`)."""
    rest: Floats
    """(n,) usage that traffic does not explain."""
    cost: Floats
    """(n,) usage per byte/s."""
    strays: Floats
    """(n,) standard deviation of reported usage around what the model predicts from traffic."""
    estimates: Estimates
    takes: Takes | None = None
    """Where several resources compete; then ``usage`` is that of each broker's busiest."""

    def sizes(self, names: Sequence[str]) -> Floats:
        """(k,) shares of the fleet's traffic; 0 for unknown bundles."""
        at, known = locate_keys(self.estimates, identities(names))
        sizes = np.zeros(len(names))
        sizes[known] = self.estimates.current[at[known]]
        return sizes

    def typical(self, names: Sequence[str], before: Mapping[str, float]) -> float:
        """The median of ``strays``; ``before`` has the earlier values of brokers that something
        happened to since."""
        return float(np.median([before.get(n, s) for n, s in zip(names, self.strays, strict=True)]))


def build_model(view: View, history: PlannerHistory, settings: Settings) -> Model:
    """Build the model of a view's brokers from a history that already counts their reports."""
    brokers, names = view.brokers, view.brokers.names
    takes = None
    if len(history.needs.keys):
        at = locate_keys(history.estimates, identities(view.bundles.names))[0]
        reported = traffic_of(view.bundles.stats)
        silent = history.estimates.silent(at, reported)
        level = np.where(silent, 0.0, history.estimates.current[at])
        traffic = level * float(reported.sum() / max(level.sum(), 1e-9))
        carried = spread_traffic(view.bundles, traffic)
        takes = takes_of(view, history.needs, carried, settings.weights)
        takes = takes and leave_out_own(takes, brokers, history, settings)
    foreseen = np.array([history.foreseen[name] for name in names]).reshape(-1, 3).T
    return Model(
        usage=foreseen[0],
        gain=foreseen[1],
        variance=foreseen[2],
        used=usage(brokers.resources, settings.weights),
        traffic=traffic_of(brokers.traffic),
        rest=np.array([history.unexplained[name] for name in names]),
        cost=cost_of(brokers, history),
        strays=np.array([history.strays[name] for name in names]),
        estimates=history.estimates,
        takes=takes,
    )
