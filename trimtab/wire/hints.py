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
    """The job's candidates after a round, ascending by load.

    They passed every filter that does not count a namespace's or a group's bundles: those are
    counted when a lookup places one (`trimtab.store.spreading`).
    """

    round: int
    candidates: tuple[Candidate, ...]
    """For every namespace without an isolation policy."""
    each: float
    """The load that one more bundle is assumed to add to its broker."""
    pools: tuple[Pool, ...] = ()
    """One for each isolation policy, in their order: the first that matches a namespace applies."""
    groups: dict[str, tuple[str, ...]] = {}
    """Anti-affinity group to its namespaces. Stored apart from the rest: a lookup reads one."""
    domains: dict[str, str] = {}
    """Candidate to its failure domain, if groups spread over domains first."""
    evenly: bool = False
    """Whether every namespace's bundles spread by count before load is asked."""
    proposed: dict[str, str] = {}
    """Bundle to the broker that the job's plan proposes for it, if that is alive."""
    v: int = 1

    def candidates_for(self, namespace: str) -> tuple[Candidate, ...]:
        """Where a bundle of the namespace may go."""
        for pool in self.pools:
            if matches(namespace, pool.namespaces):
                return pool.candidates
        return self.candidates
