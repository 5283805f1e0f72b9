"""The interface that a broker must offer to its agent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from trimtab.wire.reports.load_report import LocalBrokerData


class CannotLoad(Exception):
    """Raised by ``Broker.load``: the bundle cannot be served here now, another broker should."""


class Broker(Protocol):
    """The embedding broker. The agent's thread makes all calls, one at a time.

    ``prepare``, ``load``, ``unload``, ``split`` and ``merge`` must be harmless when repeated, as a
    command whose answer was lost is obeyed again. They block the agent's loop, so one that takes
    longer than the lease costs the broker its bundles. Code that serves clients must ask
    ``Agent.serves`` first.
    """

    def bundles(self) -> Collection[str]:
        """The bundles loaded now."""
        ...

    def load_report(self) -> LocalBrokerData:
        """Current figures; ``start_timestamp`` is the same for the life of the process."""
        ...

    def prepare(self, bundle: str) -> None:
        """Warm up for a bundle on its way here: caches, connections; serve nothing."""
        ...

    def load(self, bundle: str) -> None:
        """Make a bundle ready to serve; raises CannotLoad."""
        ...

    def unload(self, bundle: str) -> None:
        """Drain a bundle and close its topics; returns once nothing of it is written here."""
        ...

    def topics(self, bundle: str) -> Mapping[int, Sequence[float]]:
        """A bundle's topics by position (`trimtab.store.ring.position`), each with its messages/s
        in and out and bytes/s in and out; zeros if unknown."""
        ...

    def split(self, bundle: str, children: Sequence[str]) -> None:
        """Assign the topics of a loaded bundle to its children; they stay open."""
        ...

    def merge(self, parts: Sequence[str], whole: str) -> None:
        """Assign the topics of loaded neighbours to their merged bundle; they stay open."""
        ...
