"""The predicted fleet: the usage of every broker, and what each bundle adds to it.

usage(broker) = usage that its traffic does not explain + gain(broker) * sum of sizes of the bundles
                that will be there after everything in flight has landed
unexplained   = the broker's average usage, less the cost of its average traffic: both averages are
                operator ①'s (`trimtab.intake.snapshot.Snapshot.smoothed`)
size          = a bundle's average share of the fleet's traffic
gain          = the fleet's traffic * cost of traffic on that kind of broker
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trimtab.arrays import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Bools, Floats, Ints
from trimtab.load import usage
from trimtab.load_model.estimating.estimates import Samples, locate_keys
from trimtab.load_model.estimating.leap_record import expect_levels, record_leaps
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.fleet_change import is_filling, note_brokers
from trimtab.load_model.history import Foreseen, PlannerHistory
from trimtab.load_model.in_transit import arriving
from trimtab.load_model.lineage import drop_ancestors
from trimtab.load_model.odds import bound
from trimtab.load_model.resources.costs import (
    count_reports,
    drop_strays,
    is_idle,
    kinds,
    note_idle,
    per_byte,
)
from trimtab.load_model.resources.needs import Needs, learn_needs
from trimtab.load_model.resources.slopes import MESSAGE_BYTES
from trimtab.load_model.resources.takes import Takes, compete, takes_of
from trimtab.names import identities
from trimtab.settings import Settings
from trimtab.view import Brokers, View

_TINY = 1e-9
"""Floor of total size and gain, which are divided by."""
_NEAR_OVERLOAD = 0.95
"""The part of ``round.overloaded_threshold`` above which a broker's bursts are answered at once.
Lower: bursts that pass are answered; higher: a broker is overloaded before anything moves."""


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """n brokers and m bundles, by the rows of the view."""

    usage: Floats
    """(n,) predicted usage, a fraction."""
    gain: Floats
    """(n,) usage that a bundle of size 1 adds; above 0."""
    size: Floats
    """(m,) share of the fleet's traffic."""
    where: Ints
    """(m,) the broker row of each bundle after moves in flight have landed."""
    movable: Bools
    variance: Floats
    """(n,) variance of ``usage`` by chance."""
    ready: bool
    """Whether the noise of any bundle is known, and no large part of the brokers has just come."""
    struck: bool
    """Whether several bundles have just leapt together."""
    limit: float = 0.0
    """Usage below which bursts that may pass are to be brought; 0 if all brokers are below it."""
    passing: int = 0
    """Bundles that leapt and count with their size before, as leaps of this fleet pass."""
    takes: Takes | None = None
    """What bundles take of each resource, where several compete; ``usage`` is then that of each
    broker's busiest. None where one resource rules all brokers."""


def observe_fleet(
    view: View, past: PlannerHistory, settings: Settings
) -> tuple[Fleet, PlannerHistory]:
    """The fleet predicted from the view's reports, and the history that counts them."""
    planner, interval = settings.planner, settings.round.interval
    traffic = traffic_of(view.bundles.stats)
    keys = identities(view.bundles.names)
    order = np.argsort(keys)
    reported_ms = view.brokers.reported_ms[view.bundles.owner]
    samples = Samples(keys[order], traffic[order], reported_ms[order])
    limit = bound(len(keys), interval, planner.false_moves)
    known = drop_ancestors(past.estimates, view.bundles.names, samples.keys, order)
    estimates = follow_samples(known, samples, planner.half_life, limit)
    leaps = record_leaps(past.leaps, known, estimates, view.now_ms)
    history = _costed(view.brokers, replace(past, estimates=estimates, leaps=leaps), settings)
    # Looked up in key order: then they are mostly exactly the estimates' keys, a fast path.
    at = np.empty_like(order)
    at[order] = locate_keys(estimates, keys[order])[0]
    size, where = estimates.level[at], view.intended
    # For bundles that no broker reports now the share is known, but not the traffic.
    gain = float(traffic.sum()) / max(float(size.sum()), _TINY) * cost_of(view.brokers, history)
    gain = np.maximum(gain, _TINY)
    n = len(gain)
    rest = np.array([history.unexplained[b] for b in view.brokers.names])
    unreported = arriving(past.sent, view.brokers.names, keys[order], estimates, view.now_ms)
    rest += gain * unreported
    # A burst that may pass is left alone unless its broker nears overload.
    expected, passing = expect_levels(leaps, estimates, view.now_ms)
    limit = _NEAR_OVERLOAD * settings.round.overloaded_threshold
    passing = passing[at]
    relieving = passing & (rest + gain * np.bincount(where, size, n) > limit)[where]
    passing &= ~relieving
    size = np.where(passing, expected[at], size)
    settled = leaps.wait_s == 0
    chance = estimates.chance if settled else estimates.spread
    fleet = Fleet(
        usage=rest + gain * np.bincount(where, size, n),
        gain=gain,
        size=size,
        where=where,
        movable=view.bundles.movable & (size > 0),
        variance=gain**2 * np.bincount(where, chance[at], n),
        ready=estimates.known,
        struck=settled and estimates.event,
        limit=limit if relieving.any() else 0.0,
        passing=int(np.count_nonzero(passing)),
    )
    if compete(view, settings.weights):
        needs = learn_needs(past.needs, view, keys[order], order, planner.cost_half_life)
        history = replace(history, needs=needs)
        takes = takes_of(view, needs, size, settings.weights)
        if takes is not None:
            fleet = replace(fleet, usage=takes.usage, takes=takes)
    elif len(past.needs.keys):
        history = replace(history, needs=Needs())
    history, filling = _foresee(view, fleet, history, past)
    return replace(fleet, ready=fleet.ready and not filling), history


def _foresee(
    view: View, fleet: Fleet, history: PlannerHistory, past: PlannerHistory
) -> tuple[PlannerHistory, bool]:
    """The history with what is predicted of each broker, and whether brokers that joined are being
    filled; ``past`` is the history of the round before."""
    columns = (fleet.usage.tolist(), fleet.gain.tolist(), fleet.variance.tolist())
    foreseen = dict(zip(view.brokers.names, map(Foreseen, *columns), strict=True))
    # Plans for another set of brokers are no reason to leave this one as it is.
    unrest = history.unrest if foreseen.keys() == past.foreseen.keys() else 0.0
    filling = 0 < past.filling_ms == view.now_ms or is_filling(past.foreseen, foreseen)
    change = past.change
    if not filling:
        change = note_brokers(change, past.foreseen, foreseen, view.now_ms)
    history = replace(
        history,
        foreseen=foreseen,
        unrest=unrest,
        shifted={},
        change=change,
        filling_ms=view.now_ms if filling else 0,
    )
    return history, filling


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


def _costed(brokers: Brokers, history: PlannerHistory, settings: Settings) -> PlannerHistory:
    """The history with costs and unexplained usage updated from the brokers' new reports."""
    planner = settings.planner
    # From the same report as the usage: a bundle's broker in the view may have got it since.
    carried = traffic_of(brokers.traffic)
    used = usage(brokers.resources, settings.weights)
    known = np.array([history.costs.reported_ms.get(name, 0) for name in brokers.names])
    news = brokers.reported_ms > known
    elapsed = np.where(known > 0, (brokers.reported_ms - known) / 1000.0, 0.0)
    costs = history.costs
    names, kind = kinds(brokers.limits)
    for number, name in enumerate(names):
        rows = np.flatnonzero(news & (kind == number) & (carried > 0))
        if rows.size:
            kept = 0.5 ** (float(elapsed[rows].mean()) / planner.cost_half_life)
            costs = count_reports(costs, name, used[rows], carried[rows], kept)
    average = usage(brokers.smoothed_resources, settings.weights)
    idle, since = is_idle(traffic_of(brokers.smoothed_traffic)), float(elapsed.max(initial=0.0))
    costs = note_idle(costs, average[idle], brokers.limits[:, idle], since)
    reported = dict(zip(brokers.names, brokers.reported_ms.tolist(), strict=True))
    costs = replace(drop_strays(costs, names), reported_ms=reported)
    cost = cost_of(brokers, replace(history, costs=costs))
    before = np.array([history.unexplained.get(name, np.nan) for name in brokers.names])
    fading = 0.5 ** (elapsed / planner.half_life)
    squares = np.array([history.strays.get(name, 0.0) for name in brokers.names]) ** 2
    squared = (used - cost * carried - before) ** 2
    stepped = news & ~np.isnan(before)
    squares = np.where(stepped, fading * squares + (1 - fading) * squared, squares)
    ahead = fading * np.array([history.ahead.get(name, 0.0) for name in brokers.names])
    rest = average - cost * traffic_of(brokers.smoothed_traffic) + ahead
    columns = (rest.tolist(), np.sqrt(squares).tolist(), ahead.tolist())
    unexplained, strays, left = (dict(zip(brokers.names, c, strict=True)) for c in columns)
    return replace(
        history,
        costs=costs,
        unexplained=unexplained,
        strays=strays,
        ahead={name: value for name, value in left.items() if abs(value) > _TINY},
    )
