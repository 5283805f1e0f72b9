"""The loop beside a broker: hold the lease, agree on ownership, obey, report.

each turn:
  report, when a report is due                            Kafka; never waits
  renew the lease, when a third of it has passed          Redis
  if the lease had lapsed: serve nothing, then agree anew on what is owned
  obey the commands left over, else wait for new ones and obey those; none while the store is closed
A turn that finds the store absent, closed or forbidden ends early and is tried again after a
growing pause. An older process of the same name may still serve: this one waits for the end of its
lease.
"""

from __future__ import annotations

import math
import re
import threading
from collections import deque
from contextlib import suppress
from typing import Final

import structlog

from agent.broker import Broker
from agent.commands.actions import obey
from agent.commands.leaving import leave
from agent.commands.obeying import Obeyed, Obeyer
from agent.holdings import Holdings
from agent.links import AgentSettings, Links
from agent.seeding import look_again, seed
from sinks.errors import Closed, Misconfigured, Unavailable
from sinks.redis.leases import FOR_THE_NEXT, NO_SESSION, Lease, Renewal
from trimtab.model import Epoch
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command, CommandKind

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
            settings.cluster,
            settings.broker,
            settings.session,
            broker,
            links.store,
            self._holdings,
            links.seen,
        )
        self._backlog: deque[tuple[str, Command]] = deque()
        self._seeded = False
        self._was_closed = False
        """Whether the store was closed since its records were looked at last."""
        self._lapses = 0
        self._history = ""
        """Of the store's data, at the last renewal."""
        self._said = "", -1
        """To which history this broker said what it saw, and after how many changes of that."""
        self._first_asked = math.inf
        """When the first answer had come to its asking for a lease that it does not hold."""
        self._serve_from = -math.inf
        """An older process of this name may serve until then."""
        self._renew_at = links.clock()
        self._report_at = links.clock() + settings.report_offset
        self._pause = 0.0
        self._complaints: set[str] = set()
        """What has been said of the store since the last turn that went well, without its numbers.
        What is waited for in the end, such as an upgrade of the job, may not be what it was first.
        """
        self._drain_until = -math.inf
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=settings.broker, daemon=True)
        self._log = structlog.get_logger().bind(cluster=settings.cluster, broker=settings.broker)

    def start(self) -> None:
        self._thread.start()

    def stop(self, drain_s: float = 0.0) -> None:
        """Ask the loop to end; ``join`` waits for it.

        With time to drain it first gives its bundles away and then its lease up. Without, as for a
        restart, it stops serving and leaves what is left of its lease to the next process of this
        broker, which takes its bundles up again.
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

    def token(self, bundle: str) -> Epoch | None:
        """What fences this broker's writes to storage below: None where it may not serve.

        ``serves`` is true of the moment it is asked. A process that is stopped after that, for
        longer than its lease, writes when another broker serves. Storage that remembers the highest
        token it was shown for a topic, and refuses lower ones, refuses that write: each owner's
        epoch is above those of all before it (as Pulsar fences a ledger before another writes).
        """
        return self._holdings.epoch(bundle) if self._seeded else None

    @property
    def seeded(self) -> bool:
        """Whether this broker and the store agree on what it owns."""
        return self._seeded

    def obeyed(self) -> dict[tuple[CommandKind, Obeyed], int]:
        """How many commands of each kind have ended how."""
        return dict(self._obeyer.counts)

    def turn(self) -> float:
        """One turn of the loop; how many seconds to pause before the next. Raises Superseded."""
        try:
            self._report_if_due()
            self._renew_if_due()
            if not self._seeded:
                self._seed()
            elif self._was_closed:
                # A bundle that is to leave would be served by nobody until the store is open again.
                self._look_again()
            self._obey()
        except (Unavailable, Closed, Misconfigured) as error:
            # A right that was taken away may be given back.
            self._complain(str(error))
            self._pause = min(max(2 * self._pause, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        else:
            self._pause = 0.0
            self._complaints.clear()
        return min(self._pause, max(0.0, self._report_at - self._links.clock()))

    def _complain(self, cause: str) -> None:
        # It is tried again every two seconds, and the seconds that are left are others each time.
        complaint = re.sub(r"\d+", "", cause)
        if complaint not in self._complaints:
            self._complaints.add(complaint)
            self._log.warning("waiting for the store", cause=cause)

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self.turn()):
                pass
            self.end()
        except Superseded as error:
            self._log.error("ending", cause=str(error))
            self.give_way()
        except Exception:
            self._log.exception("failed")
            raise
        finally:
            # Also when a broker's own code failed: without this loop nothing may be served.
            self._holdings.clear()

    def end(self) -> None:
        """What the loop does last: it leaves, if there is time for that, and gives up its lease."""
        try:
            leaves = self._in_time()
            if leaves:
                self._leave()
            # Before the lease is another's.
            self._serve_nothing()
            self._ask_for(0 if leaves else FOR_THE_NEXT)
        except (Unavailable, Closed, Misconfigured) as error:
            self._log.warning("ended with its lease left to run out", cause=str(error))
        finally:
            self._serve_nothing()

    def give_way(self) -> None:
        """The later process need not wait for what is left of the lease."""
        self._serve_nothing()
        with suppress(Unavailable, Misconfigured):
            self._ask_for(0)

    def _leave(self) -> None:
        given = leave(self._obeyer, self._links.claims, self._in_time)
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
        if self._links.clock() >= self._renew_at:
            self._renew()

    def _renew(self) -> Lease:
        """Hold the lease, and serve nothing if it had lapsed; raises Closed and Superseded."""
        asked_at = self._links.clock()
        lease = self._granted()
        if not self._without_a_gap(lease):
            self._serve_nothing()
        self._history = lease.history
        self._was_closed |= lease.renewal is Renewal.ASSERTED
        # Counted from before the request left: in Redis the lease began later, so it ends later.
        granted = lease.ms / 1000
        self._holdings.extend(asked_at + granted - self._settings.lease_margin)
        self._renew_at = asked_at + granted / 3
        return lease

    def _without_a_gap(self, lease: Lease) -> bool:
        """Whether no other broker can have been given a bundle since the last renewal."""
        elsewhere = lease.history != self._history
        if not self._holdings.leased(lease.must_have_left_ms / 1000 if elsewhere else 0.0):
            return False
        if lease.detail == str(self._settings.session):
            return True
        # A store that has forgotten the lease is closed until it is rebuilt.
        return lease.renewal is Renewal.ASSERTED and lease.detail == "" and elsewhere

    def _seed(self) -> None:
        """Agree on ownership; raises Closed unless the store is open, and the lease held without a
        gap, from before to after.

        From a store that has forgotten everything a new process would learn that it owns nothing.
        """
        lease = self._renew()
        self._require_open(lease)
        if self._links.clock() < self._serve_from:
            raise Closed(f"an older process may still serve as {self._settings.broker}")
        lapses = self._lapses
        seed(self._obeyer, lease.server_ms, lambda: self._keep_the_lease(lapses))
        self._require_open(self._renew())
        self._require_no_lapse(lapses)
        self._seeded, self._was_closed = True, False

    def _look_again(self) -> None:
        lapses = self._lapses
        self._require_open(self._renew())
        look_again(self._obeyer, lambda: self._keep_the_lease(lapses))
        self._require_no_lapse(lapses)
        self._was_closed = False

    def _keep_the_lease(self, lapses: int) -> None:
        if self._links.clock() >= self._renew_at:
            self._require_open(self._renew())
        self._require_no_lapse(lapses)

    def _require_open(self, lease: Lease) -> None:
        if lease.renewal is not Renewal.HELD:
            raise Closed(f"{self._settings.cluster} is closed: its records are being rebuilt")

    def _require_no_lapse(self, lapses: int) -> None:
        if self._lapses != lapses:
            raise Closed(f"the lease of {self._settings.broker} ran out before it had its bundles")

    def _granted(self) -> Lease:
        """A lease that is held, a closed store having been told what was seen; raises Closed where
        it is not held, and Superseded where it never will be."""
        lease = self._ask_for(round(1000 * self._settings.lease))
        if self._has_to_say(lease):
            changes = self._links.seen.changes
            said = Assertion(records=self._links.seen.all())
            lease = self._ask_for(round(1000 * self._settings.lease), said)
            self._said = lease.history, changes
        match lease.renewal:
            case Renewal.SUPERSEDED:
                self._serve_nothing()
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
            # The older process has said that it serves no longer.
            self._serve_from = -math.inf
        return lease

    def _has_to_say(self, lease: Lease) -> bool:
        """Whether the store is closed, and has not heard all that was seen: a master that was left
        behind may have changed a record since."""
        if lease.renewal is Renewal.ASSERTED:
            return self._said != (lease.history, self._links.seen.changes)
        return lease.renewal is Renewal.ASSERT

    def _wait_for_the_older(self, lease: Lease) -> None:
        """By this clock, for the server's may jump and end the other's lease early."""
        self._serve_nothing()
        if lease.detail and self._links.clock() >= self._serve_from:
            # Also after a wait that is over: the older one had its lease again meanwhile.
            self._first_asked = self._links.clock()
            self._serve_from = self._links.clock() + lease.ms / 1000

    def _ask_for(self, ttl_ms: int, said: Assertion | None = None) -> Lease:
        settings, links = self._settings, self._links
        before = links.clock()
        asked_for_ms = round(1000 * max(0.0, before - self._first_asked))
        lease = links.leases.renew(
            settings.cluster, settings.broker, settings.session, ttl_ms, said, asked_for_ms
        )
        held = lease.renewal in (Renewal.HELD, Renewal.ASSERTED)
        # What it waited before it had the lease says nothing of who has it after it.
        self._first_asked = math.inf if held else min(self._first_asked, links.clock())
        links.server_time.look(before, lease.server_ms / 1000, links.clock())
        return lease

    def _serve_nothing(self) -> None:
        """Until it is known again what this broker owns."""
        self._lapses += 1
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
