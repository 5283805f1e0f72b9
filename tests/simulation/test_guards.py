"""Guards of the agent and of the scripts: without any of them the simulation finds a violation.

A row switches one guard off, and names the weather and the seed in which that is noticed soonest.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from itertools import count
from typing import Any, Final, NamedTuple, TypeVar

import pytest
import structlog

from agent.commands import actions
from agent.commands.obeying import Obeyer
from agent.leasing import LeaseHolder
from agent.ownership.agreement import Agreement
from simulation.ownership import manager
from simulation.ownership.faults import FAULTS
from simulation.ownership.host import SESSIONS_FROM, Host
from simulation.ownership.links import Link
from simulation.ownership.network import NO_FAULTS, Odds
from simulation.ownership.redis import lease_script, rules, transition_script
from simulation.ownership.redis.server import MemoryServer
from simulation.ownership.run import Simulation
from simulation.ownership.world import Size
from sinks.errors import Isolated
from sinks.redis.leasing.lease import Lease, Renewal
from tests.support.ownership_scene import CLUSTER, A, Awry, B, Scene
from trimtab.ownership import REPLICA_LAG_S, Event
from trimtab.wire.command import Command
from trimtab.wire.ownership import Record, Refused

FEW: Final = Size(brokers=3, namespaces=1, bundles=3)
SLOW: Final = Odds(
    interrupted=0.3,
    hung=0.03,
    slow=0.1,
    very_slow=0.03,
    killed=0.001,
    late=0.02,
    unanswered=0.03,
)
"""Everything takes its time."""
TRANSITIONS: Final = 4_000

Switch = pytest.MonkeyPatch
T = TypeVar("T")


class Weather(NamedTuple):
    """What breaks, and how requests fare."""

    odds: Odds | None = None
    size: Size | None = None
    weights: Mapping[str, float] | None = None
    margin_s: float = 1.0
    transitions: int = TRANSITIONS


def only(**weights: float) -> dict[str, float]:
    """These faults and no others."""
    named = {name.replace("_", " "): weight for name, weight in weights.items()}
    return dict.fromkeys(FAULTS, 0.0) | {
        next(fault for fault in FAULTS if name in fault.replace("'", "")): weight
        for name, weight in named.items()
    }


ALL: Final = Weather()
CUT_OFF: Final = Weather(SLOW, FEW, only(broker_hangs=3, broker_is_cut_off=5))
STEPS: Final = Weather(
    Odds(hung=0.01, slow=0.0, very_slow=0.0),
    FEW,
    only(broker_starts_twice=4, clock_steps=6, broker_hangs=1),
)
LOSSES: Final = Weather(
    Odds(interrupted=0.3, hung=0.02, slow=0.1, very_slow=0.02, killed=0.004, unanswered=0.1),
    FEW,
    only(
        broker_hangs=1,
        broker_is_cut_off=2,
        broker_crashes=2,
        server_restarts=4,
        server_fails_over=2,
        goes_back_to_kept_data=2,
        data_are_kept=1,
        relay_stops=1,
    ),
)
FAILOVERS: Final = Weather(size=FEW, weights=only(server_fails_over=8, server_restarts=2))
HANGS: Final = Weather(size=FEW, weights=only(server_hangs=8, broker_is_cut_off=3))
OUTAGES: Final = Weather(
    size=FEW,
    weights=only(
        broker_hangs=2,
        broker_is_cut_off=6,
        broker_crashes=1,
        server_restarts=4,
        server_fails_over=2,
        relay_stops=3,
    ),
)
DELETED_LEASES: Final = Weather(size=FEW, weights=only(lease_is_deleted=6, broker_is_cut_off=2))
DELETIONS: Final = Weather(size=FEW, weights=only(records_are_deleted=3, relay_stops=3))


# Guards of the agent


def lease_counted_from_its_answer(switch: Switch) -> None:
    def renew(self: LeaseHolder) -> Lease:
        lease = self._granted()
        asked_at = self._links.clock()
        if not self._without_a_gap(lease):
            self.serve_nothing()
        self._history = lease.history
        self._holdings.extend(asked_at + lease.ms / 1000 - self._settings.lease_margin)
        self.renew_at = asked_at + lease.ms / 3000
        return lease

    switch.setattr(LeaseHolder, "renew", renew)


def gap_not_looked_for(switch: Switch) -> None:
    switch.setattr(LeaseHolder, "_without_a_gap", lambda *_: True)


def lapse_by_the_own_clock_ignored(switch: Switch) -> None:
    def without_a_gap(self: LeaseHolder, lease: Lease) -> bool:
        forgotten = lease.detail == "" and lease.history != self._history
        return lease.detail == str(self._settings.session) or (
            lease.renewal is Renewal.ASSERTED and forgotten
        )

    switch.setattr(LeaseHolder, "_without_a_gap", without_a_gap)


def gap_ignored_on_a_closed_store(switch: Switch) -> None:
    def without_a_gap(self: LeaseHolder, lease: Lease) -> bool:
        return lease.renewal is Renewal.ASSERTED or (
            self._holdings.leased() and lease.detail == str(self._settings.session)
        )

    switch.setattr(LeaseHolder, "_without_a_gap", without_a_gap)


def lapse_amid_seeding_ignored(switch: Switch) -> None:
    def swallow(self: Agreement, lapses: int) -> Lease:
        lease = self._renew()
        self._require_open(lease)
        self._lease.lapses = lapses
        return lease

    switch.setattr(Agreement, "_renew_without_a_gap", swallow)


def no_seeding_after_a_lapse(switch: Switch) -> None:
    switch.setattr(LeaseHolder, "serve_nothing", lambda _: None)


def older_process_not_waited_for(switch: Switch) -> None:
    """Neither by its own clock nor where the server remembers its session."""
    switch.setattr(LeaseHolder, "_wait_for_the_older", lambda self, _lease: self.serve_nothing())
    switch.setattr(MemoryServer, "_must_wait", lambda *_: False)


def served_while_unloaded(switch: Switch) -> None:
    def stop_serving(self: Obeyer, bundle: str) -> None:
        if bundle in self.broker.bundles():
            self.broker.unload(bundle)
        self.holdings.drop(bundle)

    switch.setattr(Obeyer, "stop_serving", stop_serving)


def released_before_it_is_stopped(switch: Switch) -> None:
    release: Callable[[Obeyer, Command], object] = lambda obeyer, command: obeyer.report(  # noqa: E731
        command, Event.RELEASE
    )
    switch.setattr(actions, "_unload", release)


def handed_over_before_it_is_stopped(switch: Switch) -> None:
    transfer = actions._transfer

    def without_stopping(obeyer: Obeyer, command: Command) -> object:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(Obeyer, "stop_serving", lambda *_: None)
            return transfer(obeyer, command)

    switch.setattr(actions, "_transfer", without_stopping)


def older_records_believed(switch: Switch) -> None:
    settle = Obeyer.settle

    def credulous(self: Obeyer, bundle: str, record: Record | None) -> None:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(type(self.seen), "note", lambda *_: True)
            settle(self, bundle, record)

    switch.setattr(Obeyer, "settle", credulous)


# Guards of the scripts, as the simulation has them


def replicas_not_asked_for(switch: Switch) -> None:
    switch.setattr(MemoryServer, "_require_replicas", lambda *_: None)


def acknowledgements_that_waited_believed(switch: Switch) -> None:
    switch.setattr(MemoryServer, "_are_in_touch", lambda *_: True)


def replicas_that_join_not_counted(switch: Switch) -> None:
    """Until the job looks again."""

    def require(self: MemoryServer, cluster: str) -> None:
        least = self.of(cluster).opening.replicas
        near = sum(0 <= each.lag_s < REPLICA_LAG_S + 1 for each in self.replication().replicas)
        if near < least:
            raise Isolated(f"it hears {near} of {least} replicas")

    switch.setattr(MemoryServer, "_require_replicas", require)


def generation_never_spent(switch: Switch) -> None:
    opened = MemoryServer.open

    def credulous(
        self: MemoryServer, cluster: str, generation: int, _known: str, *rest: Any
    ) -> object:
        return opened(self, cluster, generation, "", *rest)

    switch.setattr(MemoryServer, "open", credulous)


def deletion_not_noticed(switch: Switch) -> None:
    def is_open(self: MemoryServer, cluster: str) -> bool:
        return self.is_master and self.of(cluster).opening.opened_on == self.history

    switch.setattr(MemoryServer, "is_open", is_open)


def deleted_lease_taken_for_ended(switch: Switch) -> None:
    switch.setattr(MemoryServer, "_left", lambda *_: 0)


def waiting_journal_not_read(switch: Switch) -> None:
    switch.setattr(MemoryServer, "unrelayed", lambda *_: {})


def closed_for_no_time(switch: Switch) -> None:
    switch.setattr(manager, "CLOSED_FOR_MS", 0)


def nothing_asked_of_brokers(switch: Switch) -> None:
    def told(self: MemoryServer, cluster: str, *_: object) -> Renewal:
        return Renewal.HELD if self.is_open(cluster) else Renewal.ASSERTED

    switch.setattr(MemoryServer, "_told", told)


def written_while_closed(switch: Switch) -> None:
    switch.setattr(MemoryServer, "_writable", MemoryServer._changing)


def lease_taken_from_an_older_process(switch: Switch) -> None:
    renew = MemoryServer.renew

    def at_once(self: MemoryServer, cluster: str, broker: str, session: int, *rest: Any) -> Lease:
        before, until = self.of(cluster).leases.get(broker, (0, 0))
        if 0 < before < session:
            # Its note too: a lease that does not agree with the note is not believed.
            self._put(cluster, "leases", broker, (session, until))
            self._put(cluster, "sessions", broker, None)
        return renew(self, cluster, broker, session, *rest)

    switch.setattr(MemoryServer, "renew", at_once)


def taken_from_the_living(switch: Switch) -> None:
    _admit(switch, Refused.OWNER_LIVES)


def clock_not_vouched_for(switch: Switch) -> None:
    for script in (lease_script, transition_script):
        switch.setattr(script, "CLOCK_MARGIN_MS", math.inf)


def _admit(switch: Switch, ignored: Refused) -> None:
    judged = rules._inadmissible

    def admissible(*asked: Any) -> Refused | None:
        refused = judged(*asked)
        return None if refused is ignored else refused

    switch.setattr(rules, "_inadmissible", admissible)


ROWS: Final = [
    (gap_not_looked_for, ALL, 1),
    (lapse_by_the_own_clock_ignored, ALL, 13),
    (gap_ignored_on_a_closed_store, LOSSES, 3),
    (lapse_amid_seeding_ignored, CUT_OFF, 4),
    (no_seeding_after_a_lapse, ALL, 1),
    (served_while_unloaded, ALL, 1),
    (released_before_it_is_stopped, LOSSES, 6),
    (handed_over_before_it_is_stopped, ALL, 2),
    (older_records_believed, LOSSES, 4),
    (replicas_not_asked_for, ALL, 2),
    (replicas_that_join_not_counted, FAILOVERS, 12),
    (acknowledgements_that_waited_believed, HANGS, 1),
    (generation_never_spent, ALL, 7),
    (deletion_not_noticed, DELETIONS, 1),
    (deleted_lease_taken_for_ended, DELETED_LEASES, 1),
    (waiting_journal_not_read, DELETIONS, 1),
    (closed_for_no_time, OUTAGES, 2),
    (nothing_asked_of_brokers, OUTAGES, 2),
    (written_while_closed, ALL, 17),
    (lease_taken_from_an_older_process, ALL, 1),
    (taken_from_the_living, ALL, 1),
    (clock_not_vouched_for, STEPS, 7),
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


def run(weather: Weather, seed: int) -> None:
    """Up to twenty seeds: a change of the simulation changes what each draws."""
    for each in range(seed, seed + 20):
        world = Simulation(each, weather.odds, weather.margin_s, weather.size, weather.weights)
        world.run(weather.transitions)


LONG: Final = {
    lapse_amid_seeding_ignored,
    released_before_it_is_stopped,
    older_records_believed,
    generation_never_spent,
    closed_for_no_time,
    written_while_closed,
    lease_taken_from_an_older_process,
    clock_not_vouched_for,
}
"""It takes a second and more until they are noticed; the others take a fifth of one."""


@pytest.mark.parametrize(
    ("guard", "weather", "seed"),
    [
        pytest.param(*row, id=row[0].__name__, marks=[pytest.mark.slow] if row[0] in LONG else [])
        for row in ROWS
    ],
)
def test_a_guard_that_is_missing_is_noticed(
    guard: Callable[[Switch], None], weather: Weather, seed: int, monkeypatch: Switch
) -> None:
    guard(monkeypatch)
    with pytest.raises(AssertionError):
        run(weather, seed)


# Two for which it takes a long run; here they are said


def answered_late(link: Awry, ask: Callable[[], T]) -> T:
    answer = ask()
    link.clock.advance(5.0)
    return answer


def a_renewal_is_answered_late(scene: Scene) -> None:
    """Then its broker hangs: when its lease ends, the other one takes its bundles."""
    scene.passes(0.1)
    scene.link.turns_awry(0, answered_late, nullcontext())
    scene.clock.advance(0.4)
    scene.hosts[A].turn()
    scene.hosts[A].hangs_until = math.inf
    scene.passes(12.0)


def the_clock_goes_forward_while_another_waits(scene: Scene) -> None:
    """The first process hangs; its lease has run out by the server's clock alone."""
    link = Link(scene.server, scene.clock, scene.rng, NO_FAULTS, cluster=CLUSTER, broker=A)
    twin = Host([B], link, scene.clock, scene.rng, count(SESSIONS_FROM + 1))
    twin.start()
    scene.hosts["the other a"] = twin
    scene.hosts[A].hangs_until = math.inf
    twin.turn()
    scene.jump_ms = 30_000
    scene.passes(6.0)


STORIES: Final = [
    (lease_counted_from_its_answer, a_renewal_is_answered_late),
    (older_process_not_waited_for, the_clock_goes_forward_while_another_waits),
]


@pytest.mark.parametrize(("guard", "story"), STORIES)
def test_a_story_that_ends_well_because_of_a_guard(
    guard: Callable[[Switch], None], story: Callable[[Scene], None], monkeypatch: Switch
) -> None:
    story(Scene(1))
    guard(monkeypatch)
    with pytest.raises(AssertionError):
        story(Scene(1))
