"""The initial state: brokers, bundles, and each bundle's load and owner.

load   = log-normal or bimodal, scaled so that all load over all capacity is the mean
target = the load each broker should carry: its capacity times its initial usage
owner  = the heaviest bundle first, each to the broker that lacks the largest share of its target
A group's members go first, each to a broker without the group.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from simulation.load_model import RING, broker_names
from simulation.scenarios.scenario import Scenario
from trimtab.arrays import Counts, Floats, Ints
from trimtab.names import Ranges
from trimtab.policies import Policies


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """n brokers and m bundles by row."""

    brokers: tuple[str, ...]
    capacity: Floats
    """(n,)"""
    domain: Ints
    """(n,) failure domain; if none are known, each broker is its own."""
    present: int
    """The number of brokers, counted from the first, that exist at the start."""
    namespaces: tuple[str, ...]
    namespace: Counts
    ranges: Ranges
    load: Floats
    """(m,)"""
    owner: Ints
    group: Ints
    """(namespaces,) anti-affinity group, -1 for none."""
    kind: Ints
    """(m,) which of the scenario's kinds each bundle is of; 0 if all are alike."""

    def policies(self, scenario: Scenario) -> Policies:
        """Groups and domains, as operators would configure them."""
        groups = {
            name: f"group-{group}"
            for name, group in zip(self.namespaces, self.group.tolist(), strict=True)
            if group >= 0
        }
        domains = zip(self.brokers, self.domain.tolist(), strict=True) if scenario.domains else ()
        return Policies(groups=groups, domains={name: f"zone-{zone}" for name, zone in domains})


def populate(scenario: Scenario) -> Population:
    """Create the population; all randomness comes from the scenario's seed."""
    rng = np.random.default_rng([scenario.seed, 0])
    n, present = scenario.brokers, scenario.start.brokers or scenario.brokers
    capacity = np.resize(np.array(scenario.classes), n)
    load = _loads(scenario, rng)
    load *= scenario.mean * capacity.sum() / load.sum()
    targets = _targets(scenario, capacity[:present], rng)
    # Scaled: at first few brokers carry what all will carry later.
    targets *= load.sum() / targets.sum()
    namespaces, namespace, group = _namespaces(scenario)
    if scenario.affinity.groups:
        _typical_members_first(load, scenario)
    owner = _deal(load, targets, group[namespace], rng)
    _violate(owner, scenario)
    return Population(
        brokers=broker_names(n),
        capacity=capacity,
        domain=np.arange(n) % (scenario.domains or n),
        present=present,
        namespaces=namespaces,
        namespace=namespace,
        ranges=_ranges(namespace),
        load=load,
        owner=owner,
        group=group,
        kind=_kinds(scenario, namespace),
    )


def _kinds(scenario: Scenario, namespace: Counts) -> Ints:
    # Random numbers of its own: with kinds a scenario has the loads and owners it has without.
    rng, kinds = np.random.default_rng([scenario.seed, 8]), max(1, len(scenario.kinds))
    if scenario.need.by_namespace:
        of_namespace = rng.permutation(np.arange(int(namespace.max()) + 1) % kinds)
        return of_namespace[namespace]
    return rng.permutation(np.arange(scenario.bundles) % kinds)


def _loads(scenario: Scenario, rng: np.random.Generator) -> Floats:
    if scenario.sizes == "log-normal":
        return rng.lognormal(0.0, scenario.sigma, scenario.bundles)
    large = rng.random(scenario.bundles) < scenario.large_share
    return np.where(large, scenario.large_ratio, 1.0)


def _targets(scenario: Scenario, capacity: Floats, rng: np.random.Generator) -> Floats:
    """(n,) targets: each hardware class has the full spread, to keep the scenario's mean."""
    half = scenario.start.spread / 2
    usage = np.full(capacity.size, scenario.mean)
    for each in np.unique(capacity):
        rows = np.flatnonzero(capacity == each)
        if rows.size > 1:
            usage[rows] += rng.permutation(np.linspace(-half, half, rows.size))
    return usage * capacity


def _namespaces(scenario: Scenario) -> tuple[tuple[str, ...], Counts, Ints]:
    """Names, (m,) the namespace of each bundle, (namespaces,) the group of each."""
    groups, members = scenario.affinity.groups, scenario.affinity.members
    apart = groups * members
    width = len(str(scenario.namespaces - 1))
    names = [f"sim/apart-{i // members}-{i % members}" for i in range(apart)]
    names += [f"sim/ns-{i:0{width}d}" for i in range(scenario.namespaces)]
    each = np.arange(scenario.bundles - apart) * scenario.namespaces // (scenario.bundles - apart)
    rows = np.concatenate((np.arange(apart), apart + each)).astype(np.int32)
    group = np.full(len(names), -1)
    group[:apart] = np.arange(apart) // members
    return tuple(names), rows, group


def _ranges(namespace: Counts) -> Ranges:
    """(2, m) ranges that tile each namespace."""
    ranges = np.empty((2, namespace.size), dtype=np.uint32)
    starts = [0, *(np.flatnonzero(np.diff(namespace)) + 1).tolist(), namespace.size]
    for first, last in pairwise(starts):
        bounds = np.append(np.arange(last - first) * (RING // (last - first)), RING - 1)
        ranges[:, first:last] = bounds[:-1], bounds[1:]
    return ranges


def _typical_members_first(load: Floats, scenario: Scenario) -> None:
    """Swap loads so that group members have about mean load: a giant could not be placed."""
    apart = scenario.affinity.groups * scenario.affinity.members
    typical = np.argsort(np.abs(load - load.mean()), kind="stable")[:apart]
    order = np.concatenate((typical, np.setdiff1d(np.arange(load.size), typical)))
    load[:] = load[order]


def _deal(load: Floats, targets: Floats, group: Ints, rng: np.random.Generator) -> Ints:
    owner = np.empty(load.size, dtype=np.int64)
    # The permutation breaks the ties at the start, when every broker lacks everything.
    brokers = rng.permutation(targets.size).tolist()
    missing = targets.copy()
    holds: dict[int, set[int]] = {}
    for row in np.flatnonzero(group >= 0).tolist():
        used = holds.setdefault(int(group[row]), set())
        broker = max((b for b in brokers if b not in used), key=lambda b: missing[b] / targets[b])
        used.add(broker)
        owner[row] = broker
        missing[broker] -= load[row]
    sizes, wanted, left = load.tolist(), np.maximum(targets, 1e-9).tolist(), missing.tolist()
    queue = [(-left[b] / wanted[b], place, b) for place, b in enumerate(brokers)]
    heapq.heapify(queue)
    for row in np.argsort(-load, kind="stable").tolist():
        if group[row] < 0:
            _, place, broker = queue[0]
            left[broker] -= sizes[row]
            owner[row] = broker
            heapq.heapreplace(queue, (-left[broker] / wanted[broker], place, broker))
    return owner


def _violate(owner: Ints, scenario: Scenario) -> None:
    """Put the first member of a group on the broker of the second."""
    members = scenario.affinity.members
    for group in range(scenario.affinity.violations):
        owner[group * members] = owner[group * members + 1]
