"""Ownership under every fault at once: the short form; the long one is a command."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from simulation.ownership.faults import FAULTS, IN_TIME
from simulation.ownership.network import NO_FAULTS, Odds
from simulation.ownership.oracle import Violation
from simulation.ownership.run import Simulation
from simulation.ownership.world import CLUSTERS, LARGE
from streaming.watch.server_clock import ServerClock
from tests.support.examples import later
from trimtab.doubt import Doubt
from trimtab.ownership import State

SHORT = 6_000
"""Transitions: some hundred simulated seconds, a few rebuilds."""
IN_TIME_ODDS = Odds(slow=0.0, very_slow=0.0, hung=0.0)
"""Every command can end before its deadline."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Hundreds of agents say that they wait for the store."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("seed", [1, *later(2)])
def test_no_two_brokers_serve_a_bundle_whatever_breaks(seed: int) -> None:
    tally = Simulation(seed).run(SHORT)
    assert tally.transitions >= SHORT
    assert tally.rebuilds > 0
    # More bundles end than begin while they are merged, and fewer while they are divided.
    assert tally.events["merge to Merging"] > 0
    ends, births = tally.events["retire to Deleted"], tally.events["retire to Owned"]
    assert births < 2 * ends
    assert tally.faults["broker is killed within a step"] > 0
    often = {name for name, fault in FAULTS.items() if fault.weight >= 1}
    assert often <= set(tally.faults)


@pytest.mark.parametrize("transitions", [SHORT // 3, *later(SHORT)])
def test_thousands_of_bundles_are_no_different(transitions: int) -> None:
    tally = Simulation(4, size=LARGE).run(transitions)
    assert tally.transitions >= transitions


def test_the_auditor_finds_nothing_where_the_journal_is_in_time() -> None:
    tally = Simulation(5, IN_TIME_ODDS, weights=IN_TIME, in_time=True).run(SHORT)
    assert tally.rebuilds > 0


def test_the_same_seed_gives_the_same_run() -> None:
    assert Simulation(3).run(1_000) == Simulation(3).run(1_000)


def test_brokers_that_serve_beyond_their_leases_are_found_out() -> None:
    """The check can fail: with a margin of minus eight seconds leases are worth nothing."""
    with pytest.raises(Violation, match="serves"):
        Simulation(1, margin_s=-8.0).run(100_000)


class LosesAnEntry(Simulation):
    """Of the journal, on its way to Kafka."""

    def _relay(self, most: int) -> None:
        if self.oracle.transitions > 500 and not self.faults["an entry is lost"]:
            entries = list(self.master.of(CLUSTERS[0]).journal)
            self.faults["an entry is lost"] = len(entries[:1])
            self.master.data.begin()
            for entry in entries[:1]:
                self.master.data.put(CLUSTERS[0], "journal", entry, None)
        super()._relay(most)


class LosesARecord(Simulation):
    """A bundle's, and no broker notices."""

    def _relay(self, most: int) -> None:
        super()._relay(most)
        if self.oracle.transitions > 500:
            records = self.master.of(CLUSTERS[0]).records
            standing = (b for b, record in records.items() if record.state is not State.DELETED)
            gone = next(standing, "none")
            records.pop(gone, None)
            self.oracle.reshape([(CLUSTERS[0], gone.rpartition("/")[0])])


@pytest.mark.parametrize(
    ("world", "found"),
    [
        pytest.param(LosesAnEntry, "the auditor finds", id="by the auditor"),
        pytest.param(LosesARecord, "does not tile", id="by the records"),
    ],
)
def test_what_breaks_another_rule_is_found_out_as_well(world: type[Simulation], found: str) -> None:
    with pytest.raises(Violation, match=found):
        world(2, IN_TIME_ODDS, weights=IN_TIME, in_time=True).run(100_000)


def test_a_jump_of_the_servers_clock_beyond_the_margin_raises_doubt() -> None:
    world = Simulation(5, NO_FAULTS)
    watch = ServerClock(
        lambda: world.master.now_ms() / 1000, lambda: world.clock.now, window=10.0, margin=1.0
    )
    for _ in range(80):
        world.clock.advance(0.25)
        watch.look()
    assert watch.level() is Doubt.STABLE

    world.stores.step_clock(20.0)
    world.clock.advance(0.25)
    watch.look()

    assert watch.level() is Doubt.UNSTABLE
    assert watch.drift == pytest.approx(20.0)
