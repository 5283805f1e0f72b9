"""Placement hints: where a lookup may place an unowned bundle without asking the job."""

from __future__ import annotations

import msgspec

from trimtab.wire.ownership import Candidate


class Hints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The job's candidates after a round, all filters applied; ascending by load."""

    round: int
    candidates: tuple[Candidate, ...]
    """For every namespace that is not in ``namespaces``."""
    each: float
    """The load that one more bundle is assumed to add to its broker."""
    namespaces: dict[str, tuple[Candidate, ...]] = {}
    """Candidates for namespaces with an isolation policy or an anti-affinity group; empty: none."""
    proposed: dict[str, str] = {}
    """Bundle to the broker that the job's plan proposes for it, if that is alive."""
    v: int = 1

    def candidates_for(self, namespace: str) -> tuple[Candidate, ...]:
        """Where a bundle of the namespace may go."""
        return self.namespaces.get(namespace, self.candidates)
