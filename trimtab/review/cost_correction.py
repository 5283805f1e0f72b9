"""Corrects the planner's model from a settled plan: the cost of traffic on the brokers it touched.

realised cost / cost of the kind = correction * (1 + surprise / usage that the traffic explains)
Only brokers count whose usage was predicted to change by well more than noise, and changed the way
their traffic did: where it went the other way, as no cost is negative, something else changed. Nor
does a broker count if one of its bundles leapt since its report before the plan: what that bundle
takes beyond its traffic is not the moves' cost, and is gone if the leap passes.
A broker's correction is the median of its own ratios, pulled towards the median of its kind, and
that towards 1; the less evidence, the stronger the pull. It stays between a half and twice. Any
other usage that a broker reported is believed at once, as far as it exceeds chance. A changed
correction leaves the predicted usages as they are: it only changes what later moves will add or
take.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

import numpy as np

from trimtab.arrays import Floats
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.estimating.rows import locate_keys
from trimtab.load_model.history import Foreseen, PlannerHistory
from trimtab.load_model.model import Model
from trimtab.load_model.resources.costs import kinds
from trimtab.load_model.traffic_cost import traffic_of
from trimtab.names import identities
from trimtab.state.ledger_state import Ledger, Noted, Side
from trimtab.view import Brokers, View

Evidence = Mapping[str, tuple[tuple[int, float], ...]]
"""Broker to times (ms) and logarithms of ratios, oldest first."""

_SAMPLE_MS: Final = 60_000
"""Time from one sample of a bundle to the next (Pulsar's). Shorter: costs are learned from plans
made while bundles leap; longer: hardly from any plan that answers a leap."""
_CLEARLY: Final = 3.0
"""Standard deviations that a predicted change must exceed to count as evidence of costs."""
_LEAST: Final = 0.01
"""The usage (fraction) that it must exceed."""
_CAME: Final = 0.5
"""Fraction of the predicted change that must have arrived as traffic."""
_MOST: Final = 8
"""Ratios remembered per broker."""
_PRIOR: Final = 2.0
"""Weight, in ratios, of the value that the median is pulled towards."""
_WIDEST: Final = math.log(4.0)
"""Limit of one ratio (logarithm)."""
_BOUND: Final = math.log(2.0)
"""Limit of a correction (logarithm)."""
_HALF_LIFE_MS: Final = 7 * 86_400_000
_FORGET: Final = 5
"""Half-lives after which a ratio is forgotten."""


def correct_from_plan(
    plan: Noted, ledger: Ledger, view: View, model: Model, history: PlannerHistory
) -> tuple[Ledger, PlannerHistory]:
    """The ledger and the history after a plan was closed; the ``view`` is of the same time."""
    if model.takes is not None:
        # The needs are learned from the reports themselves.
        return ledger, history
    before = {broker: side.strays for broker, side in plan.sides.items()}
    brokers = view.brokers
    typical = model.typical(brokers.names, before)
    sides = {
        broker: side
        for broker, side in plan.sides.items()
        if side.reports and telling(side, typical)
    }
    if sides:
        disturbed = _find_disturbed(view, model.estimates, plan.at_ms)
        sides = {broker: side for broker, side in sides.items() if broker not in disturbed}
    if not sides:
        return ledger, history
    now_ms = max(side.reported_ms for side in sides.values())
    evidence = _gather(ledger.evidence, sides, now_ms)
    found = _unmodelled(sides, brokers.names, model)
    factors = corrections(evidence, brokers, now_ms)
    history = correct_costs(found, factors, brokers, model, history)
    # What the plan caused does not count as a broker's deviation.
    strays = history.strays | {broker: side.strays for broker, side in sides.items()}
    return replace(ledger, evidence=evidence), replace(history, strays=strays)


def correct_costs(
    found: Floats,
    factors: Mapping[str, float],
    brokers: Brokers,
    model: Model,
    history: PlannerHistory,
) -> PlannerHistory:
    """The history with new corrections and the additional (n,) usage ``found``."""
    names = brokers.names
    before = np.array([history.corrections.get(name, 1.0) for name in names])
    times = np.array([factors.get(name, 1.0) for name in names]) / before
    rest = model.rest + found - (times - 1.0) * (model.usage - model.rest)
    # At its new cost, average traffic explains another part of average usage.
    explained = (times - 1.0) * model.cost * traffic_of(brokers.smoothed_traffic)
    ahead = np.array([history.ahead.get(name, 0.0) for name in names]) + rest - model.rest
    ahead += explained
    columns = (model.usage + found, model.gain * times, model.variance * times**2)
    foreseen = map(Foreseen, *(column.tolist() for column in columns))
    return replace(
        history,
        corrections=dict(factors),
        unexplained=history.unexplained | dict(zip(names, rest.tolist(), strict=True)),
        foreseen=dict(zip(names, foreseen, strict=True)),
        ahead={name: by for name, by in zip(names, ahead.tolist(), strict=True) if by},
    )


def _find_disturbed(view: View, estimates: Estimates, at_ms: int) -> frozenset[str]:
    """The brokers with a bundle that leapt since their last report before ``at_ms``, or in it: a
    report may show the beginning of a leap in part."""
    bundles, names = view.bundles, view.brokers.names
    at, known = locate_keys(estimates, identities(bundles.names))
    began_ms = estimates.at_ms - _SAMPLE_MS * estimates.age
    leapt = np.flatnonzero(known)[began_ms[at[known]] > at_ms - 2 * _SAMPLE_MS]
    return frozenset(names[row] for row in np.unique(bundles.owner[leapt]).tolist())


def telling(side: Side, strays: float) -> bool:
    """Whether a side with reports is evidence of costs; ``strays`` is a typical broker's."""
    change = side.predicted - side.before
    noise = (side.variance + side.noise(strays)) ** 0.5
    if abs(change) < max(_LEAST, _CLEARLY * noise) or side.explained / change < _CAME:
        return False
    return side.surprise / side.explained > -1.0


def ratio_of(side: Side) -> float:
    """Logarithm of the realised cost over the cost of the broker's kind."""
    ratio = side.correction * max(1.0 + side.surprise / side.explained, 1e-9)
    return min(max(math.log(ratio), -_WIDEST), _WIDEST)


def _gather(
    past: Evidence, sides: Mapping[str, Side], now_ms: int
) -> dict[str, tuple[tuple[int, float], ...]]:
    horizon = now_ms - _FORGET * _HALF_LIFE_MS
    kept = {broker: known for broker, known in past.items() if known[-1][0] >= horizon}
    for broker, side in sides.items():
        kept[broker] = (*kept.get(broker, ()), (now_ms, ratio_of(side)))[-_MOST:]
    return kept


def _unmodelled(sides: Mapping[str, Side], names: Sequence[str], model: Model) -> Floats:
    """(n,) usage that reports show in addition to the model's, as far as it exceeds chance."""
    found = np.zeros(len(names))
    for row, name in enumerate(names):
        side = sides.get(name)
        if side is not None:
            behind = (side.used - model.cost[row] * side.traffic) / side.reports - model.rest[row]
            chance = 2 * side.strays / side.reports**0.5
            found[row] = math.copysign(max(abs(behind) - chance, 0.0), behind)
    return found


def corrections(evidence: Evidence, brokers: Brokers, now_ms: int) -> dict[str, float]:
    """Broker to the factor on its kind's cost; brokers without evidence are left out."""
    names = brokers.names
    _, kind = kinds(brokers.limits)
    factors = {}
    for number in range(int(kind.max(initial=-1)) + 1):
        members = [names[row] for row in np.flatnonzero(kind == number).tolist()]
        usual = _pull([each for b in members for each in evidence.get(b, ())], 0.0, now_ms)
        for broker in members:
            factor = _pull(evidence.get(broker, ()), usual, now_ms)
            if factor:
                factors[broker] = math.exp(min(max(factor, -_BOUND), _BOUND))
    return factors


def _pull(known: Sequence[tuple[int, float]], towards: float, now_ms: int) -> float:
    """The median of ``known``, pulled towards ``towards``; the less evidence, the stronger."""
    if not known:
        return towards
    weight = float(sum(0.5 ** (max(now_ms - at, 0) / _HALF_LIFE_MS) for at, _ in known))
    return (weight * median(value for _, value in known) + _PRIOR * towards) / (weight + _PRIOR)
