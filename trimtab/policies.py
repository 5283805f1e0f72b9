"""Operators' policies for namespaces and brokers: isolation, anti-affinity groups, domains."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Isolation:
    """Reserves brokers for namespaces; all names are regular expressions that match whole names.

    A broker matches by its host: its name without the port.
    """

    namespaces: tuple[str, ...]
    primary: tuple[str, ...]
    secondary: tuple[str, ...] = ()
    min_available: int = 1
    """With fewer primary brokers than this, secondary ones serve too."""


@dataclass(frozen=True, slots=True)
class Policies:
    """All policies of one cluster."""

    isolation: dict[str, Isolation] = field(default_factory=dict)
    """Policies by name; the first that matches a namespace applies."""
    groups: dict[str, str] = field(default_factory=dict)
    """Namespace to its anti-affinity group, which is compared case-insensitively."""
    domains: dict[str, str] = field(default_factory=dict)
    """Broker to its failure domain."""

    def isolation_of(self, namespace: str) -> Isolation | None:
        """The isolation policy that applies to a namespace."""
        for policy in self.isolation.values():
            if matches(namespace, policy.namespaces):
                return policy
        return None

    def group_of(self, namespace: str) -> str | None:
        """The anti-affinity group in lower case; None if there is none or it is blank."""
        return self.groups.get(namespace, "").strip().lower() or None

    def binds(self, namespace: str) -> bool:
        """Whether any policy restricts where bundles of the namespace may be."""
        return self.isolation_of(namespace) is not None or self.group_of(namespace) is not None


NO_POLICIES: Final = Policies()

NO_DOMAIN: Final = "default"
"""The failure domain that brokers without one share."""


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of ``patterns`` matches the whole name."""
    return any(_compiled(pattern).fullmatch(name) for pattern in patterns)


def host_of(broker: str) -> str:
    """A broker's name without its port."""
    return broker.rsplit(":", 1)[0]


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
