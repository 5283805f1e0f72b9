"""Finds whether a settled plan did harm.

range:   now     = usage of every broker by the model, corrected by the reports of touched brokers
         without = the same without the surprise in those reports, and with the plan's bundles
                   back on their sources
         range(now) - range(without) > the greater of breaker.worse and k * deviation
slow:    median seconds of its hand-overs > breaker.slow_factor * the usual, and noticeably so
failed:  share of its transfers that failed > breaker.failed
A surprise is usage that a broker's traffic does not explain. Load changes by itself are not caused
by a plan, so a level shift or a wave trips nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.filters.isolation import Permits
from trimtab.load_model.model import Model
from trimtab.load_model.odds import deviations
from trimtab.names import rows_of
from trimtab.settings import Settings
from trimtab.settings.review import BreakerSettings
from trimtab.state.breaker_state import Cause
from trimtab.state.ledger_state import MoveOutcome, Noted
from trimtab.view import View

_FEWEST: Final = 3
"""Transfers that must have failed, or hand-overs that must have been timed."""
_KNOWN: Final = 8
"""Hand-overs from which the usual time is known."""
_NOTICED_S: Final = 0.5
"""Smallest slowdown (s) that matters."""
_REMEMBERED: Final = 256


def find_harm(
    plan: Noted, ranges: Ranges | None, usual: Sequence[float], limits: BreakerSettings
) -> dict[str, str]:
    """The harm that the plan did: each cause with a description.

    ``ranges`` are those of `compare_ranges`, ``usual`` the seconds of earlier hand-overs.
    """
    found = {
        Cause.RANGE: find_widened_range(ranges, limits.worse),
        Cause.SLOW: find_slow_handovers(hand_overs(plan), usual, limits.slow_factor),
        Cause.FAILED: find_failures(plan, limits.failed),
    }
    return {
        cause.value: f"after round {plan.round} {text}"
        for cause, text in found.items()
        if text is not None
    }


def find_failures(plan: Noted, accepted: float) -> str | None:
    """A description of the plan's failed transfers, if too many failed."""
    outcomes = [move.outcome for move in plan.moves.values()]
    count = outcomes.count(MoveOutcome.FAILED)
    ended = count + outcomes.count(MoveOutcome.LANDED)
    if count < _FEWEST or count <= accepted * ended:
        return None
    return f"{count} of {ended} transfers failed"


def hand_overs(plan: Noted) -> tuple[float, ...]:
    """Seconds from each transfer's acceptance until its destination served."""
    return tuple(
        max(move.served_ms - move.began_ms, 0) / 1000
        for move in plan.moves.values()
        if move.served_ms
    )


def remember_handovers(past: Sequence[float], plan: Noted) -> tuple[float, ...]:
    """The hand-over times (s) with the plan's added; only the last ones are kept."""
    return (*past, *hand_overs(plan))[-_REMEMBERED:]


def find_slow_handovers(
    times: Sequence[float], usual: Sequence[float], factor: float
) -> str | None:
    """A description of the hand-overs' seconds, if they were too slow."""
    if len(times) < _FEWEST or len(usual) < _KNOWN:
        return None
    now, before = median(times), median(usual)
    if now <= max(factor * before, before + _NOTICED_S):
        return None
    return f"hand-overs took {now:.1f} s, usually {before:.1f} s"


class Ranges(NamedTuple):
    """Ranges of usage after a plan (fractions)."""

    now: float
    without: float
    """With the plan's bundles back on their sources, and without the surprise in the reports."""
    forecast: float
    """With the plan, without the surprise."""
    chance: float
    """What chance may add."""


def find_widened_range(ranges: Ranges | None, worse: float) -> str | None:
    """A description of the range of usage, if the plan has widened it."""
    if ranges is None or ranges.now - ranges.without <= max(worse, ranges.chance):
        return None
    return f"the range of usage is {ranges.now:.1%}, without its moves {ranges.without:.1%}"


def compare_ranges(plan: Noted, view: View, model: Model, settings: Settings) -> Ranges | None:
    """The ranges of usage after a plan; None if too few brokers that it touched have reported."""
    names = view.brokers.names
    row_of = {name: row for row, name in enumerate(names)}
    heard = {row_of[b]: side for b, side in plan.sides.items() if side.reports}
    if len(heard) < 2:
        return None
    taking = Permits(view.policies, view.brokers).of_others(view.brokers.available)
    taking[[*heard]] = True
    now, forecast = model.usage.copy(), model.usage.copy()
    variance = model.variance.copy()
    typical = model.typical(names, {b: side.strays for b, side in plan.sides.items()})
    for row, side in heard.items():
        # The reported usage that the model has not learnt yet.
        if model.takes is not None:
            # Its usage follows each report, and the needs were learned from the moves.
            forecast[row] = side.predicted
            variance[row] += side.doubt**2
            continue
        behind = (side.used - model.cost[row] * side.traffic) / side.reports - model.rest[row]
        now[row] += behind
        forecast[row] += behind - side.surprise
        variance[row] += side.noise(max(side.strays, typical))
    brought = _find_brought(plan, view, row_of)
    if model.takes is not None:
        back = model.takes.moved(brought.rows, brought.destinations, brought.sources)
        without = back.usage
    else:
        sizes = model.sizes([view.bundles.names[row] for row in brought.rows.tolist()])
        without = forecast - _usage_of(brought, sizes, model.gain)
    brokers = np.flatnonzero(taking)
    ends = brokers[[int(np.argmax(now[brokers])), int(np.argmin(now[brokers]))]]
    often = deviations(len(brokers), settings.round.interval, settings.planner.false_moves)
    chance = often * float(variance[ends].sum()) ** 0.5
    wide, would, hoped = (float(np.ptp(each[brokers])) for each in (now, without, forecast))
    return Ranges(wide, would, hoped, chance)


class _Brought(NamedTuple):
    """The k bundles of a plan that are still where it brought them, as rows of a view."""

    rows: Ints
    sources: Ints
    destinations: Ints


def _find_brought(plan: Noted, view: View, row_of: Mapping[str, int]) -> _Brought:
    """``row_of``: the view's row of each broker by name."""
    landed, names = plan.landed(), view.bundles.names
    found = [
        (row, row_of[move.source], row_of[move.destination])
        for row in rows_of(names, landed)
        if (move := landed[names[row]]).source in row_of
        # A bundle that has moved on is not where this plan brought it.
        and row_of.get(move.destination) == view.intended[row]
    ]
    return _Brought(*np.array(found, np.int64).reshape(-1, 3).T)


def _usage_of(brought: _Brought, sizes: Floats, gain: Floats) -> Floats:
    """(n,) usage that the plan's bundles, of the present (k,) ``sizes``, bring to or take from
    brokers."""
    usage = np.zeros(len(gain))
    for size, source, destination in zip(sizes, brought.sources, brought.destinations, strict=True):
        usage[source] -= gain[source] * size
        usage[destination] += gain[destination] * size
    return usage
