"""Keeps the lease, and brings a broker and the store to agree on who owns what.

agree, in this order of need:
  seed         after a lapse of the lease: serve nothing before every claim is answered
  look again   after the store was closed, and now and then: follow the records as they are
  forget       once an hour: records of bundles that others have had for long
Each ends in error unless the store was open, and the lease held without a gap, the whole time: from
a store that lost everything a new process would learn that it owns nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from agent.commands.obeying import Obeyer
from agent.leasing import LeaseHolder
from agent.links import Links
from agent.ownership.forgetting import Forgetter
from agent.ownership.seeding import look_again, seed
from agent.settings import AgentSettings
from sinks.errors import UNOPENED, Closed
from sinks.redis.leasing.lease import Lease, Renewal


class Agreement:
    """For the agent's thread. Calls raise Unavailable, Closed and Superseded, and are repeated."""

    def __init__(
        self,
        settings: AgentSettings,
        links: Links,
        lease: LeaseHolder,
        obeyer: Obeyer,
        report: Callable[[], object],
    ) -> None:
        """``report``: reports the load when that is due, while bundles are loaded."""
        self._settings = settings
        self._links = links
        self._lease = lease
        self._obeyer = obeyer
        self._report = report
        self._forgetter = Forgetter(obeyer)
        self._forget_at = links.clock() + settings.forget_every
        self._look_at = links.clock() + settings.look_every
        self._agreed_after = -1
        """How many lapses there were when it last agreed with the store."""
        self._was_closed = False
        """Whether the store was closed since its records were last checked."""

    @property
    def reached(self) -> bool:
        """Whether this broker and the store agree on everything that it owns."""
        return self._agreed_after == self._lease.lapses

    def reach(self, looked_again: Callable[[], object]) -> None:
        """Agree as far as that is due; ``looked_again`` is called once records were read again."""
        if not self.reached:
            self._seed()
        elif self._was_closed or self._links.clock() >= self._look_at:
            # Before commands: a bundle that leaves would stay unserved until the store opens.
            self._look_again()
            looked_again()
        if self._links.clock() >= self._forget_at:
            self._forget()

    def renew_if_due(self) -> None:
        if self._links.clock() >= self._lease.renew_at:
            self._renew()

    def renewing(self) -> Callable[[], None]:
        """What keeps the lease that is held now, if that is due: to be called during long work; it
        raises Closed once the lease has had a gap.

        It also reports: to load what this broker owns may take longer than its silence is borne.
        """
        lapses = self._lease.lapses

        def keep() -> None:
            self._report()
            if self._links.clock() >= self._lease.renew_at:
                self._renew_without_a_gap(lapses)

        return keep

    def _renew(self) -> Lease:
        lease = self._lease.renew()
        self._was_closed |= lease.renewal is Renewal.ASSERTED
        return lease

    def _seed(self) -> None:
        lease = self._renew()
        self._require_open(lease)
        if self._lease.must_wait:
            raise Closed(f"an older process may still serve as {self._settings.broker}")
        lapses = self._lease.lapses
        old = seed(self._obeyer, lease.server_ms, self.renewing())
        self._renew_without_a_gap(lapses)
        self._links.seen.forget(old)
        self._agreed_after, self._was_closed = lapses, False

    def _look_again(self) -> None:
        self._renew_without_a_gap(self._lease.lapses)
        look_again(self._obeyer, self.renewing())
        self._was_closed = False
        self._look_at = self._links.clock() + self._settings.look_every

    def _forget(self) -> None:
        self._forget_at = self._links.clock() + self._settings.forget_every
        lapses = self._lease.lapses
        lease = self._renew_without_a_gap(lapses)
        old = self._forgetter.look(lease.server_ms)
        if old:
            self._renew_without_a_gap(lapses)
            self._links.seen.forget(old)

    def _renew_without_a_gap(self, lapses: int) -> Lease:
        lease = self._renew()
        self._require_open(lease)
        if self._lease.lapses != lapses:
            raise Closed(
                f"the lease of {self._settings.broker} ran out: others may have its bundles"
            )
        return lease

    def _require_open(self, lease: Lease) -> None:
        if lease.renewal is not Renewal.HELD:
            raise Closed(f"{self._settings.cluster} is closed: {UNOPENED}")
