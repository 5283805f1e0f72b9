"""The agent's loop in a broker: hold the lease, agree on ownership, obey, report.

each turn:
  report, when a report is due                            Kafka; never waits
  renew the lease, when a third of it has passed          Redis
  if the lease had lapsed: serve nothing, then agree on ownership again; serve each bundle from
    then on, and report and renew in between
  forget old records, once an hour
  take a few topics to green, or back, while a migration asks for it
  obey remaining commands, else wait for new ones and obey those; none while the store is closed
A turn that finds the store absent, closed or forbidden ends early and is retried after a growing
pause. An older process of the same name may still serve: this one waits until that lease ends.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from agent.broker import Broker
from agent.commands.actions import obey
from agent.commands.leaving import leave
from agent.commands.obeying import Obeyed, Obeyer
from agent.leasing import LeaseHolder, Superseded
from agent.links import Links
from agent.migration.mover import Mover
from agent.notices import Notices
from agent.ownership.agreement import Agreement
from agent.ownership.holdings import Holdings
from agent.reports.due_reports import DueReports
from agent.settings import AgentSettings
from sinks.errors import Closed, Misconfigured, Unavailable
from trimtab.migration.migration import Target
from trimtab.migration.steps import Step
from trimtab.model import Epoch
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.reports.load_report import LocalBrokerData

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0
"""Hand-overs have deadlines: a broker must be back soon after the store is."""


class AgentStatus(NamedTuple):
    """An agent at one moment; times in seconds by this machine's clock."""

    lease_left_s: float
    """0 while nothing may be served."""
    lapses: int
    """Times everything was given up because the lease had a gap."""
    seeded: bool
    served: int
    """Bundles."""
    load_age_s: float
    """Since the load was last looked at for a report, or since the start."""


class Agent:
    """One broker's agent. Any thread may call ``serves``; the rest is for the agent's thread."""

    def __init__(
        self,
        broker: Broker,
        settings: AgentSettings,
        links: Links,
        handed_over: Callable[[float], object] = lambda _: None,
    ) -> None:
        """``handed_over``: called with the seconds from the order to own a bundle to its service
        here."""
        self._settings = settings
        self._links = links
        self._handed_over = handed_over
        self._notices = Notices(settings, links.seen)
        self._holdings = Holdings(links.clock)
        self._lease = LeaseHolder(settings, links, self._holdings)
        self._mover = Mover(
            settings.cluster,
            settings.broker,
            settings.session,
            broker,
            links.topics,
            self._holdings,
            links.clock,
        )
        self._obeyer = Obeyer(
            settings.cluster,
            settings.broker,
            settings.session,
            broker,
            links.store,
            self._holdings,
            links.seen,
            self._notices.declined,
            self._notices.forgotten,
            self._notices.frozen,
            self._resume,
            self._mover.wake,
        )
        self._backlog: deque[tuple[str, Command]] = deque()
        self._reports = DueReports(broker, settings, links)
        self._agreement = Agreement(
            settings, links, self._lease, self._obeyer, self._reports.report_if_due
        )
        self._pause = 0.0
        self._drain_until = -math.inf
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=settings.broker, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, drain_s: float = 0.0) -> None:
        """Ask the loop to end; ``join`` waits for it.

        With time to drain it first gives its bundles away, then its lease up. Without, as for a
        restart, it stops serving and leaves the rest of its lease to this broker's next process,
        which takes its bundles again.
        """
        self._drain_until = self._links.clock() + drain_s
        self._stopping.set()

    @property
    def alive(self) -> bool:
        """Whether the loop runs; it ends when superseded, or when the broker's own code fails."""
        return self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def serves(self, bundle: str) -> bool:
        """Whether clients of this bundle may be served now: it is owned and the lease is valid."""
        return self._holdings.serves(bundle)

    def token(self, bundle: str) -> Epoch | None:
        """The fencing token for this broker's writes to storage: None if it may not serve.

        ``serves`` is true only at the moment of the call. A process that is paused after that, for
        longer than its lease, writes while another broker serves. Storage that remembers a topic's
        highest token, and refuses lower ones, refuses that write: each owner's epoch is above all
        earlier ones (as Pulsar fences a ledger before another writes).
        """
        return self._holdings.epoch(bundle)

    def green_for(self, topic: str) -> Target | None:
        """Where clients of a topic go instead: the other cluster's URLs, if it migrates there.

        Ask before a topic is created in a bundle that is served here, and whenever a client comes
        for one that is not here; a topic that is here and not redirected yet is served all the
        same. Any thread may call this. Raises AskAgain (`agent.migration.port`) for a new topic
        that begins on the other cluster, until that is recorded: such a topic is never created
        here.
        """
        return self._mover.green_for(topic)

    @property
    def seeded(self) -> bool:
        """Whether this broker and the store agree on everything that it owns."""
        return self._agreement.reached

    def obeyed(self) -> dict[tuple[CommandKind, Obeyed], int]:
        """Counts of commands by kind and result."""
        return dict(self._obeyer.counts)

    def migrated(self) -> dict[tuple[Step, bool], int]:
        """Counts of steps of topics that migrate, by kind and whether they succeeded."""
        return dict(self._mover.counts)

    @property
    def load(self) -> LocalBrokerData | None:
        """The broker's load as last looked at for a report; None before the first."""
        return self._reports.load

    def status(self) -> AgentStatus:
        """The lease, what is served, and the age of the load, now."""
        left_s = self._holdings.lease_left_s()
        return AgentStatus(
            lease_left_s=left_s,
            lapses=self._lease.lapses,
            seeded=self.seeded,
            served=len(self._holdings.bundles()) if left_s else 0,
            load_age_s=self._links.clock() - self._reports.looked_at,
        )

    def turn(self) -> float:
        """Run one turn; returns the seconds to pause before the next. Raises Superseded."""
        try:
            self._reports.report_if_due()
            self._agreement.renew_if_due()
            self._agreement.reach(self._mover.doubt)
            self._mover.look(self._agreement.renewing())
            self._obey()
            # Last: nothing waits for it.
            self._reports.tell_urls_if_due()
        except (Unavailable, Closed, Misconfigured) as error:
            # Misconfigured too: a revoked right may be granted again.
            self._notices.waiting(str(error))
            self._pause = min(max(2 * self._pause, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        else:
            self._pause = 0.0
            self._notices.well()
        return min(self._pause, max(0.0, self._reports.next_at - self._links.clock()))

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self.turn()):
                pass
            self.end()
        except Superseded as error:
            self._notices.superseded(str(error))
            self.give_way()
        except BaseException:
            # SystemExit too: a thread ends of it without a word.
            self._notices.failed()
            raise
        finally:
            # Also if the broker's own code failed: without this loop nothing may be served.
            self._holdings.clear()

    def end(self) -> None:
        """End the loop: leave if there is time for that, and give up the lease."""
        try:
            leaves = self._in_time()
            if leaves:
                self._leave()
            # Before another process has the lease.
            self._lease.serve_nothing()
            if leaves:
                self._lease.release()
            else:
                self._lease.leave_to_the_next()
        except (Unavailable, Closed, Misconfigured) as error:
            self._notices.lease_kept(str(error))
        finally:
            self._lease.serve_nothing()

    def give_way(self) -> None:
        """Give the lease up, so that the later process need not wait for the rest of it."""
        with suppress(Unavailable, Misconfigured):
            self._lease.release()

    def _leave(self) -> None:
        given = leave(self._obeyer, self._links.claims, self._in_time)
        self._notices.left(given)

    def _in_time(self) -> bool:
        in_time = self._links.clock() < self._drain_until
        if in_time:
            self._agreement.renew_if_due()
        return in_time

    def _resume(self, bundle: str) -> None:
        self._mover.resume(bundle, self._agreement.renewing())

    def _obey(self) -> None:
        if not self._backlog:
            self._backlog.extend(self._links.commands.read(self._block_ms()))
        # A long backlog must not delay the lease or a report: the next turn continues it.
        while self._backlog and self._links.clock() < self._due():
            entry, command = self._backlog[0]
            obeyed = obey(self._obeyer, command)
            if command.kind is CommandKind.OWN and obeyed is Obeyed.DONE:
                self._time_handover(command)
            self._links.commands.acknowledge([entry])
            self._backlog.popleft()
            self._notices.obeyed(command, obeyed)

    def _time_handover(self, command: Command) -> None:
        """By Redis's clock: both times are the transition script's."""
        record = self._links.seen.record(command.bundle)
        if record is not None:
            self._handed_over(max(0, record.since - command.issued_at) / 1000)

    def _block_ms(self) -> int:
        # With 0 Redis would wait for ever.
        due = min(self._due(), self._mover.next_at)
        free = min(due - self._links.clock(), self._settings.longest_wait)
        return max(1, round(1000 * max(free, 0.0)))

    def _due(self) -> float:
        return min(self._reports.next_at, self._lease.renew_at)
