"""Usage that counts: neither loads that leapt nor loads that fell make room while they may pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.arrays import Floats
from trimtab.load_model.bursts import Hosts, find_near_overload, make_no_room
from trimtab.load_model.falls import leave_out_fallen
from trimtab.load_model.resources.needs import Needs
from trimtab.load_model.resources.takes import Takes, spread_traffic, takes_of
from trimtab.settings import Settings
from trimtab.view import View


class Sizes(NamedTuple):
    """(m,) sizes of the bundles."""

    counted: Floats
    full: Floats
    """With all leaps; where leaps are known to pass, with falls alone."""
    before: Floats | None
    """Before their namespaces' falls; None if nothing fell."""
    slack: float
    """How far a broker may count from its usage because of falls."""


def find_usage(sizes: Sizes, hosts: Hosts, settings: Settings) -> Floats:
    """(n,) usage that counts, where traffic alone tells what bundles add to a broker."""
    usage = hosts.usage(sizes.counted)
    if sizes.full is not sizes.counted:
        usage = make_no_room(usage, hosts.usage(sizes.full))
    if sizes.before is None:
        return usage
    before = hosts.usage(sizes.before)
    return leave_out_fallen(usage, before, sizes.slack, find_near_overload(settings))


def find_takes(
    view: View, needs: Needs, sizes: Sizes, whole: float, settings: Settings
) -> Takes | None:
    """What bundles take where several resources compete; ``whole``: bytes/s of a size of 1."""

    def of(size: Floats) -> Takes | None:
        return takes_of(view, needs, spread_traffic(view.bundles, size * whole), settings.weights)

    takes, full = of(sizes.counted), None
    if takes is None:
        return None
    if not np.array_equal(sizes.counted, sizes.full):
        full = of(sizes.full)
    if full is not None:
        takes = takes.at_least(make_no_room(takes.shares, full.shares))
    if sizes.before is None:
        return takes
    fell = spread_traffic(view.bundles, (sizes.before - sizes.counted) * whole)
    before = takes.shares_with(needs.slopes @ fell, view.intended)
    limit = find_near_overload(settings)
    return takes.at_least(leave_out_fallen(takes.shares, before, sizes.slack, limit))
