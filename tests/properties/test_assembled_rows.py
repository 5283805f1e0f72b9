"""Which bundles a view has, whose they are and which may move, against one bundle at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.reports import bundle, snapshot
from trimtab.intake.assemble import FREE, Holdings, assemble
from trimtab.intake.snapshot import Snapshot
from trimtab.model import Epoch, namespace_of
from trimtab.ownership import WITHOUT_OWNER, State
from trimtab.reasons import Rule
from trimtab.view import View, is_monitoring
from trimtab.wire.ownership import Record

Row = tuple[str, str, str, bool]
"""A bundle, its owner, where it is going, and whether it may move."""

BROKERS = ("a:1", "b:1", "c:1")
BUNDLES = (
    *(bundle(i, 4) for i in range(4)),
    bundle(0, 1, "pulsar/tenant"),
    "pulsar/c/a:1/0x00000000_0xffffffff",
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    state = draw(st.sampled_from([State.OWNED, *State]))
    owner = None if state in WITHOUT_OWNER else draw(st.sampled_from(BROKERS))
    destination = draw(st.sampled_from([None, *BROKERS])) if state is State.RELEASING else None
    return Record(state=state, epoch=Epoch(1, 1), owner=owner, destination=destination)


fleets = st.lists(
    st.tuples(st.lists(st.sampled_from(BUNDLES), unique=True, min_size=2), st.integers(1, 3)),
    min_size=1,
    max_size=len(BROKERS),
).map(
    lambda reported: [
        replace(snapshot(broker, dict.fromkeys(names, 1.0)), appended_ms=at)
        for broker, (names, at) in zip(BROKERS, reported, strict=False)
    ]
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Snapshot], Holdings]:
    """Most bundles are simply owned by a broker that reports them."""
    fleet, known = draw(fleets), dict[str, Record]()
    for name in BUNDLES:
        reporters = [each.broker for each in fleet if name in each.bundles]
        if reporters and draw(st.integers(0, 3)) > 0:
            owner = draw(st.sampled_from(reporters))
            known[name] = Record(state=State.OWNED, epoch=Epoch(1, 1), owner=owner)
        elif draw(st.booleans()):
            known[name] = draw(records())
    one = st.one_of(st.none(), st.sampled_from(BUNDLES))
    flying, broken = draw(one), draw(one)
    return fleet, Holdings(
        known,
        frozenset() if broken is None else frozenset({namespace_of(broken)}),
        in_flight={} if flying is None else {flying: draw(st.sampled_from(BROKERS))},
        gone=draw(st.sets(st.sampled_from(BROKERS), max_size=1)),
    )


@given(worlds())
def test_by_records(world: tuple[list[Snapshot], Holdings]) -> None:
    fleet, known = world
    rows, obstacles = list[Row](), Counter[Rule]()
    for each, name in pairs(fleet):
        record = known.records.get(name, FREE)
        if (record.owner or newest(fleet, name)) == each.broker:
            obstacle = obstacle_of(name, record, known)
            going = known.in_flight.get(name, record.destination)
            here = going if going in {s.broker for s in fleet} else each.broker
            rows.append((name, each.broker, here or "", obstacle is None))
            obstacles.update([] if obstacle is None else [obstacle])
        elif each.broker not in known.gone:
            obstacles[Rule.CONFLICT] += 1
    view, found = assemble("c", fleet, known)
    assert (shown(view), found) == (rows, obstacles)


@given(fleets)
def test_by_reports_alone(fleet: Sequence[Snapshot]) -> None:
    rows, obstacles = list[Row](), Counter[Rule]()
    for each, name in pairs(fleet):
        if newest(fleet, name) != each.broker:
            obstacles[Rule.CONFLICT] += 1
            continue
        rows.append((name, each.broker, each.broker, not is_monitoring(name)))
        obstacles.update([Rule.NOT_MOVABLE] if is_monitoring(name) else [])
    view, found = assemble("c", fleet, None)
    assert (shown(view), found) == (rows, obstacles)


def pairs(fleet: Sequence[Snapshot]) -> list[tuple[Snapshot, str]]:
    return [(each, name) for each in fleet for name in each.bundles]


def newest(fleet: Sequence[Snapshot], name: str) -> str:
    return max((s.appended_ms, s.broker) for s in fleet if name in s.bundles)[1]


def obstacle_of(name: str, record: Record, known: Holdings) -> Rule | None:
    """The first rule that forbids a move."""
    forbids: Mapping[Rule, bool] = {
        Rule.NOT_MOVABLE: is_monitoring(name),
        Rule.UNOWNED: record.state is State.FREE,
        Rule.OWNER_LOST: record.owner in known.gone,
        Rule.IN_FLIGHT: record.state is not State.OWNED or name in known.in_flight,
        Rule.BROKEN_NAMESPACE: namespace_of(name) in known.broken,
    }
    return next((rule for rule, true in forbids.items() if true), None)


def shown(view: View) -> list[Row]:
    names, bundles = view.brokers.names, view.bundles
    columns = (bundles.names, bundles.owner, view.intended, bundles.movable)
    return [
        (name, names[owner], names[going], bool(movable))
        for name, owner, going, movable in zip(*columns, strict=True)
    ]
