"""Usage that counts: neither loads that leapt nor loads that fell make room while they may pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.arrays import Floats
from trimtab.load_model.bursts import Hosts, find_near_overload, make_limited_room, make_no_room
from trimtab.load_model.falls import leave_out_fallen
from trimtab.load_model.reported_use import Reports, bound_without_leaps
from trimtab.load_model.resources.needs import Needs
from trimtab.load_model.resources.takes import Takes, spread_traffic, takes_of
from trimtab.settings import Settings
from trimtab.view import View


class Sizes(NamedTuple):
    """(m,) sizes of the bundles."""

    counted: Floats
    leapt: Floats
    """With all leaps."""
    full: Floats
    """The same; where leaps are known to pass, with falls alone."""
    bursting: bool
    """Whether leaps are left out that are known to pass."""
    before: Floats | None
    """Before their namespaces' falls; None if nothing fell."""
    slack: float
    """How far a broker may count from its usage because of falls."""


def find_usage(sizes: Sizes, hosts: Hosts, reports: Reports, settings: Settings) -> Floats:
    """(n,) usage that counts, where traffic alone tells what bundles add to a broker."""
    usage, limit = hosts.usage(sizes.counted), find_near_overload(settings)
    leapt = usage
    if sizes.leapt is not sizes.counted:
        leapt = hosts.usage(sizes.leapt)
        usage = bound_without_leaps(usage, leapt, reports)
    if sizes.full is not sizes.counted:
        usage = make_no_room(usage, hosts.usage(sizes.full))
    if sizes.bursting:
        usage = make_limited_room(usage, leapt, limit)
    if sizes.before is None:
        return usage
    return leave_out_fallen(usage, hosts.usage(sizes.before), sizes.slack, limit)


def find_takes(
    view: View, needs: Needs, sizes: Sizes, whole: float, settings: Settings
) -> Takes | None:
    """What bundles take where several resources compete; ``whole``: bytes/s of a size of 1."""

    def of(size: Floats) -> Takes | None:
        return takes_of(view, needs, spread_traffic(view.bundles, size * whole), settings.weights)

    takes = of(sizes.counted)
    if takes is None:
        return None
    limit = find_near_overload(settings)
    if not np.array_equal(sizes.counted, sizes.full) and (full := of(sizes.full)) is not None:
        takes = takes.at_least(make_no_room(takes.shares, full.shares))
    if sizes.bursting and (leapt := of(sizes.leapt)) is not None:
        takes = takes.at_least(make_limited_room(takes.shares, leapt.shares, limit))
    if sizes.before is None:
        return takes
    fell = spread_traffic(view.bundles, (sizes.before - sizes.counted) * whole)
    before = takes.shares_with(needs.slopes @ fell, view.intended)
    return takes.at_least(leave_out_fallen(takes.shares, before, sizes.slack, limit))
