"""What a broker must offer to the agent beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from trimtab.wire.load_report import LocalBrokerData


class CannotLoad(Exception):
    """Raised by ``Broker.load``: the bundle cannot be served here now, somebody else should."""


class Broker(Protocol):
    """The embedding broker. One thread, the agent's, makes all calls, one at a time.

    ``prepare``, ``load``, ``unload``, ``split`` and ``merge`` must be harmless when repeated, for a
    command whose answer was lost is obeyed again; and they hold up the agent's loop, so one that
    takes longer than the lease costs the broker its bundles. Whatever serves clients asks
    ``Agent.serves`` first.
    """

    def bundles(self) -> Collection[str]:
        """The bundles loaded now."""
        ...

    def load_report(self) -> LocalBrokerData:
        """Figures of this moment; ``start_timestamp`` is the same for the life of the process."""
        ...

    def prepare(self, bundle: str) -> None:
        """Warm up for a bundle that is on its way here: caches, connections, nothing served."""
        ...

    def load(self, bundle: str) -> None:
        """Make a bundle ready to serve; raises CannotLoad."""
        ...

    def unload(self, bundle: str) -> None:
        """Drain a bundle and close its topics; returns when nothing of it is written here."""
        ...

    def topics(self, bundle: str) -> Mapping[int, Sequence[float]]:
        """A bundle's topics by their position (`trimtab.store.ring.position`), each with its
        messages/s in and out and bytes/s in and out; zeros where they are not known."""
        ...

    def split(self, bundle: str, children: Sequence[str]) -> None:
        """Know the topics of a loaded bundle by its children from now on; they stay open."""
        ...

    def merge(self, parts: Sequence[str], whole: str) -> None:
        """Know the topics of loaded neighbours by what they are together; they stay open."""
        ...
