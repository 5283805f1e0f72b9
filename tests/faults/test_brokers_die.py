"""Brokers that are slow, die at the worst moment, return, misread the time, or all fall silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.faults import history
from tests.faults.brokers import Node
from tests.faults.table import Row
from tests.faults.world import LEASE_S, LONG_S, T_S, World, world
from tests.support.waiting import eventually
from trimtab.doubt import Doubt
from trimtab.ownership import Event, State
from trimtab.wire.command import Command, Division
from trimtab.wire.command import CommandKind as Order
from trimtab.wire.ownership import Neighbour, Transition
from trimtab.wire.rounds import RoundRecord


@pytest.fixture
def it(row: Row, tmp_path: Path, seed: int) -> Iterator[World]:
    with world(row, tmp_path, seed=seed) as made:
        yield made


class Trap:
    """Acts on the first broker that reaches a point, for the first bundle there."""

    def __init__(self, it: World, point: str, springs: Callable[[Node], object]) -> None:
        self.victim: Node | None = None
        self.bundle = ""
        self._lock = threading.Lock()
        self._springs = springs
        for node in it.nodes.values():
            node.life.points[point] = partial(self._reached, node)

    def _reached(self, node: Node, bundle: str) -> None:
        with self._lock:
            first, self.victim = self.victim is None, self.victim or node
        if first:
            self.bundle = bundle
            self._springs(node)

    def sprung(self) -> Node:
        return eventually(lambda: self.victim if self.bundle else None, "somebody is there")


@pytest.mark.fault(18, "a broker drains slowly")
@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(LEASE_S / 2),
        pytest.param(LEASE_S + 3, marks=pytest.mark.slow),
        pytest.param(30.0, marks=pytest.mark.slow),
    ],
)
def test_a_broker_that_drains_slowly(it: World, row: Row, seconds: float) -> None:
    trap = Trap(it, "unload", lambda _: time.sleep(seconds))
    slow = trap.sprung()
    it.fault()
    assert it.records()[trap.bundle].state is State.RELEASING
    stuck = eventually(lambda: it.records()[trap.bundle].state is not State.RELEASING, "its end")
    assert stuck
    row.note("drains s", seconds)
    row.note("stuck s", round(it.diary.now() - it.faults[0], 1))
    it.let_pass(seconds - (it.diary.now() - it.faults[0]))
    # It is late: its answer about the bundle is heard or refused, and it does not get the bundle
    # back.
    eventually(lambda: slow.agent.seeded, "it has come round")
    it.check()


@pytest.mark.fault(19, "a broker dies in the middle of a step")
@pytest.mark.parametrize(
    ("point", "state"),
    [
        pytest.param("unload", State.RELEASING, id="Releasing"),
        pytest.param("load", State.ASSIGNING, id="Assigning"),
        pytest.param("topics", State.SPLITTING, id="Splitting"),
        pytest.param("split", State.OWNED, id="Split"),
        pytest.param("merge", State.OWNED, id="Merged"),
    ],
)
def test_a_broker_that_dies_in(it: World, row: Row, point: str, state: State) -> None:
    trap = Trap(it, point, Node.kill)
    if point in ("topics", "split"):
        divide(it, next(b for b, r in it.records().items() if r.state is State.OWNED))
    elif point == "merge":
        unite(it)
    dead = trap.sprung()
    it.fault()
    parts = [b for b in it.records() if within(b, trap.bundle)]
    assert {it.records()[b].state for b in parts} >= {state}
    row.note("dies in", point)
    row.note("to Owned s", round(it.await_served(), 1))
    assert not it.owned_by(dead.name)
    it.check()


@pytest.mark.fault(20, "a broker restarts while it is the destination")
def test_a_destination_that_restarts(it: World, row: Row) -> None:
    trap = Trap(it, "load", Node.kill)
    again = trap.sprung()
    it.fault()
    assigned = it.records()[trap.bundle]
    assert (assigned.state, assigned.owner) == (State.ASSIGNING, again.name)
    again.restart()
    served = eventually(lambda: it.records()[trap.bundle].state is State.OWNED, "it is Owned")
    assert served
    row.note("to Owned s", round(it.diary.now() - it.faults[0], 2))
    it.check()
    # At once, by what it read at its start: the bundle was not assigned again.
    story = [c for c in it.job.changes() if c.bundle == trap.bundle]
    after = next(c for c in story if c.record.epoch > assigned.epoch)
    assert (after.record.state, after.record.owner) == (State.OWNED, again.name)


RATES: Final = {0: 0.95, 1: 1.05, 2: 0.98}
"""Brokers allow for a tenth of the lease, as in production."""


@pytest.mark.fault(22, "clocks that drift, within the margin")
def test_clocks_that_drift(row: Row, tmp_path: Path, seed: int) -> None:
    with world(row, tmp_path, seed=seed, behind=frozenset({0, 1}), rates=RATES) as it:
        it.await_moves(2)
        it.link.hold()
        it.fault()
        it.let_pass(LONG_S)
        it.link.release()
        it.await_served()
        it.check()


@pytest.mark.fault(22, "a clock that drifts beyond it")
@pytest.mark.slow
def test_a_clock_beyond_the_margin_is_seen_to_break_the_rules(
    row: Row, tmp_path: Path, seed: int
) -> None:
    """Nothing can be safe then: this tests the checker."""
    with world(row, tmp_path, seed=seed, behind=frozenset({0}), rates={0: 0.3}) as it:
        it.link.hold()
        eventually(lambda: not it.owned_by(it.node(0).name), "others have its bundles")
        it.let_pass(LEASE_S)
        clashes = history.dual_owners(it.diary.spans())
        row.note("dual owners", len(clashes))
        assert clashes
        it.link.release()


@pytest.mark.fault(22, "Redis's clock jumps")
def test_a_jump_of_the_servers_clock_is_seen(it: World, row: Row) -> None:
    it.await_moves(1)
    # Whether leases are sound is known only after as much time as they last.
    begin = len(it.job.rounds())
    it.job.ahead_s = LEASE_S / 2
    it.fault()
    doubt = eventually(lambda: rounds_in(it, Doubt.UNSTABLE, begin), "doubt")
    row.note("detected s", round(it.diary.now() - it.faults[0], 1))
    assert not [move for record in doubt for move in (*record.moves, *record.repairs)]
    eventually(lambda: it.job.rounds()[-1].doubt == Doubt.STABLE, "no doubt")
    it.check()


@pytest.mark.fault(36, "all brokers silent")
def test_all_brokers_at_once(it: World, row: Row) -> None:
    it.await_moves(1)
    it.fault()
    begin = len(it.job.rounds())
    for node in it.nodes.values():
        node.kill()
    eventually(lambda: rounds_in(it, Doubt.UNSTABLE, begin), "doubt")
    known = len(it.job.changes())
    it.let_pass(LONG_S)
    silent = it.job.rounds()[begin:]
    row.note("moves while silent", sum(len(record.moves) for record in silent))
    # No bundle was given away, not even those of the broker that was seen to die first. Changes
    # that were accepted before the doubt may be relayed later.
    taken = {Event.ASSIGN, Event.LOSE, Event.QUARANTINE}
    assert [change for change in it.job.changes()[known:] if change.event in taken] == []
    it.fault()
    for node in it.nodes.values():
        node.restart()
    row.note("served again s", round(it.await_served(), 1))
    it.check(excused=(it.faults[0], it.faults[1] + T_S))


def rounds_in(it: World, doubt: Doubt, begin: int = 0) -> list[RoundRecord]:
    return [record for record in it.job.rounds()[begin:] if record.doubt == doubt]


def within(bundle: str, whole: str) -> bool:
    namespace, ends = whole.rsplit("/", 1)
    low, high = ends.split("_")
    of, span = bundle.rsplit("/", 1)
    first, last = span.split("_")
    return of == namespace and low <= first and last <= high


def unite(it: World) -> None:
    """The first two neighbours of one owner, as an operator's request would."""
    lower, upper = eventually(lambda: next(neighbours(it), None), "two of one owner")
    records = it.records()
    owner = records[lower].owner
    assert owner is not None
    command = Command(
        id="operator/merge",
        cluster=it.cluster,
        broker=owner,
        kind=Order.MERGE,
        bundle=lower,
        neighbour=upper,
    )
    ordered(it, Event.MERGE, command, Neighbour(upper, records[upper].epoch))


def neighbours(it: World) -> Iterator[tuple[str, str]]:
    records = it.records()
    owned = sorted(b for b, record in records.items() if record.state is State.OWNED)
    for lower, upper in pairwise(owned):
        ends, begins = lower.split("_")[-1], upper.rsplit("/", 1)[1].split("_")[0]
        if ends == begins and records[lower].owner == records[upper].owner:
            yield lower, upper


def divide(it: World, bundle: str) -> None:
    """As an operator's request would."""
    record = it.records()[bundle]
    assert record.owner is not None
    division = Division(
        algorithm="range_equally_divide", max_rate=1000.0, max_throughput=1e9, difference=0.1
    )
    command = Command(
        id="operator/split",
        cluster=it.cluster,
        broker=record.owner,
        kind=Order.SPLIT,
        bundle=bundle,
        division=division,
    )
    ordered(it, Event.SPLIT, command)


def ordered(it: World, event: Event, command: Command, other: Neighbour | None = None) -> None:
    asked = Transition(
        id="operator",
        bundle=command.bundle,
        event=event,
        expect=it.records()[command.bundle].epoch,
        neighbour=other,
        commands=(command,),
        within_ms=4000,
    )
    it.operate(asked)
