"""Keeps the broker's lease, and says when everything must be served no longer.

the store's answer to a request for the lease:
  held         the lease is this process's, for some seconds from before the request
  assert       the store is closed, and asks for what this broker saw: ask again with that
  asserted     held, but the store is closed; repeat what was seen if it has changed since
  waiting      an older process of the same name may still serve: serve nothing, wait for its lease
  superseded   a later process has the name: serve nothing, for good
A lease that had a gap counts as a lapse: another broker may have the bundles since.
"""

from __future__ import annotations

import math

from agent.links import Links
from agent.ownership.holdings import Holdings
from agent.settings import AgentSettings
from sinks.errors import Closed
from sinks.redis.leasing.lease import FOR_THE_NEXT, NO_SESSION, Lease, Renewal
from trimtab.wire.assertion import Assertion


class Superseded(Exception):
    """A later process uses this broker's name: this one must end."""


class LeaseHolder:
    """One process's side of its broker's lease."""

    def __init__(self, settings: AgentSettings, links: Links, holdings: Holdings) -> None:
        self._settings = settings
        self._links = links
        self._holdings = holdings
        self.renew_at = links.clock()
        """When it is to be renewed: once a third of it has passed."""
        self.lapses = 0
        """How often everything was given up."""
        self._history = ""
        """The history of the store's data at the last renewal."""
        self._asserted = "", -1
        """The history that got the last assertion, and the change count of ``seen`` then."""
        self._first_asked = math.inf
        """When the first answer came to its requests for a lease that it does not hold yet."""
        self._serve_from = -math.inf
        """An older process of this name may serve until then."""

    @property
    def must_wait(self) -> bool:
        """Whether an older process of this name may still serve, though the lease is held."""
        return self._links.clock() < self._serve_from

    def renew(self) -> Lease:
        """Hold the lease, and serve nothing if it had lapsed; raises Closed and Superseded."""
        asked_at = self._links.clock()
        lease = self._granted()
        if not self._without_a_gap(lease):
            self.serve_nothing()
        self._history = lease.history
        # Counted from before the request: the lease began later in Redis, so it ends later there.
        granted = lease.ms / 1000
        self._holdings.extend(asked_at + granted - self._settings.lease_margin)
        self.renew_at = asked_at + granted / 3
        return lease

    def release(self) -> None:
        """Give the lease up: other brokers may have the bundles at once."""
        self._ask_for(0)

    def leave_to_the_next(self) -> None:
        """Leave the rest of the lease to this broker's next process."""
        self._ask_for(FOR_THE_NEXT)

    def serve_nothing(self) -> None:
        """Serve nothing until it is known again what this broker owns."""
        self.lapses += 1
        self._holdings.clear()

    def _without_a_gap(self, lease: Lease) -> bool:
        """Whether no bundle can have gone to another broker since the last renewal."""
        elsewhere = lease.history != self._history
        if not self._holdings.leased(lease.must_have_left_ms / 1000 if elsewhere else 0.0):
            return False
        if lease.detail == str(self._settings.session):
            return True
        # A store that lost the lease is closed until it is rebuilt.
        return lease.renewal is Renewal.ASSERTED and lease.detail == "" and elsewhere

    def _granted(self) -> Lease:
        """Get a lease, sending the assertion to a closed store; raises Closed if it is not held,
        and Superseded if it never will be."""
        lease = self._ask_for(round(1000 * self._settings.lease))
        if self._must_assert(lease):
            changes = self._links.seen.changes
            assertion = Assertion(records=self._links.seen.all())
            lease = self._ask_for(round(1000 * self._settings.lease), assertion)
            self._asserted = lease.history, changes
        match lease.renewal:
            case Renewal.SUPERSEDED:
                self.serve_nothing()
                raise Superseded(
                    f"a process that started later runs as {self._settings.broker}, "
                    f"in session {lease.detail}"
                )
            case Renewal.WAITING:
                self._wait_for_the_older(lease)
                raise Closed(
                    f"an older process, session {lease.detail or 'unknown'}, may serve as "
                    f"{self._settings.broker} for {lease.ms / 1000:.1f} s more"
                )
        if lease.detail == NO_SESSION:
            # The older process has reported that it no longer serves.
            self._serve_from = -math.inf
        return lease

    def _must_assert(self, lease: Lease) -> bool:
        """Whether the store is closed and lacks some of what was seen: a master that was left
        behind may have changed a record since."""
        if lease.renewal is Renewal.ASSERTED:
            return self._asserted != (lease.history, self._links.seen.changes)
        return lease.renewal is Renewal.ASSERT

    def _wait_for_the_older(self, lease: Lease) -> None:
        """Wait by this clock: the server's may jump and end the other's lease early."""
        self.serve_nothing()
        if lease.detail and self._links.clock() >= self._serve_from:
            # Also after a completed wait: the older process had its lease again meanwhile.
            self._first_asked = self._links.clock()
            self._serve_from = self._links.clock() + lease.ms / 1000

    def _ask_for(self, ttl_ms: int, assertion: Assertion | None = None) -> Lease:
        settings, links = self._settings, self._links
        before = links.clock()
        asked_for_ms = round(1000 * max(0.0, before - self._first_asked))
        lease = links.leases.renew(
            settings.cluster, settings.broker, settings.session, ttl_ms, assertion, asked_for_ms
        )
        held = lease.renewal in (Renewal.HELD, Renewal.ASSERTED)
        # Time waited before this process held the lease proves nothing about the next holder.
        self._first_asked = math.inf if held else min(self._first_asked, links.clock())
        links.server_time.look(before, lease.server_ms / 1000, links.clock())
        return lease
