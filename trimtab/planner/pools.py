"""Pools: brokers, and the bundles that are planned among them.

pool = the brokers that the namespaces under one isolation policy, or under none, may be on
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trimtab.arrays import Bools
from trimtab.filters.isolation import Permits
from trimtab.policies import Isolation, Policies
from trimtab.view import Bundles


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Brokers (n,) and the bundles (m,) that may move between them."""

    brokers: Bools
    free: Bools
    """Bundles of namespaces without an anti-affinity group."""
    grouped: Bools | None
    """Bundles of namespaces in a group; None if there are no groups."""


def pools(
    bundles: Bundles, policies: Policies, permits: Permits, available: Bools
) -> Iterator[Pool]:
    """The pool of bundles without an isolation policy, then one for each policy in use; policies
    with the same brokers share a pool. ``permits`` are the policies applied to the brokers."""
    grouped: Bools | None = None
    if policies.groups:
        members = [policies.group_of(space) is not None for space in bundles.namespaces]
        grouped = np.array([*members, False])[bundles.namespace]
    for brokers, here in _shares(bundles, policies, permits, available):
        free = here if grouped is None else here & ~grouped
        yield Pool(brokers, free, None if grouped is None else here & grouped)


def _shares(
    bundles: Bundles, policies: Policies, permits: Permits, available: Bools
) -> Iterator[tuple[Bools, Bools]]:
    """Pairs of brokers (n,) and the bundles (m,) that may be on them and nowhere else."""
    if not policies.isolation:
        yield permits.of_others(available), np.ones(len(bundles.owner), np.bool_)
        return
    spaces_of: dict[Isolation | None, list[int]] = {
        policy: [] for policy in (None, *policies.isolation.values())
    }
    for row, space in enumerate(bundles.namespaces):
        spaces_of[policies.isolation_of(space)].append(row)
    brokers: dict[bytes, Bools] = {}
    number = np.full(len(bundles.namespaces) + 1, -1)
    for rows in spaces_of.values():
        if rows:
            allowed = permits.of(bundles.namespaces[rows[0]], available)
            brokers.setdefault(allowed.tobytes(), allowed)
            number[rows] = [*brokers].index(allowed.tobytes())
    column = number[bundles.namespace]
    for place, allowed in enumerate(brokers.values()):
        yield allowed, column == place
