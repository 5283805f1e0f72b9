"""A scenario's view, made from columns, is the one that the job would assemble from reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from simulation.load_model import LOAD_MANAGER
from simulation.scenarios import change_scenario
from simulation.scenarios.reports.view import Reports
from simulation.scenarios.scenario import Scenario
from simulation.scenarios.world.needs import IDLE, LIMITS
from simulation.scenarios.world.state import World
from trimtab.intake.assemble import Holdings, assemble
from trimtab.intake.fold import Arrival, fold
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.model import NO_EPOCH
from trimtab.ownership import State
from trimtab.view import View
from trimtab.wire.ownership import Record
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode

EPOCH_MS = 1_800_000_000_000
CYCLES = 15
SMALL: Mapping[str, object] = {
    "brokers": 4,
    "bundles": 24,
    "namespaces": 3,
    "hardware": "1:4",
    "noise": 0.3,
}


@dataclass
class Fleet:
    """The brokers of a world as the job knows them: by what they report."""

    world: World
    reports: Reports
    owners: list[tuple[int, list[int]]] = field(default_factory=list)
    """When and to what ownership changed."""
    drawn: list[list[float]] = field(default_factory=list)
    """What each bundle weighed, cycle by cycle; first the load before all of them."""
    snapshots: dict[str, Snapshot] = field(default_factory=dict)

    def note_owners(self, at_ms: int) -> None:
        self.owners.append((at_ms, self.world.owner.tolist()))

    def report(self, cycle: int) -> None:
        """Fold what each broker sent when the world says that it did."""
        self.drawn.append(self.reports.statistics.drawn[0].tolist())
        for row, name in enumerate(self.world.brokers):
            made_ms = int(self.reports.lateness.made_ms[row])
            reported_ms = int(self.reports.lateness.reported_ms[row])
            age = int(self.reports.lateness.age[row])
            data = self.data(row, made_ms, self.drawn[cycle - age + 1])
            arrival = Arrival(reported_ms, 1, made_ms, decode(encode(data)))
            snapshot, _ = fold(self.snapshots.get(name), name, [arrival], IntakeSettings())
            assert snapshot is not None
            self.snapshots[name] = snapshot

    def data(self, broker: int, made_ms: int, drawn: list[float]) -> LocalBrokerData:
        """The report of a broker made at that time."""
        owners = [owners for at_ms, owners in self.owners if at_ms <= made_ms][-1]
        mine = [row for row, owner in enumerate(owners) if owner == broker]
        capacity = float(self.world.capacity[broker])
        needs, kind = self.world.needs, self.world.kind
        used = (
            sum((drawn[row] * needs.used[:, kind[row]] for row in mine), np.zeros(5))
            + IDLE[:, 0] * capacity
        ).tolist()
        limits = (LIMITS[:, 0] * capacity).tolist()
        cpu, memory, direct, link_in, link_out = (
            Resource(usage=u, limit=x) for u, x in zip(used, limits, strict=True)
        )
        rate_in, rate_out, bytes_in, bytes_out = sum(
            (drawn[row] * needs.traffic[:, kind[row]] for row in mine), np.zeros(4)
        ).tolist()
        return LocalBrokerData(
            cpu=cpu,
            memory=memory,
            direct_memory=direct,
            bandwidth_in=link_in,
            bandwidth_out=link_out,
            msg_rate_in=rate_in,
            msg_rate_out=rate_out,
            msg_throughput_in=bytes_in,
            msg_throughput_out=bytes_out,
            last_stats={self.world.names[row]: self.stats(row, drawn[row]) for row in mine},
            bundles=[self.world.names[row] for row in mine],
            num_topics=sum(int(self.world.topics[row]) for row in mine),
            num_bundles=len(mine),
            last_update=made_ms,
            broker_version_string="4.0.8",
            load_manager_class_name=LOAD_MANAGER,
        )

    def stats(self, row: int, load: float) -> BundleStats:
        traffic = self.world.needs.traffic[:, self.world.kind[row]]
        rate_in, rate_out, bytes_in, bytes_out = (load * traffic).tolist()
        topics = int(self.world.topics[row])
        return BundleStats(
            msg_rate_in=rate_in,
            msg_rate_out=rate_out,
            msg_throughput_in=bytes_in,
            msg_throughput_out=bytes_out,
            topics=topics,
            consumer_count=topics,
            producer_count=topics,
        )

    def assembled(self) -> View:
        world = self.world
        records = {
            name: Record(state=State.OWNED, epoch=NO_EPOCH, owner=world.brokers[owner])
            for name, owner in zip(world.names, world.owner.tolist(), strict=True)
        }
        flights = {
            world.names[row]: world.brokers[flight.destination]
            for row, flight in world.flights.items()
        }
        view, _ = assemble("c", list(self.snapshots.values()), Holdings(records, in_flight=flights))
        return view


def views(
    scenario: Scenario, moves_a_cycle: int, returning: bool = True
) -> Iterator[tuple[View, View]]:
    """Each cycle's view and the assembled one; some bundles move after each."""
    world = World(scenario)
    fleet = Fleet(world, Reports(world))
    rng = np.random.default_rng(7)
    fleet.note_owners(0)
    fleet.drawn.append(world.load.tolist())
    for cycle in range(CYCLES):
        now_ms = EPOCH_MS + 60_000 * cycle
        for until_ms in sorted({flight.until_ms for flight in world.flights.values()}):
            if until_ms <= now_ms:
                world.land(until_ms)
                fleet.note_owners(until_ms)
        view = fleet.reports.view(now_ms)
        fleet.report(cycle)
        yield view, fleet.assembled()
        settled = [row for row in range(scenario.bundles) if row not in world.flights]
        rows = rng.permutation(settled)[:moves_a_cycle].tolist()
        there = rng.integers(scenario.brokers, size=len(rows)).tolist()
        if not returning:
            there = [(int(world.owner[row]) + 1) % scenario.brokers for row in rows]
        moves = {row: to for row, to in zip(rows, there, strict=True) if to != world.owner[row]}
        lasting = rng.uniform(scenario.delay.flight_low, scenario.delay.flight_high, len(moves))
        world.issue(moves, now_ms, np.rint(1000 * lasting).astype(np.int64).tolist())
        fleet.note_owners(now_ms)


COLUMNS = ("short", "long", "stats", "counts")
WITHOUT_STATS = tuple(each for each in COLUMNS if each != "stats")
"""Where a report comes less than a sample interval after the last, the job keeps the statistics
that it took then, and a scenario shows the newest."""


def same(ours: View, theirs: View, columns: tuple[str, ...] = COLUMNS) -> None:
    """Equal, whatever the order of the bundles; sums may be added in another order."""
    order = np.argsort([*ours.bundles.names])
    other = np.argsort([*theirs.bundles.names])
    assert [ours.bundles.names[i] for i in order] == [theirs.bundles.names[i] for i in other]
    names = ours.brokers.names
    assert names == theirs.brokers.names
    for column in ("owner", "movable"):
        np.testing.assert_array_equal(
            getattr(ours.bundles, column)[order], getattr(theirs.bundles, column)[other]
        )
    np.testing.assert_array_equal(ours.intended[order], theirs.intended[other])
    for column in columns:
        np.testing.assert_allclose(
            getattr(ours.bundles, column)[:, order],
            getattr(theirs.bundles, column)[:, other],
            rtol=1e-12,
            err_msg=column,
        )
    for column in ("topics", "listed", "reported_ms", "available", "persistent", "limits"):
        np.testing.assert_array_equal(
            getattr(ours.brokers, column), getattr(theirs.brokers, column), err_msg=column
        )
    for column in ("traffic", "smoothed_traffic"):
        np.testing.assert_allclose(
            getattr(ours.brokers, column), getattr(theirs.brokers, column), rtol=1e-12, atol=1e-6
        )
    for column in ("resources", "smoothed_resources"):
        np.testing.assert_allclose(
            getattr(ours.brokers, column), getattr(theirs.brokers, column), rtol=2e-7
        )
    assert ours.brokers.versions == theirs.brokers.versions
    assert ours.brokers.load_managers == theirs.brokers.load_managers
    spaces = ours.bundles.namespaces
    assert [spaces[i] for i in ours.bundles.namespace[order]] == [
        theirs.bundles.namespaces[i] for i in theirs.bundles.namespace[other]
    ]


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_view_is_the_one_that_the_job_assembles(noise: float) -> None:
    for ours, theirs in views(change_scenario(Scenario(), {**SMALL, "noise": noise}), 2):
        assert len(ours.bundles.names) == 24
        same(ours, theirs)


def test_late_reports_show_what_was_and_hide_what_has_not_been_reported() -> None:
    late = {**SMALL, "delay.low": 5.0, "delay.high": 50.0, "delay.flight_high": 100.0}
    hidden = flying = 0
    for ours, theirs in views(change_scenario(Scenario(), late), 3):
        same(ours, theirs, WITHOUT_STATS)
        hidden += 24 - len(ours.bundles.names)
        flying += int((ours.intended != ours.bundles.owner).sum())
    assert hidden > 0
    assert flying > 0


@pytest.mark.parametrize("most", ["processor:network", "processor:network:memory"])
def test_bundles_that_need_different_resources_are_seen_as_their_broker_reports_them(
    most: str,
) -> None:
    for ours, theirs in views(change_scenario(Scenario(), {**SMALL, "need.most": most}), 2):
        same(ours, theirs)


def test_lost_and_late_reports_are_seen_as_the_job_would_see_them() -> None:
    posted = {**SMALL, "reports.lost": 0.3, "reports.late": 150.0, "delay.flight_high": 100.0}
    hidden = 0
    for ours, theirs in views(change_scenario(Scenario(), posted), 3, returning=False):
        same(ours, theirs)
        hidden += 24 - len(ours.bundles.names)
    assert hidden > 0
