"""A round's edits of the view: marks what must not move, and shows granted moves as under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.load import usage
from trimtab.names import rows_of
from trimtab.ownership import Event
from trimtab.plan import Plan, parts_of
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.state.broker_averages import advance, remember_averages
from trimtab.state.round_state import RoundState, begun
from trimtab.view import View

_MOST: Final = 1e40
"""Reports within their limits sum to less in any fleet, and products of a few stay finite."""


def show_to_strategies(
    view: View, state: RoundState, plan: Plan, settings: Settings, now_ms: int
) -> View:
    """The view that `decide` had after the urgent part of ``plan``, with what must not move marked;
    its strategy saw the available part. ``view`` and ``state`` are the inputs of `decide`."""
    view, state = smooth_averages(view, begun(state, settings, now_ms), settings)
    drained = tuple(move for move in plan.moves if move.reason is Reason.DRAINED)
    view = carry_out(view, Plan(moves=drained, repairs=plan.repairs))
    changed = {*(split.bundle for split in plan.splits), *parts_of(plan.merges)}
    changing = rows_of(view.bundles.names, changed)
    splitting = view.splitting.union(split.bundle for split in plan.splits)
    return replace(staying(hold_recent(view, state.recent), changing), splitting=splitting)


def smooth_averages(view: View, state: RoundState, settings: Settings) -> tuple[View, RoundState]:
    """The view with the brokers' averages and relief times; brokers that left are dropped."""
    brokers = view.brokers
    averages = advance(state.averages, brokers, settings.weights)
    relieved = [state.relieved.get(name, 0) for name in brokers.names]
    brokers = replace(brokers, averages=averages, relieved_ms=np.array(relieved, dtype=np.int64))
    known = {name: at for name, at in zip(brokers.names, relieved, strict=True) if at}
    state = replace(state, averages=remember_averages(brokers, averages), relieved=known)
    return replace(view, brokers=brokers), state


def carry_out(view: View, plan: Plan) -> View:
    """The view with the plan's moves and assignments under way."""
    broker_of = {move.bundle: move.destination for move in plan.moves}
    broker_of |= {
        repair.bundle: repair.broker
        for repair in plan.repairs
        if repair.event is Event.ASSIGN and repair.broker is not None
    }
    row_of = {name: row for row, name in enumerate(view.brokers.names)}
    intended = view.intended.copy()
    for row in rows_of(view.bundles.names, broker_of):
        intended[row] = row_of[broker_of[view.bundles.names[row]]]
    return replace(view, intended=intended)


def hold_recent(view: View, recent: Mapping[str, int]) -> View:
    """The view with bundles that are cooling down or in flight marked as not movable."""
    cooling = rows_of(view.bundles.names, recent)
    return staying(view, np.flatnonzero(view.intended != view.bundles.owner).tolist() + cooling)


def staying(view: View, rows: list[int]) -> View:
    """The view with bundle ``rows`` marked as not movable."""
    if not rows:
        return view
    movable = view.bundles.movable.copy()
    movable[rows] = False
    return replace(view, bundles=replace(view.bundles, movable=movable))


def computable(view: View) -> bool:
    """Whether strategies can compute on the view."""
    brokers, bundles = view.brokers, view.bundles
    loads = (brokers.resources, brokers.traffic, bundles.short, bundles.long, bundles.stats)
    # A sum is finite only if every value is, and needs no column of booleans.
    with np.errstate(over="ignore", invalid="ignore"):
        return all(abs(column.sum()) <= _MOST for column in (*loads, brokers.limits))


def summary(view: View, settings: Settings) -> dict[str, float]:
    """Counts of brokers and bundles, and usage figures if usage is known and finite."""
    loads = usage(view.brokers.resources, settings.weights)[view.brokers.available]
    figures = {"brokers": float(len(loads)), "bundles": float(len(view.bundles.names))}
    if loads.size and np.isfinite(loads).all():
        low, high = float(loads.min()), float(loads.max())
        mean = float(loads.mean())
        figures |= {
            "usage_min": low,
            "usage_mean": mean,
            "usage_max": high,
            "usage_range": high - low,
        }
    return figures
