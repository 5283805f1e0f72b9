"""Predicts the fleet (`trimtab.load_model.fleet`) from a view's reports and what is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.bursts import (
    Hosts,
    find_largest,
    find_near_overload,
    leave_out_bursts,
)
from trimtab.load_model.estimating.bundle_leaps import expect_levels, record_leaps
from trimtab.load_model.estimating.estimates import Keys, Samples
from trimtab.load_model.estimating.excursions import are_bursts_common, find_hidden_part
from trimtab.load_model.estimating.rows import locate_keys
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.falls import Carried, find_falls, follow_highs
from trimtab.load_model.first_reports import judge_first
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.fleet_change import is_filling, note_brokers
from trimtab.load_model.history import Foreseen, PlannerHistory
from trimtab.load_model.in_transit import find_arriving
from trimtab.load_model.lineage import drop_ancestors, hand_down_leaps
from trimtab.load_model.odds import bound
from trimtab.load_model.passing_use import find_doubted, leave_out_own
from trimtab.load_model.resources.excess import count_held
from trimtab.load_model.resources.expect_reports import ByKey
from trimtab.load_model.resources.learn_needs import Terms, learn_needs
from trimtab.load_model.resources.needs import Needs
from trimtab.load_model.resources.own_use import leave_out_doubted
from trimtab.load_model.resources.takes import compete, weight_of
from trimtab.load_model.room import Sizes, find_takes, find_usage
from trimtab.load_model.traffic_cost import cost_of, learn_costs, traffic_of
from trimtab.load_model.wariness import find_slack, rests_after_plan, unrest_of
from trimtab.names import identities
from trimtab.settings import Settings
from trimtab.view import View

_TINY = 1e-9
"""Floor of total size and gain, which are divided by."""


class _Bundles(NamedTuple):
    """The m bundles of a view, as the estimates know them."""

    keys: Keys
    """Ascending."""
    order: Ints
    """(m,) the view's row of each key."""
    traffic: Floats
    """(m,) bytes/s as reported, by the rows of the view."""
    arriving: Floats
    """(n,) total size of further bundles, on their way to each broker, that no broker reports."""


def observe_fleet(
    view: View, past: PlannerHistory, settings: Settings
) -> tuple[Fleet, PlannerHistory]:
    """The fleet predicted from the view's reports, and the history that counts them."""
    if past.foreseen.keys() != set(view.brokers.names):
        # Plans for another set of brokers are no reason to leave this one as it is.
        past = replace(past, unrest=0.0)
    keys = identities(view.bundles.names)
    order = np.argsort(keys)
    traffic = traffic_of(view.bundles.stats)
    reported_ms = view.brokers.reported_ms[view.bundles.owner]
    namespace = view.bundles.namespace[order]
    samples = Samples(keys[order], traffic[order], reported_ms[order], namespace)
    known = drop_ancestors(past.estimates, view.bundles.names, samples.keys, order)
    leaps = hand_down_leaps(past.leaps, past.estimates, view.bundles.names, samples, order)
    history = replace(past, estimates=known, leaps=leaps)
    history = _sampled(history, samples, settings, view.now_ms)
    history = learn_costs(view.brokers, history, settings)
    arriving = find_arriving(
        history.sent, view.brokers.names, samples.keys, history.estimates, view.now_ms
    )
    bundles = _Bundles(samples.keys, order, traffic, arriving)
    fleet, sizes, history = _predict(view, bundles, history, settings)
    if compete(view.brokers, settings.weights):
        terms = Terms(
            bursting=_find_bursting(view, bundles, history),
            weight=weight_of(settings.weights),
            full=find_near_overload(settings),
            half_life=settings.planner.cost_half_life,
            own_half_life=settings.planner.half_life,
        )
        needs = learn_needs(past.needs, view, ByKey(samples.keys, order), terms)
        history = replace(history, needs=needs)
        takes = find_takes(view, needs, sizes, fleet.whole, settings)
        if takes is not None:
            takes = leave_out_own(takes, view.brokers, history, settings)
            takes = takes.joined_by(arriving / max(float(sizes.full.sum()), _TINY))
            fleet = replace(fleet, usage=takes.usage, takes=takes, busy=count_held(needs.spells))
    elif len(past.needs.keys):
        history = replace(history, needs=Needs(spells=past.needs.spells))
    history, filling = _foresee(view.brokers.names, fleet, history, past, view.now_ms)
    if not history.estimates.known:
        fleet = judge_first(fleet, view)
    return replace(fleet, ready=fleet.sure > 0 and not filling), history


def _sampled(
    past: PlannerHistory, samples: Samples, settings: Settings, now_ms: int
) -> PlannerHistory:
    """The history with the estimates and leaps after the bundles' new samples."""
    planner = settings.planner
    limit = bound(len(samples.keys), settings.round.interval, planner.false_moves)
    estimates = follow_samples(past.estimates, samples, planner.half_life, limit)
    since_ms = past.known_since_ms
    leaps = record_leaps(past.leaps, past.estimates, estimates, now_ms, since_ms)
    return replace(past, estimates=estimates, leaps=leaps)


def _predict(
    view: View, bundles: _Bundles, history: PlannerHistory, settings: Settings
) -> tuple[Fleet, Sizes, PlannerHistory]:
    """The fleet where traffic alone tells what bundles add to a broker, other sizes of the bundles,
    and the history that knows what namespaces carried."""
    estimates, leaps, order = history.estimates, history.leaps, bundles.order
    # Looked up in key order: then they are mostly exactly the estimates' keys, a fast path.
    at = np.empty_like(order)
    at[order] = locate_keys(estimates, bundles.keys)[0]
    level = estimates.current[at]
    # For bundles that no broker reports now the share is known, but not the traffic.
    whole = float(bundles.traffic.sum()) / max(float(level.sum()), _TINY)
    hosts = _find_hosts(view, bundles, history, (level, whole), settings)
    gain, where, n = hosts.gain, hosts.where, len(hosts.gain)
    now = view.now_ms, history.known_since_ms
    settled = leaps.wait_s == 0 and not are_bursts_common(leaps, len(level), *now)
    chance = (estimates.chance if settled else estimates.spread)[at]
    carried = whole * level, whole**2 * chance, bundles.traffic
    history, falls = _note_falls(view, history, *carried)
    resting = int(np.count_nonzero(falls > 1.0)) if settled else 0
    expected = expect_levels(leaps, estimates, *now)
    near_overload, known = find_near_overload(settings), expected.recurring[at] | (not settled)
    passing, relieved = leave_out_bursts(
        hosts, hosts.usage(level), expected.passing[at], settings, known=known
    )
    size = np.where(passing, expected.level[at], level)
    hidden = find_hidden_part(leaps, len(level), *now) * np.where(passing, 0.0, size)
    slack = find_slack(settings, unrest_of(history, view.now_ms))
    before = size * falls[view.bundles.namespace] if resting else None
    # A fall may end what was a burst from the first: its broker gives nothing for what is gone.
    full = level if settled else np.minimum(size, level)
    sizes = Sizes(size, full, before, slack)
    fleet = Fleet(
        usage=find_usage(sizes, hosts, settings),
        gain=gain,
        size=size,
        where=where,
        movable=view.bundles.movable & (size > 0),
        variance=gain**2 * np.bincount(where, chance, n),
        hidden=gain * find_largest(hidden, where, n),
        whole=whole,
        ready=False,
        struck=estimates.count_event(~expected.passing) if settled else 0,
        answered=rests_after_plan(history, settings, view.now_ms),
        limit=near_overload if relieved.any() else 0.0,
        full=near_overload,
        passing=int(np.count_nonzero(passing)),
        resting=resting,
    )
    return fleet, sizes, history


def _note_falls(
    view: View, history: PlannerHistory, average: Floats, variance: Floats, newest: Floats
) -> tuple[PlannerHistory, Floats]:
    """The history with what namespaces carried at their highest, and (s,) by how much each of them
    fell; (m,) traffic in bytes/s."""
    names = view.bundles.namespaces
    if not history.estimates.known:
        return history, np.ones(len(names))
    carried = Carried.summed(view.bundles.namespace, len(names), average, variance, newest)
    highs = follow_highs(history.highs, names, carried, view.now_ms, history.known_since_ms)
    return replace(history, highs=highs), find_falls(highs, carried)


def _find_hosts(
    view: View,
    bundles: _Bundles,
    history: PlannerHistory,
    sizes: tuple[Floats, float],
    settings: Settings,
) -> Hosts:
    """The brokers and what will be there; ``sizes``: (m,) those of the bundles, and the bytes/s of
    a size of 1."""
    brokers, (size, whole) = view.brokers, sizes
    gain = np.maximum(whole * cost_of(brokers, history), _TINY)
    rest = np.array([history.unexplained[name] for name in brokers.names])
    doubted = find_doubted(brokers, history, rest, settings)
    hosts = Hosts(rest + gain * bundles.arriving, gain, view.intended)
    full = hosts.usage(size)
    return hosts._replace(rest=hosts.rest + leave_out_doubted(full, doubted) - full)


def _find_bursting(view: View, bundles: _Bundles, history: PlannerHistory) -> Bools:
    """(n,) whether a broker has a bundle whose leap may pass, or whose newest sample is an outlier:
    that may be a leap, too."""
    estimates, since_ms = history.estimates, history.known_since_ms
    expected = expect_levels(history.leaps, estimates, view.now_ms, since_ms)
    bursting = estimates.far | expected.passing
    at = locate_keys(estimates, bundles.keys)[0]
    hosts, n = view.bundles.owner[bundles.order], len(view.brokers.names)
    found: Bools = np.bincount(hosts, bursting[at], n) > 0
    return found


def _foresee(
    names: Sequence[str], fleet: Fleet, history: PlannerHistory, past: PlannerHistory, now_ms: int
) -> tuple[PlannerHistory, bool]:
    """The history with what is predicted of each broker, and whether brokers that joined are being
    filled; ``past`` is the history of the round before."""
    columns = (fleet.usage.tolist(), fleet.gain.tolist(), fleet.variance.tolist())
    foreseen = dict(zip(names, map(Foreseen, *columns), strict=True))
    filling = 0 < past.filling_ms == now_ms or is_filling(past.foreseen, foreseen)
    change = past.change
    if not filling:
        change = note_brokers(change, past.foreseen, foreseen, now_ms)
    history = replace(
        history,
        foreseen=foreseen,
        shifted={},
        change=change,
        filling_ms=now_ms if filling else 0,
    )
    return history, filling
