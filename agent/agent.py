"""The loop beside a broker: hold the lease, agree on ownership, obey, report.

each turn:
  report, when a report is due                            Kafka; never waits
  renew the lease, when a third of it has passed          Redis
  if the lease had lapsed: serve nothing, then agree anew on what is owned
  obey the commands left over, else wait for new ones and obey those
A turn that finds the store absent or closed ends early and is tried again after a growing pause.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from typing import Final

import structlog

from agent.actions import obey
from agent.broker import Broker
from agent.holdings import Holdings
from agent.leaving import leave
from agent.links import AgentSettings, Links
from agent.obeying import Obeyed, Obeyer
from agent.seeding import seed
from sinks.errors import Closed, Unavailable
from sinks.leases import Lease, Renewal
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command, Kind

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0
"""The job counts the seconds of a hand-over: a broker must be back soon after the store is."""


class Superseded(Exception):
    """A process that started later uses this broker's name: this one must end."""


class Agent:
    """One broker's agent. ``serves`` may be asked from any thread; the rest belongs to its own."""

    def __init__(self, broker: Broker, settings: AgentSettings, links: Links) -> None:
        self._settings = settings
        self._links = links
        self._broker = broker
        self._holdings = Holdings(links.clock)
        self._obeyer = Obeyer(
            settings.cluster, settings.broker, broker, links.store, self._holdings, links.seen
        )
        self._backlog: deque[tuple[str, Command]] = deque()
        self._seeded = False
        self._renew_at = links.clock()
        self._report_at = links.clock() + settings.report_offset
        self._pause = 0.0
        self._drain_until = -math.inf
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=settings.broker, daemon=True)
        self._log = structlog.get_logger().bind(cluster=settings.cluster, broker=settings.broker)

    def start(self) -> None:
        self._thread.start()

    def stop(self, drain_s: float = 0.0) -> None:
        """Ask the loop to end; ``join`` waits for it.

        With time to drain it first gives its bundles away and then its lease up. Without, as for a
        restart, both are left to run out: the next process of this broker takes them up again.
        """
        self._drain_until = self._links.clock() + drain_s
        self._stopping.set()

    @property
    def alive(self) -> bool:
        """Whether the loop runs; it ends when it is superseded, or the broker's own code fails."""
        return self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def serves(self, bundle: str) -> bool:
        """Whether clients of this bundle may be served now: it is owned and the lease holds."""
        return self._seeded and self._holdings.serves(bundle)

    @property
    def seeded(self) -> bool:
        """Whether this broker and the store agree on what it owns."""
        return self._seeded

    def obeyed(self) -> dict[tuple[Kind, Obeyed], int]:
        """How many commands of each kind have ended how."""
        return dict(self._obeyer.counts)

    def turn(self) -> float:
        """One turn of the loop; how many seconds to pause before the next. Raises Superseded."""
        try:
            self._report_if_due()
            self._renew_if_due()
            if not self._seeded:
                self._seed()
            self._obey()
        except (Unavailable, Closed) as error:
            if self._pause == 0.0:
                self._log.warning("waiting for the store", cause=str(error))
            self._pause = min(max(2 * self._pause, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        else:
            self._pause = 0.0
        return min(self._pause, max(0.0, self._report_at - self._links.clock()))

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self.turn()):
                pass
            self.end()
        except Superseded as error:
            self._log.error("ending", cause=str(error))
        except Exception:
            self._log.exception("failed")
            raise
        finally:
            # Also when a broker's own code failed: without this loop nothing may be served.
            self._holdings.clear()

    def end(self) -> None:
        """What the loop does last: it leaves, if there is time for that."""
        try:
            if self._in_time():
                self._leave()
        except (Unavailable, Closed) as error:
            self._log.warning("ended without leaving", cause=str(error))
        finally:
            self._serve_nothing()

    def _leave(self) -> None:
        settings, links = self._settings, self._links
        given = leave(self._obeyer, links.claims, self._in_time)
        self._serve_nothing()
        links.leases.renew(settings.cluster, settings.broker, settings.session, 0)
        self._log.info("left", given=given)

    def _in_time(self) -> bool:
        in_time = self._links.clock() < self._drain_until
        if in_time:
            self._renew_if_due()
        return in_time

    def _report_if_due(self) -> None:
        now = self._links.clock()
        if now < self._report_at:
            return
        # Kept to its beat: a late report does not shift the ones after it, but is not made up for.
        interval = self._settings.report_interval
        self._report_at += interval * (1 + (now - self._report_at) // interval)
        self._links.reporter.offer(self._broker.load_report(), now)

    def _renew_if_due(self) -> None:
        asked_at = self._links.clock()
        if asked_at < self._renew_at:
            return
        lease = self._renewed()
        # Others may have been given its bundles in the gap, unless the store was closed in it.
        held = lease.renewal is Renewal.ASSERTED or lease.detail == str(self._settings.session)
        if not held or not self._holdings.leased():
            self._serve_nothing()
        # Counted from before the request left: in Redis the lease began later, so it ends later.
        granted = lease.granted_ms / 1000
        self._holdings.extend(asked_at + granted - self._settings.lease_margin)
        self._renew_at = asked_at + granted / 3

    def _seed(self) -> None:
        """Agree on ownership; raises Closed unless the store is open before and after.

        From one that has forgotten everything a new process would learn that it owns nothing.
        """
        self._check_open()
        seed(self._obeyer)
        self._check_open()
        self._seeded = True

    def _check_open(self) -> None:
        if self._renewed().renewal is not Renewal.HELD:
            raise Closed(f"{self._settings.cluster} is closed: its records are being rebuilt")

    def _renewed(self) -> Lease:
        """Hold the lease, telling a closed store what was seen; raises Closed and Superseded."""
        settings, leases = self._settings, self._links.leases
        asked = settings.cluster, settings.broker, settings.session, round(1000 * settings.lease)
        lease = leases.renew(*asked)
        if lease.renewal is Renewal.ASSERT:
            said = Assertion(records=self._links.seen.all())
            leases.say(settings.cluster, settings.broker, lease.detail, said)
            lease = leases.renew(*asked)
        match lease.renewal:
            case Renewal.SUPERSEDED:
                self._serve_nothing()
                raise Superseded(f"{settings.broker} was started again, in session {lease.detail}")
            case Renewal.ASSERT:
                raise Closed(f"{settings.cluster} is closed: its server was replaced once more")
        return lease

    def _serve_nothing(self) -> None:
        """Until it is known again what this broker owns."""
        self._holdings.clear()
        self._seeded = False

    def _obey(self) -> None:
        if not self._backlog:
            self._backlog.extend(self._links.commands.read(self._block_ms()))
        # A long backlog must cost neither the lease nor a report: the next turn goes on with it.
        while self._backlog and self._links.clock() < self._due():
            entry, command = self._backlog[0]
            obeyed = obey(self._obeyer, command)
            self._links.commands.acknowledge([entry])
            self._backlog.popleft()
            self._log.debug("command", kind=command.kind, bundle=command.bundle, obeyed=obeyed)

    def _block_ms(self) -> int:
        # Redis waits for ever at 0.
        free = min(self._due() - self._links.clock(), self._settings.longest_wait)
        return max(1, round(1000 * free))

    def _due(self) -> float:
        return min(self._report_at, self._renew_at)
