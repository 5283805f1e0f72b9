"""Cold neighbours that become one bundle, where their namespace may not have many more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import msgspec
import numpy as np
import pytest

from tests.support.clusters import NOW_MS, Broker, Bundle, cluster
from tests.support.clusters_by_rows import change_row, held, record_row, skewed, snapshot_row
from tests.support.clusters_by_rows import cluster as empty_cluster
from tests.support.pulsar import PULSAR
from tests.support.reports import bundle
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.plan import Merge, Plan, parts_of
from trimtab.reasons import Reason, Rule
from trimtab.round.decide import decide
from trimtab.round.proposals import ask_merger
from trimtab.settings import Settings
from trimtab.state.in_flight import launch_flights
from trimtab.state.round_state import RoundState
from trimtab.store.requests import BatchId, transitions
from trimtab.view import View
from trimtab.wire.command import CommandKind
from trimtab.wire.ownership import Neighbour, Record
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row

PARTS = tuple(f"t/n/0x{low:08x}_0x{low + 0x10000000:08x}" for low in range(0, 0x80000000, 1 << 28))
LIMITS = {
    "split.max_bundles": 8,
    "split.max_rate": 1000.0,
    "split.max_throughput": 1e6,
    "split.max_topics": 100,
    "split.max_sessions": 40,
    "merge.fraction": 0.5,
    "merge.max_per_round": 0,
}
"""With two merged a namespace of eight has fewer than nine tenths of what it may."""
MINUTE_MS, GRACE_MS = 60_000, 1_800_000


def fleet(
    rates: Mapping[int, float] | None = None,
    size: int = 8,
    given: Mapping[int, Bundle] | None = None,
) -> View:
    """``a`` has the first six of PARTS, ``b`` the others; 200 messages/s each unless said."""
    parts = [Bundle((200.0, 0, 0, 0), name=name, topics=2) for name in PARTS]
    for row, rate in (rates or {}).items():
        parts[row] = replace(parts[row], short=(rate, 0, 0, 0))
    for row, part in (given or {}).items():
        parts[row] = replace(part, name=PARTS[row])
    view = cluster(a=Broker(0.3, parts[:6]), b=Broker(0.3, parts[6:]))
    return replace(view, sizes={"t/n": size})


def chosen(values: Mapping[str, object]) -> Settings:
    return Settings.parse({**PULSAR, **LIMITS, **{k.replace("__", "."): values[k] for k in values}})


def pairs(view: View, **values: object) -> list[tuple[int, int]]:
    """By their places in PARTS, in the order in which they are merged."""
    settings = chosen(values)
    merges, names = ask_merger(view, settings), view.bundles.names
    assert {merge.reason for merge in merges} <= {Reason.COLD_NEIGHBOURS}
    return [
        (PARTS.index(names[merge.bundle]), PARTS.index(names[merge.neighbour])) for merge in merges
    ]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        pytest.param(fleet(size=7), [], id="below the share there is room enough"),
        pytest.param(fleet(), [(0, 1)], id="the first of equals, and then there is room"),
        pytest.param(fleet({3: 10.0}), [(2, 3)], id="the coldest pair first"),
        pytest.param(fleet({3: 10.0, 2: 400.0}), [(3, 4)], id="with its colder neighbour"),
        pytest.param(fleet(size=10), [(0, 1), (2, 3), (4, 5)], id="as many as are too many"),
        pytest.param(
            fleet(dict.fromkeys(range(1, 6), 300.0), size=10),
            [(6, 7), (0, 1)],
            id="none that is above the fraction together",
        ),
        pytest.param(fleet(dict.fromkeys(range(8), 251.0)), [], id="nothing is cold"),
        pytest.param(
            fleet(dict.fromkeys(range(8), 250.0)), [(0, 1)], id="at the fraction a pair is cold"
        ),
        pytest.param(
            fleet({5: 1.0, 6: 1.0, 4: 490.0}), [(6, 7)], id="neighbours on two brokers stay apart"
        ),
        pytest.param(
            fleet(size=99, given={3: Bundle(movable=False)}),
            [(0, 1), (4, 5), (6, 7)],
            id="what is not movable stays",
        ),
    ],
)
def test_cold_neighbours(view: View, expected: list[tuple[int, int]]) -> None:
    assert pairs(view) == expected


@pytest.mark.parametrize(
    "heavy",
    [
        pytest.param(Bundle((0, 0, 4e5, 4e5)), id="bytes"),
        pytest.param(Bundle((450.0, 450.0, 0, 0)), id="messages"),
        pytest.param(Bundle((0, 0, 0, 0), long=(900.0, 0, 0, 0)), id="messages in the long term"),
        pytest.param(Bundle(topics=60), id="topics"),
        pytest.param(Bundle(sessions=30), id="sessions"),
    ],
)
def test_every_limit_has_a_say(heavy: Bundle) -> None:
    others = dict.fromkeys(range(2, 8), Bundle(movable=False))
    view = fleet(given={0: Bundle(), 1: heavy} | others)
    assert pairs(view) == []
    assert pairs(view, merge__fraction=1.0) == [(0, 1)]


def test_sessions_have_none_where_they_are_not_limited() -> None:
    view = fleet(given={0: Bundle(sessions=10_000)})
    assert pairs(view) == [(1, 2)]
    assert pairs(view, split__max_sessions=0) == [(0, 1)]


def test_where_nothing_may_have_traffic_only_the_idle_are_cold() -> None:
    idle = fleet({0: 0.0, 1: 0.0, 2: 0.0}, size=99)
    assert pairs(idle, split__max_rate=0.0) == [(0, 1)]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"merge__enabled": False}, id="merging is off"),
        pytest.param({"split__enabled": False}, id="nothing is divided, so no room is needed"),
        pytest.param({"split__max_bundles": 0}, id="the same by its limit"),
        pytest.param({"merge__share": 1.0, "split__max_bundles": 9}, id="a higher share"),
    ],
)
def test_nothing_is_merged(values: dict[str, object]) -> None:
    assert pairs(fleet(), **values) == []


def test_a_round_merges_no_more_than_it_may() -> None:
    assert pairs(fleet(size=99), merge__max_per_round=2) == [(0, 1), (2, 3)]


def test_what_is_being_merged_has_made_its_room_already() -> None:
    """Also where the one that two become is not there yet; a record left alone makes none."""
    merging = {
        name: Record(state=State.MERGING, epoch=Epoch(3, 2), owner="a", since=0)
        for name in PARTS[:3]
    }
    still = dict.fromkeys(range(3), Bundle(movable=False))
    view = replace(fleet(size=9, given=still), records=merging)
    assert pairs(view) == [(3, 4)]
    assert pairs(replace(view, sizes={"t/n": 8})) == []
    assert pairs(replace(view, records={})) == [(3, 4), (6, 7)]


def test_other_namespaces_are_not_changed() -> None:
    """Each is judged by its own size."""
    elsewhere = [name.replace("t/n", "t/m") for name in PARTS[:4]]
    there = [Bundle(name=name, topics=2) for name in elsewhere]
    here = [Bundle((100.0, 0, 0, 0), name=name, topics=2) for name in PARTS[:4]]
    view = cluster(a=Broker(0.3, [*here, *there]), b=Broker(0.3, [Bundle()]))
    view = replace(view, sizes={"t/n": 8, "t/m": 4})
    assert pairs(view) == [(0, 1)]


def test_what_changed_lately_is_let_be() -> None:
    """Brokers say little of it at first."""
    now = NOW_MS - GRACE_MS
    since = dict.fromkeys(PARTS, now - 1) | {PARTS[1]: now}
    records = {
        name: Record(state=State.OWNED, epoch=Epoch(3, row), owner="a", since=since[name])
        for row, name in enumerate(PARTS)
    }
    view = replace(fleet(), records=records)
    plan, _ = hold(view)
    merge = Merge(PARTS[2], PARTS[3], "a", Reason.COLD_NEIGHBOURS, Epoch(3, 2), Epoch(3, 3))
    assert plan.merges == (merge,)


# The round


def hold(view: View, state: RoundState | None = None, **values: object) -> tuple[Plan, RoundState]:
    settings = chosen(values)
    return decide(view, state or RoundState(), settings, NOW_MS, np.random.default_rng(1))


def test_what_is_merged_does_not_move_and_rests_with_what_comes_of_it() -> None:
    plan, state = hold(fleet())
    assert parts_of(plan.merges) == {PARTS[0], PARTS[1]}
    assert plan.skipped is None
    assert state.recent == dict.fromkeys([*PARTS[:2], "t/n/0x00000000_0x20000000"], NOW_MS)
    hot = replace(
        cluster(
            a=Broker(0.9, [Bundle((1, 0, 4e7, 0), name=name, topics=2) for name in PARTS]),
            b=Broker(0.1, [Bundle()]),
        ),
        sizes={"t/n": 8},
    )
    plan, _ = hold(hot, split__max_throughput=1e9)
    assert parts_of(plan.merges) == {PARTS[0], PARTS[1]}
    assert plan.moves
    assert parts_of(plan.merges).isdisjoint(move.bundle for move in plan.moves)


def test_neighbours_are_merged_while_shedding_is_off() -> None:
    plan, _ = hold(fleet(), round__enabled=False)
    assert parts_of(plan.merges) == {PARTS[0], PARTS[1]}
    assert plan.skipped is Rule.DISABLED
    assert hold(fleet(), round__enabled=False, merge__enabled=False)[0].changes == 0
    assert hold(fleet(), round__enabled=False, split__enabled=False)[0].changes == 0


def test_what_is_merged_already_is_not_merged_with_others() -> None:
    """The second round takes the next pair, though the first two are as cold as ever."""
    _, state = hold(fleet())
    plan, _ = hold(fleet(), state)
    assert parts_of(plan.merges) == {PARTS[2], PARTS[3]}


def test_what_is_divided_is_not_merged() -> None:
    hot = Bundle((2000.0, 0, 0, 0), topics=2)
    plan, _ = hold(fleet(given={0: hot}), split__max_bundles=9, merge__share=0.8)
    assert [split.bundle for split in plan.splits] == [PARTS[0]]
    assert parts_of(plan.merges) == {PARTS[1], PARTS[2]}


def test_observing_only_shows_merges_and_remembers_none() -> None:
    plan, state = hold(fleet(), round__observe_only=True)
    assert (len(plan.merges), state.recent) == (1, {})


def test_both_bundles_are_in_flight() -> None:
    plan, _ = hold(fleet())
    flights = launch_flights(plan, {}, Settings(), 0)
    assert {bundle: flight.destination for bundle, flight in flights.items()} == {
        PARTS[0]: "a",
        PARTS[1]: "a",
    }


# The cluster

QUARTERS = [bundle(i, 4) for i in range(4)]
CROWDED = {"split.max_bundles": 4, "round.grace_period": 0.0, "merge.max_per_round": 1}


def test_the_owner_is_told_to_merge_after_moves_and_splits() -> None:
    it = empty_cluster(CROWDED)
    it.receive(skewed(QUARTERS), 0)
    record = held(it, 5000)
    assert [(merge.bundle, merge.neighbour) for merge in record.merges] == [tuple(QUARTERS[:2])]
    *_, request = transitions(record, BatchId("query-1", 7))
    place = len(record.moves)
    assert (request.id, request.event) == (f"c/query-1/7/{place}", Event.MERGE)
    assert (request.bundle, request.expect) == (QUARTERS[0], Epoch(1, 1))
    assert request.neighbour == Neighbour(QUARTERS[1], Epoch(1, 1))
    (command,) = request.commands
    assert (command.id, command.broker, command.kind) == (
        f"{request.id}/merge",
        "a:1",
        CommandKind.MERGE,
    )
    assert (command.bundle, command.neighbour) == (QUARTERS[0], QUARTERS[1])
    assert set(QUARTERS[:2]) <= set(it.memory.in_flight)


def test_what_is_being_merged_is_left_alone() -> None:
    it = empty_cluster(CROWDED)
    it.receive(skewed(QUARTERS), 0)
    it.receive([change_row(b, "a:1", 2, State.MERGING, Event.MERGE) for b in QUARTERS[:2]], 0)
    record = held(it, 5000)
    merged = {name for merge in record.merges for name in (merge.bundle, merge.neighbour)}
    assert merged.isdisjoint(QUARTERS[:2])
    assert {move.bundle for move in record.moves}.isdisjoint(QUARTERS[:2])
    assert record.obstacles["in-flight"] == 2


def retired(by: str, **states: tuple[State, str | None]) -> list[Row]:
    return [
        record_row(
            name, Record(state=state, epoch=Epoch(1, 9), owner=owner, by=by, since=5), Event.RETIRE
        )
        for name, (state, owner) in states.items()
    ]


def test_what_was_merged_looks_for_no_other_place() -> None:
    it = empty_cluster(PULSAR)
    it.receive(skewed(QUARTERS), 0)
    whole = bundle(0, 2)
    gone = dict.fromkeys(QUARTERS[:2], (State.DELETED, None))
    it.receive(retired("r", **gone, **{whole: (State.OWNED, "a:1")}), 0)
    assert it.memory.round.halves == {}
    assert it.memory.sizes == {"t/ns": 3}
    assert it.memory.flawed == {}
    it.receive([snapshot_row("a:1", dict.fromkeys([whole, *QUARTERS[2:]], 100.0), cpu=90.0)], 0)
    record = held(it, 5000)
    assert not [move for move in record.moves if move.reason == "divided"]


@pytest.mark.parametrize("order", [*permutations(range(3))])
@pytest.mark.parametrize("batches", [1, 3])
def test_a_whole_bundle_is_not_taken_for_a_child_in_any_order_of_the_journal(
    order: tuple[int, ...], batches: int
) -> None:
    """Its parts' ends are on other partitions of the topic."""
    it = empty_cluster(PULSAR)
    it.receive(skewed(QUARTERS), 0)
    whole = {bundle(0, 2): (State.OWNED, "a:1")}
    rows = retired("r", **dict.fromkeys(QUARTERS[:2], (State.DELETED, None)), **whole)
    rows = [rows[place] for place in order]
    for batch in (rows,) if batches == 1 else ([row] for row in rows):
        it.receive(batch, 0)
    assert it.memory.round.halves == {}


def test_the_halves_of_what_was_divided_wait_for_a_place() -> None:
    it = empty_cluster()
    it.receive(skewed(QUARTERS), 0)
    halves = dict.fromkeys([bundle(0, 8), bundle(1, 8)], (State.OWNED, "a:1"))
    it.receive(retired("r", **{QUARTERS[0]: (State.DELETED, None)}, **halves), 0)
    assert it.memory.round.halves == dict.fromkeys(halves, 5)


def test_a_record_of_a_time_without_merges_is_read() -> None:
    it = empty_cluster()
    it.receive(skewed(QUARTERS), 0)
    said = msgspec.json.decode(it.hold_round(5000).payload)
    del said["merges"]
    assert msgspec.convert(said, RoundRecord).merges == ()


def test_a_merge_that_overruns_its_deadline_is_mended_one_by_one() -> None:
    it = empty_cluster({"round.move_deadline": 1.0, "merge.enabled": False})
    it.receive(skewed(QUARTERS), 0)
    it.receive([change_row(b, "a:1", 2, State.MERGING, Event.MERGE) for b in QUARTERS[:2]], 0)
    record = held(it, 5000)
    assert [(repair.bundle, repair.event) for repair in record.repairs] == [
        (name, Event.KEEP) for name in QUARTERS[:2]
    ]
