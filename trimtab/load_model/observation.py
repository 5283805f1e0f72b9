"""Predicts the fleet (`trimtab.load_model.fleet`) from a view's reports and what is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load import weight_of
from trimtab.load_model.beyond_bundles import find_held
from trimtab.load_model.bursts import find_near_overload
from trimtab.load_model.by_traffic import TINY, Reported, predict_by_traffic
from trimtab.load_model.estimating.bundle_leaps import expect_levels, record_leaps
from trimtab.load_model.estimating.estimates import Samples
from trimtab.load_model.estimating.rows import locate_keys, locate_rows
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.first_reports import judge_first
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.fleet_change import is_filling, note_brokers
from trimtab.load_model.history import Foreseen, PlannerHistory
from trimtab.load_model.in_transit import find_arriving
from trimtab.load_model.lineage import hand_down_leaps, hand_down_shares
from trimtab.load_model.odds import bound
from trimtab.load_model.passing_use import leave_out_own
from trimtab.load_model.reported_use import note_hosted
from trimtab.load_model.resources.excess import count_held
from trimtab.load_model.resources.expect_reports import ByKey
from trimtab.load_model.resources.learn_needs import Terms, learn_needs
from trimtab.load_model.resources.needs import Needs
from trimtab.load_model.resources.takes import compete
from trimtab.load_model.room import Sizes, find_takes
from trimtab.load_model.traffic_cost import learn_costs, traffic_of
from trimtab.load_model.unreported import find_unreported, find_young, note_hosts
from trimtab.names import identities
from trimtab.settings import Settings
from trimtab.view import View


def observe_fleet(
    view: View, past: PlannerHistory, settings: Settings
) -> tuple[Fleet, PlannerHistory]:
    """The fleet predicted from the view's reports, and the history that counts them."""
    history, bundles = _count_reports(view, past, settings)
    fleet, sizes, highs = predict_by_traffic(view, bundles, history, settings)
    needs = past.needs
    if compete(view.brokers, settings.weights):
        needs = _learn_needs(view, bundles, history, settings)
        takes = find_takes(view, needs, sizes, fleet.whole, settings)
        if takes is not None:
            takes = leave_out_own(takes, view.brokers, history, settings)
            takes = takes.joined_by(_find_joining(bundles, history, sizes, fleet.where))
            busy = count_held(needs.spells)
            fleet = replace(fleet, usage=takes.usage, takes=takes, busy=busy, as_reported=0)
    elif len(needs.keys):
        needs = Needs(spells=needs.spells)
    foreseen = _foresee(view.brokers.names, fleet)
    # A second look at a view knows its brokers already: it fills if it did at the first.
    filling = 0 < past.filling_ms == view.now_ms or is_filling(past.foreseen, foreseen)
    change = past.change
    if not filling:
        change = note_brokers(change, past.foreseen, foreseen, view.now_ms)
    if not history.estimates.known:
        fleet = judge_first(fleet, view)
    return replace(fleet, filling=filling), replace(
        history,
        needs=needs,
        highs=highs,
        foreseen=foreseen,
        shifted={},
        change=change,
        filling_ms=view.now_ms if filling else 0,
    )


def _count_reports(
    view: View, past: PlannerHistory, settings: Settings
) -> tuple[PlannerHistory, Reported]:
    """The history with the levels and leaps of bundles and the costs of brokers after the view's
    reports, and what is then known of the bundles."""
    names, brokers, now_ms = view.bundles.names, view.brokers, view.now_ms
    by_row = identities(names)
    order = np.argsort(by_row)
    keys, traffic = by_row[order], traffic_of(view.bundles.stats)
    reported_ms = brokers.reported_ms[view.bundles.owner]
    samples = Samples(keys, traffic[order], reported_ms[order], view.bundles.namespace[order])
    known = hand_down_shares(past.estimates, names, samples, order)
    hosts = view.bundles.owner[order]
    samples = samples._replace(young=find_young(known, keys, hosts, brokers))
    leaps = hand_down_leaps(past.leaps, past.estimates, names, samples, order)
    planner = settings.planner
    limit = bound(len(keys), settings.round.interval, planner.false_moves)
    estimates = follow_samples(known, samples, planner.half_life, limit)
    leaps = record_leaps(leaps, known, estimates, now_ms, past.known_since_ms)
    # Plans for another set of brokers are no reason to leave this one as it is.
    unrest = past.unrest if past.foreseen.keys() == set(brokers.names) else 0.0
    estimates = note_hosts(estimates, samples, hosts, brokers.names)
    unreported = find_unreported(estimates, keys, brokers.names, past.sent, now_ms)
    hosted = note_hosted(past.hosted, view, by_row, unreported, settings)
    history = replace(past, estimates=estimates, leaps=leaps, unrest=unrest, hosted=hosted)
    absent = np.bincount(unreported.where, unreported.size, len(brokers.names)).astype(np.float64)
    at = locate_rows(estimates, keys, order)
    held = find_held(estimates, at, traffic, view.bundles.owner, absent)
    history = learn_costs(brokers, history, held, settings)
    expected = expect_levels(leaps, estimates, now_ms, history.known_since_ms)
    arriving = find_arriving(history.sent, brokers.names, keys, estimates, now_ms)
    return history, Reported(keys, order, traffic, arriving, absent, expected)


def _find_joining(bundles: Reported, history: PlannerHistory, sizes: Sizes, where: Ints) -> Floats:
    """(n,) load of each broker that no statistics of bundles tell, in parts of what they tell."""
    at = locate_rows(history.estimates, bundles.keys, bundles.order)
    silent = np.where(history.estimates.silent(at, bundles.traffic), sizes.full, 0.0)
    told = max(float(sizes.full.sum() - silent.sum()), TINY)
    joining: Floats = bundles.beside + np.bincount(where, silent, len(bundles.beside))
    return joining / told


def _learn_needs(
    view: View, bundles: Reported, history: PlannerHistory, settings: Settings
) -> Needs:
    terms = Terms(
        bursting=_find_bursting(view, bundles, history),
        weight=weight_of(settings.weights),
        near_overload=find_near_overload(settings),
        half_life=settings.planner.cost_half_life,
        own_half_life=settings.planner.half_life,
    )
    return learn_needs(history.needs, view, ByKey(bundles.keys, bundles.order), terms)


def _find_bursting(view: View, bundles: Reported, history: PlannerHistory) -> Bools:
    """(n,) whether a broker has a bundle whose leap may pass, or whose newest sample is an outlier:
    that may be a leap, too."""
    estimates = history.estimates
    bursting = estimates.far | bundles.expected.passing
    at = locate_keys(estimates, bundles.keys)[0]
    hosts, n = view.bundles.owner[bundles.order], len(view.brokers.names)
    found: Bools = np.bincount(hosts, bursting[at], n) > 0
    return found


def _foresee(names: Sequence[str], fleet: Fleet) -> dict[str, Foreseen]:
    """Broker to what is predicted of it."""
    columns = (fleet.usage.tolist(), fleet.gain.tolist(), fleet.variance.tolist())
    return dict(zip(names, map(Foreseen, *columns), strict=True))
