"""Brokers that are busier than their bundles explain, for a while or for good."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulation.scenarios.reading import load
from simulation.scenarios.running import EPOCH_MS, Run, strategy
from trimtab.arrays import CPU, Floats
from trimtab.load_model.estimating.leap_record import LeapRecord
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.resources.excess import Excess, hash_brokers, note_spells

MINUTE_MS = 60_000
NAMES = ("a", "b", "c", "d")
MORE = 20.0
"""Percent of a processor that a backup takes."""


class Minutes:
    """Four brokers whose use is known to a hundredth."""

    def __init__(self) -> None:
        self.record, self.minute = LeapRecord(), 0
        self.passing = np.zeros(4, np.bool_)

    def run(self, minutes: int, off: Floats, *, full: bool = False, calm: bool = True) -> None:
        for _ in range(minutes):
            self.minute += 1
            each = np.full(4, 0.01), np.full(4, calm), np.full(4, full)
            found = Excess(hash_brokers(NAMES), off, *each)
            now_ms = EPOCH_MS + self.minute * MINUTE_MS
            self.record, self.passing = note_spells(self.record, found, now_ms)


def excess_of(broker: int, much: float = 0.25) -> Floats:
    return np.where(np.arange(4) == broker, much, 0.0)


def test_an_excess_is_believed_once_it_has_lasted() -> None:
    minutes = Minutes()
    minutes.run(14, excess_of(2))
    assert minutes.passing.tolist() == [False, False, True, False]
    minutes.run(3, excess_of(2))
    assert not minutes.passing.any()
    # Learned by then, so that nothing is off; it lasts.
    minutes.run(60, excess_of(2, 0.0))
    assert minutes.record.lasted > 0.9
    minutes.run(1, excess_of(1))
    assert not minutes.passing.any()


def test_where_they_passed_the_next_waits_for_longer() -> None:
    minutes = Minutes()
    for broker in (0, 1, 2):
        minutes.run(12, excess_of(broker))
        minutes.run(5, excess_of(broker, 0.0))
    assert sum(minutes.record.returned) > 2.9
    minutes.run(20, excess_of(3))
    assert minutes.passing[3]


def test_what_was_believed_and_ends_has_passed() -> None:
    """It is no spell of its own to be busy as before."""
    minutes = Minutes()
    minutes.run(20, excess_of(0))
    minutes.run(1, excess_of(0, -0.25))
    assert not minutes.passing.any()
    assert sum(minutes.record.returned) == 1


def test_a_backup_that_was_believed_once_and_ended_is_waited_out_the_next_time() -> None:
    """It took twenty minutes then, and another broker's would be believed after a quarter of an
    hour."""
    minutes = Minutes()
    minutes.run(20, excess_of(0))
    minutes.run(1, excess_of(0, -0.25))
    minutes.run(4, excess_of(0, 0.0))
    minutes.run(25, excess_of(0) + excess_of(1))
    assert minutes.passing.tolist() == [True, False, False, False]


def test_what_is_small_or_of_a_move_or_of_a_full_broker_is_believed_at_once() -> None:
    for off, more in (
        (excess_of(0, 0.04), {}),
        (excess_of(0), {"calm": False}),
        (excess_of(0), {"full": True}),
        (np.array([0.25, 0.25, 0.25, 0.0]), {}),
    ):
        minutes = Minutes()
        minutes.run(3, off, **more)
        assert not minutes.passing.any()


def test_a_backup_says_nothing_of_the_bundles_of_its_broker() -> None:
    """Dealt out to them, it would make them look heavy until they have moved away."""
    small = {"brokers": 12, "bundles": 240, "namespaces": 12, "sigma": 0.5, "warm_up": 0}
    run = Run(load("two-resources", **small, **{"need.told": False}), strategy("none"))
    before = observe(run, range(12))
    assert before.takes is not None
    # Of those that processors rule, the one with most room.
    share = before.takes.used * before.takes.scale
    busy = int(np.argmin(np.where(share[CPU] == before.usage, before.usage, np.inf)))
    after = observe(run, range(12, 20), busy)
    assert after.takes is not None
    assert after.busy == 1
    np.testing.assert_allclose(after.usage, before.usage, atol=0.01)
    np.testing.assert_allclose(after.takes.need[CPU], before.takes.need[CPU], rtol=0.05)
    believed = observe(run, range(20, 30), busy)
    assert believed.usage[busy] > before.usage[busy] + 0.15


def observe(run: Run, minutes: range, busy: int | None = None) -> Fleet:
    """The fleet after minutes in which nothing moves, and one broker may be busy with a backup; all
    were watched for so long before that nothing they take by themselves is in doubt."""
    history, settings = run.state.histories.trimtab, run.settings
    for minute in minutes:
        view = run._reports.view(EPOCH_MS + MINUTE_MS * minute)
        resources = view.brokers.resources.copy()
        if busy is not None:
            resources[CPU, busy] += MORE
        view = replace(view, brokers=replace(view.brokers, resources=resources))
        history = replace(history, since_ms=dict.fromkeys(view.brokers.names, 0))
        fleet, history = observe_fleet(view, history, settings)
    run.state = replace(run.state, histories=replace(run.state.histories, trimtab=history))
    return fleet
