"""Which brokers a namespace may be on (Pulsar SimpleResourceAllocationPolicies).

under an isolation policy: its primary brokers; the secondary ones too while fewer than
                           min_available primary ones are available
else:                      brokers that serve persistent topics and are no policy's primary
"""

from __future__ import annotations

import numpy as np

from trimtab.arrays import Bools
from trimtab.policies import Isolation, Policies, host_of, matches
from trimtab.view import Brokers


class Permits:
    """The isolation policies applied to the brokers of one view."""

    def __init__(self, policies: Policies, brokers: Brokers) -> None:
        self._policies, self._names = policies, brokers.names
        self._persistent = brokers.persistent
        self._shared: Bools | None = None
        self._matching: dict[tuple[str, ...], Bools] = {}

    def of(self, namespace: str, brokers: Bools) -> Bools:
        """The part of ``brokers`` (n,) that may hold the namespace's bundles."""
        if not self._policies.isolation:
            return brokers & self._persistent
        policy = self._policies.isolation_of(namespace)
        return self.of_others(brokers) if policy is None else self._isolated(policy, brokers)

    def under(self, policy: str, brokers: Bools) -> Bools:
        """The part of ``brokers`` (n,) that may hold bundles of namespaces under this policy."""
        return self._isolated(self._policies.isolation[policy], brokers)

    def of_others(self, brokers: Bools) -> Bools:
        """The part of ``brokers`` (n,) that may hold bundles of namespaces without a policy."""
        return brokers & self._unreserved()

    def _isolated(self, policy: Isolation, brokers: Bools) -> Bools:
        primary = brokers & self._matched(policy.primary)
        if np.count_nonzero(primary) >= policy.min_available:
            return primary
        return primary | (brokers & self._matched(policy.secondary))

    def _unreserved(self) -> Bools:
        if self._shared is None:
            shared = self._persistent.copy()
            for policy in self._policies.isolation.values():
                shared &= ~self._matched(policy.primary)
            self._shared = shared
        return self._shared

    def _matched(self, patterns: tuple[str, ...]) -> Bools:
        found = self._matching.get(patterns)
        if found is None:
            matched = [matches(host, patterns) for host in map(host_of, self._names)]
            found = self._matching[patterns] = np.array(matched, dtype=np.bool_)
        return found
