"""The fleet where traffic alone tells what bundles add to a broker."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.load_model.bursts import Hosts, find_largest, find_near_overload, leave_out_bursts
from trimtab.load_model.estimating.bundle_leaps import Expected
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.excursions import find_hidden_part
from trimtab.load_model.estimating.fleet_events import count_event
from trimtab.load_model.estimating.rows import locate_rows
from trimtab.load_model.falls import Carried, Highs, find_falls, follow_highs, is_growing
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.passing_use import find_doubted
from trimtab.load_model.reported_use import find_missing, read_reports
from trimtab.load_model.resources.own_use import leave_out_doubted
from trimtab.load_model.room import Sizes, find_usage
from trimtab.load_model.traffic_cost import cost_of
from trimtab.load_model.wariness import find_slack, has_just_planned, unrest_of
from trimtab.settings import Settings
from trimtab.view import View

TINY = 1e-9
"""Floor of total size and gain, which are divided by."""


class Reported(NamedTuple):
    """The m bundles of a view, as the estimates know them."""

    keys: Keys
    """Ascending."""
    order: Ints
    """(m,) the view's row of each key."""
    traffic: Floats
    """(m,) bytes/s as reported, by the rows of the view."""
    arriving: Floats
    """(n,) total size of further bundles, on their way to each broker, that no broker reports."""
    unreported: Floats
    """(n,) that of bundles that each broker has and does not report at the moment."""
    expected: Expected
    """Of the bundles of the estimates."""

    @property
    def beside(self) -> Floats:
        """(n,) total size of bundles that are in no view, and will be on each broker."""
        return self.arriving + self.unreported


def predict_by_traffic(
    view: View, bundles: Reported, history: PlannerHistory, settings: Settings
) -> tuple[Fleet, Sizes, Highs]:
    """The fleet where traffic alone tells what bundles add to a broker, other sizes of the bundles,
    and what namespaces carried of late at their highest."""
    estimates, leaps = history.estimates, history.leaps
    expected = bundles.expected
    at = locate_rows(estimates, bundles.keys, bundles.order)
    level, silent = estimates.current[at], estimates.silent(at, bundles.traffic)
    # For bundles that no broker reports now the share is known, but not the traffic.
    whole = float(bundles.traffic.sum()) / max(float(level[~silent].sum()), TINY)
    brokers, where, n = view.brokers, view.intended, len(view.brokers.names)
    gain = np.maximum(whole * cost_of(brokers, history), TINY)
    rest = np.array([history.unexplained[name] for name in brokers.names])
    reports = read_reports(history, brokers, settings)
    there = Hosts(rest + gain * bundles.unreported, gain, view.bundles.owner)
    missing = find_missing(there.usage(level), reports)
    hosts = Hosts(rest + missing + gain * bundles.beside, gain, where)
    hosts = _leave_out_own(hosts, level, find_doubted(brokers, history, settings))
    leaps_last = leaps.wait_s == 0 and not expected.common
    chance = (estimates.chance if leaps_last else estimates.spread)[at]
    highs, falls, growing = _follow_falls(
        view, history, whole * level, whole**2 * chance, bundles.traffic
    )
    resting = int(np.count_nonzero(falls > 1.0)) if leaps_last else 0
    passing = relieved = np.zeros(len(level), np.bool_)
    if expected.passing.any():
        passing, relieved = leave_out_bursts(
            hosts,
            hosts.usage(level),
            expected.passing[at],
            settings,
            known=expected.recurring[at] | (not leaps_last),
        )
    size = np.where(passing, expected.level[at], level) if passing.any() else level
    sizes = Sizes(
        counted=size,
        leapt=level,
        # A fall may end what was a burst from the first: its broker gives nothing for what is gone.
        full=level if leaps_last else np.minimum(size, level),
        bursting=bool(passing.any()) and not leaps_last,
        before=size * falls[view.bundles.namespace] if resting else None,
        slack=find_slack(settings, unrest_of(history, view.now_ms)),
    )
    hidden_part = find_hidden_part(leaps, len(level), view.now_ms, history.known_since_ms)
    hidden = hidden_part * np.where(passing, 0.0, size) if hidden_part else np.zeros(0)
    near_overload = find_near_overload(settings)
    fleet = Fleet(
        usage=find_usage(sizes, hosts, reports, settings),
        gain=gain,
        size=size,
        where=where,
        # What counters that do not count yet say later is open.
        movable=view.bundles.movable & (size > 0) & ~silent,
        variance=gain**2 * np.bincount(where, chance, n),
        hidden=gain * find_largest(hidden, where, n),
        whole=whole,
        struck=count_event(estimates, ~expected.passing) if leaps_last else 0,
        just_planned=has_just_planned(history, settings, view.now_ms),
        limit=near_overload if relieved.any() else 0.0,
        near_overload=near_overload,
        passing=int(np.count_nonzero(passing)),
        resting=resting,
        growing=growing and leaps_last,
        as_reported=int(np.count_nonzero(missing)),
    )
    return fleet, sizes, highs


def _follow_falls(
    view: View, history: PlannerHistory, average: Floats, variance: Floats, newest: Floats
) -> tuple[Highs, Floats, bool]:
    """What namespaces carried of late at their highest, (s,) by how much each of them fell, and
    whether the fleet grows beyond its highest; (m,) traffic in bytes/s."""
    names = view.bundles.namespaces
    if not history.estimates.known:
        return history.highs, np.ones(len(names)), False
    carried = Carried.summed(view.bundles.namespace, len(names), average, variance, newest)
    highs = follow_highs(history.highs, names, carried, view.now_ms, history.known_since_ms)
    return highs, find_falls(highs, carried), is_growing(highs, carried)


def _leave_out_own(hosts: Hosts, size: Floats, doubted: Floats) -> Hosts:
    """The brokers without what may pass of their own use, (n,) ``doubted``."""
    usage = hosts.usage(size)
    return hosts._replace(rest=hosts.rest + leave_out_doubted(usage, doubted) - usage)
