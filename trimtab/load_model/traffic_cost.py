"""What traffic costs on each broker, learned from its reports, and the usage it does not explain.

cost        = usage per byte/s of its kind of broker, corrected by what plans there came to
unexplained = a broker's average usage, less the cost of its average traffic, and what it is ahead;
              both averages are operator ①'s (`trimtab.intake.snapshot.Snapshot.smoothed`)
ahead       = what a finished plan showed of a broker's usage before the averages do

The traffic is that of a broker's bundles, also of those that its report lacks. Where a broker
reports clearly more or less than that, what is beyond it is no traffic of its bundles.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.arrays import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Floats
from trimtab.load import usage
from trimtab.load_model.beyond_bundles import find_clear, follow_beyond
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.resources.costs import (
    count_reports,
    drop_strays,
    is_idle,
    kinds,
    note_idle,
    per_byte,
)
from trimtab.load_model.resources.slopes import MESSAGE_BYTES
from trimtab.settings import Settings
from trimtab.view import Brokers

_TINY: Final = 1e-9
"""What is left of a change that is not counted any more."""


def traffic_of(stats: Floats) -> Floats:
    """(m,) bytes/s from statistics (4, m) of bundles or brokers, plus the cost of messages."""
    messages = stats[RATE_IN] + stats[RATE_OUT]
    traffic: Floats = stats[THROUGHPUT_IN] + stats[THROUGHPUT_OUT] + MESSAGE_BYTES * messages
    return traffic


def cost_of(brokers: Brokers, history: PlannerHistory) -> Floats:
    """(n,) usage per byte/s on each broker."""
    names, kind = kinds(brokers.limits)
    first = np.array([np.flatnonzero(kind == each)[0] for each in range(len(names))], np.int64)
    own = np.array([history.corrections.get(name, 1.0) for name in brokers.names])
    return own * per_byte(history.costs, names, brokers.limits[:, first])[kind]


def learn_costs(
    brokers: Brokers, history: PlannerHistory, held: Floats, settings: Settings
) -> PlannerHistory:
    """The history with costs and unexplained usage updated from the brokers' new reports; ``held``:
    (n,) bytes/s of their bundles."""
    planner = settings.planner
    used = usage(brokers.resources, settings.weights)
    known = np.array([history.costs.reported_ms.get(name, 0) for name in brokers.names])
    news = brokers.reported_ms > known
    elapsed = np.where(known > 0, (brokers.reported_ms - known) / 1000.0, 0.0)
    # From the same report as the usage: a bundle's broker in the view may have got it since.
    carried, usual = traffic_of(brokers.traffic), traffic_of(brokers.smoothed_traffic)
    fading = 0.5 ** (elapsed / planner.half_life)
    reported = dict(zip(brokers.names, brokers.reported_ms.tolist(), strict=True))
    since_ms = {name: history.since_ms.get(name, at) for name, at in reported.items()}
    history = replace(history, since_ms=since_ms)
    beyond = follow_beyond(brokers, history, carried - held, np.where(news, elapsed, 0.0), fading)
    clear = find_clear(beyond, usual)
    carried, usual = np.where(clear, held, carried), usual - np.where(clear, beyond, 0.0)
    costs = history.costs
    names, kind = kinds(brokers.limits)
    for number, name in enumerate(names):
        rows = np.flatnonzero(news & (kind == number) & (carried > 0))
        if rows.size:
            kept = 0.5 ** (float(elapsed[rows].mean()) / planner.cost_half_life)
            costs = count_reports(costs, name, used[rows], carried[rows], kept)
    average = usage(brokers.smoothed_resources, settings.weights)
    idle, since = is_idle(usual), float(elapsed.max(initial=0.0))
    costs = note_idle(costs, average[idle], brokers.limits[:, idle], since)
    costs = replace(drop_strays(costs, names), reported_ms=reported)
    cost = cost_of(brokers, replace(history, costs=costs))
    before = np.array([history.unexplained.get(name, np.nan) for name in brokers.names])
    squares = np.array([history.strays.get(name, 0.0) for name in brokers.names]) ** 2
    squared = (used - cost * carried - before) ** 2
    stepped = news & ~np.isnan(before)
    squares = np.where(stepped, fading * squares + (1 - fading) * squared, squares)
    ahead = fading * np.array([history.ahead.get(name, 0.0) for name in brokers.names])
    rest = average - cost * usual + ahead
    columns = (rest.tolist(), np.sqrt(squares).tolist(), ahead.tolist())
    unexplained, strays, left = (dict(zip(brokers.names, c, strict=True)) for c in columns)
    return replace(
        history,
        costs=costs,
        unexplained=unexplained,
        strays=strays,
        ahead={name: value for name, value in left.items() if abs(value) > _TINY},
        beyond=dict(zip(brokers.names, beyond.tolist(), strict=True)),
    )
