"""Placement hints: where a lookup may place an unowned bundle without asking the job."""

from __future__ import annotations

import msgspec

from trimtab.policies import matches
from trimtab.wire.ownership import Candidate


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Where the namespaces of one isolation policy may go; empty: nowhere."""

    namespaces: tuple[str, ...]
    """Regular expressions that match whole names."""
    candidates: tuple[Candidate, ...]


class Hints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The brokers to which lookups may give bundles after a round, ascending by load.

    They passed all filters except those that count the bundles of a namespace or a group. These
    count when a lookup places a bundle (`trimtab.store.spreading`).
    """

    round: int
    candidates: tuple[Candidate, ...]
    """For every namespace without an isolation policy."""
    each: float
    """The load that one more bundle is assumed to add to its broker."""
    pools: tuple[Pool, ...] = ()
    """One for each isolation policy, in the policies' order. The first one that matches a namespace
    applies."""
    groups: dict[str, tuple[str, ...]] = {}
    """By anti-affinity group: its namespaces. They are stored apart, because a lookup reads one
    group."""
    domains: dict[str, str] = {}
    """By candidate: its failure domain, if groups are to be spread over domains first."""
    evenly: bool = False
    """Whether the bundles of every namespace are spread by number first, and by load second."""
    proposed: dict[str, str] = {}
    """By bundle: the broker that the job's plan proposes for it, if that broker is alive."""
    v: int = 1

    def candidates_for(self, namespace: str) -> tuple[Candidate, ...]:
        """Where a bundle of the namespace may go."""
        for pool in self.pools:
            if matches(namespace, pool.namespaces):
                return pool.candidates
        return self.candidates
