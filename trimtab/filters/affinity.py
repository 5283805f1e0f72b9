"""Spreads the namespaces of an anti-affinity group (Pulsar LoadManagerShared).

counts = what each broker has of the group: namespaces, or in the extensible manager bundles
keep the failure domains whose candidates have the least together, where domains are heeded
least = the least count of the candidates left
keep those without any of the group if least is 0, else those with the least count

A bundle may leave its broker if some candidate has none of the group, or less than its broker, or
not all candidates have as many.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from trimtab.arrays import Bools, Ints
from trimtab.filters.request import Request
from trimtab.model import namespace_of
from trimtab.settings import Settings
from trimtab.view import View

_NO_DOMAIN = "default"


class GroupCount(Enum):
    """What of a group is counted on a broker."""

    NAMESPACES = "namespaces"
    BUNDLES = "bundles"


def counts(request: Request, counted: GroupCount) -> Ints | None:
    """(n,) what each broker has of the group of the request's bundle; None without a group."""
    group = request.view.policies.group_of(namespace_of(request.bundle))
    if group is None:
        return None
    each = [request.projection.ranges(row) for row in request.projection.members(group)]
    total = np.zeros(len(request.view.brokers.names), dtype=np.int64)
    for ranges in each:
        total += ranges > 0 if counted is GroupCount.NAMESPACES else ranges
    return total


def spread(view: View, candidates: Bools, had: Ints | None, settings: Settings) -> Bools:
    """The candidates with least of the group; all of them where ``had`` is None."""
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
    """(n,) number of the failure domain that each broker is in; those in no domain share one."""
    domains = view.policies.domains
    named = [domains.get(broker, _NO_DOMAIN) for broker in view.brokers.names]
    numbers: Ints = np.unique(named, return_inverse=True)[1].reshape(-1)
    return numbers


def may_leave(broker: int, candidates: Bools, had: Ints | None) -> bool:
    """Whether a bundle may be unloaded from ``broker``, which stands among ``candidates``."""
    if had is None or not had.any():
        return True
    if not candidates.any():
        return False
    among = had[candidates]
    least = among.min()
    current = had[broker] if candidates[broker] else 0
    return bool(least == 0 or current > least or (among != least).any())
