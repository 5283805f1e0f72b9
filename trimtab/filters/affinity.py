"""Spread the namespaces of an anti-affinity group (Pulsar LoadManagerShared).

counts = how much of the group each broker has: namespaces, or in the extensible manager bundles
if failure domains count: keep the domains whose candidates together have the least
least = the least count among the remaining candidates
keep those without any of the group if least is 0, else those with the least count

A bundle may leave its broker if some candidate has none of the group, or less than its broker, or
if the candidates do not all have equally many.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from trimtab.arrays import Bools, Ints
from trimtab.filters.request import Request
from trimtab.policies import NO_DOMAIN
from trimtab.settings import Settings
from trimtab.view import View


class GroupCount(Enum):
    """What is counted of a group on a broker."""

    NAMESPACES = "namespaces"
    BUNDLES = "bundles"


def counts(request: Request, counted: GroupCount) -> Ints | None:
    """(n,) how much each broker has of the bundle's group; None if the bundle has no group."""
    group = request.view.policies.group_of(request.namespace)
    if group is None:
        return None
    each = [request.projection.ranges(row) for row in request.projection.members(group)]
    total = np.zeros(len(request.view.brokers.names), dtype=np.int64)
    for ranges in each:
        total += ranges > 0 if counted is GroupCount.NAMESPACES else ranges
    return total


def spread(request: Request, candidates: Bools, counted: GroupCount, settings: Settings) -> Bools:
    """The candidates with the least of the bundle's group; all of them if it has no group."""
    had, view = counts(request, counted), request.view
    if had is None or not candidates.any():
        return candidates
    if settings.placement.failure_domains and view.policies.domains:
        candidates = candidates & _emptiest_domains(view, candidates, had)
    fewest: Bools = candidates & (had == had[candidates].min())
    return fewest


def _emptiest_domains(view: View, candidates: Bools, had: Ints) -> Bools:
    domain = domain_of(view)
    sums = np.bincount(domain[candidates], had[candidates], domain.max() + 1)
    emptiest: Bools = sums[domain] == sums[domain[candidates]].min()
    return emptiest


def domain_of(view: View) -> Ints:
    """(n,) number of each broker's failure domain; brokers without a domain share one."""
    domains = view.policies.domains
    named = [domains.get(broker, NO_DOMAIN) for broker in view.brokers.names]
    numbers: Ints = np.unique(named, return_inverse=True)[1].reshape(-1)
    return numbers


def may_leave(broker: int, candidates: Bools, had: Ints | None) -> bool:
    """Whether a bundle may be unloaded from ``broker``, itself one of ``candidates``."""
    if had is None or not had.any():
        return True
    if not candidates.any():
        return False
    among = had[candidates]
    least = among.min()
    current = had[broker] if candidates[broker] else 0
    return bool(least == 0 or current > least or (among != least).any())
