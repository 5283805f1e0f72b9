"""Predicts the fleet (`trimtab.load_model.fleet`) from a view's reports and what is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trimtab.arrays import Bools
from trimtab.load_model.bursts import find_near_overload
from trimtab.load_model.by_traffic import TINY, Reported, predict_by_traffic
from trimtab.load_model.estimating.bundle_leaps import expect_levels, record_leaps
from trimtab.load_model.estimating.estimates import Samples
from trimtab.load_model.estimating.rows import locate_keys
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.first_reports import judge_first
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.fleet_change import is_filling, note_brokers
from trimtab.load_model.history import Foreseen, PlannerHistory
from trimtab.load_model.in_transit import find_arriving
from trimtab.load_model.lineage import drop_ancestors, hand_down_leaps
from trimtab.load_model.odds import bound
from trimtab.load_model.passing_use import leave_out_own
from trimtab.load_model.resources.excess import count_held
from trimtab.load_model.resources.expect_reports import ByKey
from trimtab.load_model.resources.learn_needs import Terms, learn_needs
from trimtab.load_model.resources.needs import Needs
from trimtab.load_model.resources.takes import compete, weight_of
from trimtab.load_model.room import find_takes
from trimtab.load_model.traffic_cost import learn_costs, traffic_of
from trimtab.names import identities
from trimtab.settings import Settings
from trimtab.view import View


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
    now = view.now_ms, history.known_since_ms
    expected = expect_levels(history.leaps, history.estimates, *now)
    bundles = Reported(samples.keys, order, traffic, arriving, expected)
    fleet, sizes, history = predict_by_traffic(view, bundles, history, settings)
    if compete(view.brokers, settings.weights):
        terms = Terms(
            bursting=_find_bursting(view, bundles, history),
            weight=weight_of(settings.weights),
            near_overload=find_near_overload(settings),
            half_life=settings.planner.cost_half_life,
            own_half_life=settings.planner.half_life,
        )
        needs = learn_needs(past.needs, view, ByKey(samples.keys, order), terms)
        history = replace(history, needs=needs)
        takes = find_takes(view, needs, sizes, fleet.whole, settings)
        if takes is not None:
            takes = leave_out_own(takes, view.brokers, history, settings)
            takes = takes.joined_by(arriving / max(float(sizes.full.sum()), TINY))
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


def _find_bursting(view: View, bundles: Reported, history: PlannerHistory) -> Bools:
    """(n,) whether a broker has a bundle whose leap may pass, or whose newest sample is an outlier:
    that may be a leap, too."""
    estimates = history.estimates
    bursting = estimates.far | bundles.expected.passing
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
