"""Leases on the simulated server, as lease.lua and vouch.lua keep them."""

from __future__ import annotations

from typing import Final, NamedTuple

from simulation.ownership.redis.contents import Contents
from simulation.ownership.redis.process import MemoryProcess
from sinks.errors import StoreUnavailable
from sinks.redis.leasing.lease import NO_SESSION, Lease, Renewal
from trimtab.ownership import (
    CLOCK_MARGIN_MS,
    LONGEST_LEASE_MS,
    REPLICA_WAIT_MS,
)
from trimtab.wire.assertion import Assertion

_TAKE_OVER_MS: Final = 3_000
"""Equal to the value in lease.lua."""


class Seen(NamedTuple):
    """What a renewal without the script has read."""

    now_ms: int
    history: str
    session: int
    """The session that holds the lease; -1: none."""
    has_said: bool
    """Whether the broker has reported what it saw."""
    watched: object
    """The lease and the open hash."""


class LeaseScript(MemoryProcess):
    """The scripts that grant leases."""

    def renew(  # noqa: C901, PLR0913 - the script's cases, in its order
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        assertion: Assertion | None = None,
        asked_for_ms: int = LONGEST_LEASE_MS,
    ) -> Lease:
        """Like `Leases.renew` where the script is known."""
        here, now = self._changing(cluster), self.now_ms()

        def answer(renewal: Renewal, detail: str, ms: int = 0) -> Lease:
            ever = here.noted_replicas(self.history).ever
            left = REPLICA_WAIT_MS if here.opening.replicated or ever else 0
            return Lease(renewal, detail, ms, now, self.history, left)

        before, until = here.leases.get(broker, (0, 0))
        noted, _ = here.sessions.get(broker, (session, 0))
        mine = until > now and before == session
        if (mine or until <= now) and noted != session and self._left(here, broker):
            before, until = noted, now + self._left(here, broker)
        said = str(before) if until > now else ""
        waits, over, remembered = here.successors.get(broker, (0, 0, 0))
        waits = waits if remembered > now else 0
        if ttl_ms <= 0:
            if session in (before if said else noted, noted):
                self._put(cluster, "sessions", broker, None)
            if said == str(session):
                soon = now + (1000 if waits else 1)
                self._put(cluster, "leases", broker, (0, until if ttl_ms < 0 else soon))
            return answer(Renewal.RELEASED, said)
        for later in (before if said else 0, waits):
            if later > session:
                return answer(Renewal.SUPERSEDED, str(later))
        self._require_replicas(cluster)
        if said not in ("", NO_SESSION, str(session)):
            over = min(over if waits == session else until, now + LONGEST_LEASE_MS)
            left = over - now
            if left > 0:
                self._waits(cluster, broker, session, over)
                self._put(cluster, "leases", broker, (before, now + left + _TAKE_OVER_MS))
                return answer(Renewal.WAITING, said, left)
        last = noted if said in ("", str(session)) else int(said) or session
        if last != session and self._must_wait(here, asked_for_ms):
            left = LONGEST_LEASE_MS - asked_for_ms
            self._waits(cluster, broker, session, now)
            if said:
                self._put(cluster, "leases", broker, (before, now + left + _TAKE_OVER_MS))
            return answer(Renewal.WAITING, "", left)
        renewal = self._told(cluster, broker, assertion)
        if renewal is Renewal.ASSERT:
            return answer(renewal, self.history)
        granted = min(ttl_ms, LONGEST_LEASE_MS, here.opening.lease_ms)
        self._put(cluster, "leases", broker, (session, now + granted))
        self._put(cluster, "sessions", broker, (session, now + granted))
        return answer(renewal, said, granted)

    def _waits(self, cluster: str, broker: str, session: int, over: int) -> None:
        kept = session, over, self.now_ms() + 2 * LONGEST_LEASE_MS
        self._put(cluster, "successors", broker, kept)

    def _must_wait(self, here: Contents, asked_for_ms: int) -> bool:
        """Whether an older process may still serve, as far as this clock can tell."""
        noted = here.clock.get("", -1_000_000)
        vouched = 0 <= self.now_ms() - noted <= 1000
        return not vouched and asked_for_ms < LONGEST_LEASE_MS

    def vouch(self, cluster: str, server_ms: int) -> None:
        """Like `RollCall.vouch`."""
        self._changing(cluster)
        if abs(server_ms - self.now_ms()) <= CLOCK_MARGIN_MS:
            self._put(cluster, "clock", "", self.now_ms())

    def _told(self, cluster: str, broker: str, assertion: Assertion | None) -> Renewal:
        """Whether a lease may be held; a closed store first asks for what the broker saw."""
        if self.is_open(cluster):
            return Renewal.HELD
        if assertion is not None:
            self._put(cluster, "assertions", (self.history, broker), assertion)
        elif (self.history, broker) not in self.of(cluster).assertions:
            return Renewal.ASSERT
        return Renewal.ASSERTED

    def look(self, cluster: str, broker: str) -> Seen:
        """What `Leases` reads if no script is known."""
        here = self._changing(cluster)
        self._require_replicas(cluster)
        before, until = here.leases.get(broker, (0, 0))
        return Seen(
            now_ms=self.now_ms(),
            history=self.history,
            session=before if until > self.now_ms() else -1,
            has_said=(self.history, broker) in here.assertions,
            watched=(here.leases.get(broker), here.opening),
        )

    def put_lease(
        self, cluster: str, broker: str, lease: tuple[int, int], said: Assertion | None, seen: Seen
    ) -> int:
        """Write the lease, (session, ms), as `Leases` then does: only if nothing that was
        ``seen`` has changed since."""
        here = self._changing(cluster)
        session, ttl_ms = lease
        if seen.watched != (here.leases.get(broker), here.opening):
            raise StoreUnavailable("the lease changed while it was renewed")
        if seen.session > 0 and here.leases[broker][1] <= self.now_ms():
            raise StoreUnavailable("the lease ended while it was renewed")
        if said is not None:
            self._put(cluster, "assertions", (self.history, broker), said)
        granted = min(ttl_ms, LONGEST_LEASE_MS)
        self._put(cluster, "leases", broker, (session, self.now_ms() + granted))
        return granted
