"""A shadow's moves happen in its own world; both strategies are counted alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, rates, view_of
from tests.support.clusters_by_rows import change_row, cluster, held, intent_row, said, snapshot_row
from tests.support.reports import bundle
from trimtab.arrays import CPU, MEMORY
from trimtab.cluster.operator import Cluster
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event, State
from trimtab.plan import Move
from trimtab.reasons import Reason
from trimtab.round.decide import repair_only
from trimtab.settings import Settings, ShadowSettings
from trimtab.settings.setting import InvalidSettings
from trimtab.shadow.overlay import NOTHING_LEARNT, learn_costs, overlay_view, standing
from trimtab.state.memory import Memory
from trimtab.state.shadow_state import DAY_MS, Tally
from trimtab.view import View
from trimtab.wire.columns import pack, unpack
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import RoundRecord, ShadowRecord
from trimtab.wire.rows import Row

EIGHTHS = [bundle(i, 8) for i in range(8)]
AVG = {"round.shedding": "avg", "round.placement": "avg"}
RESTING = {
    "round.shedding": "threshold",
    "round.placement": "least-long-term-rate",
    "threshold.threshold": 1.0,
}
AVG_TRIED = {"shadow.shedding": "avg", "shadow.placement": "avg"}
RESTING_TRIED = {
    "shadow.shedding": "threshold",
    "shadow.placement": "least-long-term-rate",
    "threshold.threshold": 1.0,
}
MINUTE_MS = 60_000
HOUR_MS = 3_600_000


def reports(owners: Mapping[str, str], brokers: Iterable[str] = "ab") -> list[Row]:
    """Each broker uses 10 % and 10 % more for each bundle, which are all alike."""
    rows = []
    for broker in (f"{letter}:1" for letter in brokers):
        mine = dict.fromkeys((b for b, owner in owners.items() if owner == broker), 100.0)
        rows.append(snapshot_row(broker, mine, cpu=10.0 + 10.0 * len(mine)))
    return rows


def uneven(settings: Mapping[str, object]) -> Cluster:
    """Broker a has all eight bundles, b has none."""
    it, owners = cluster(settings), dict.fromkeys(EIGHTHS, "a:1")
    it.receive([*reports(owners), *(change_row(b, o) for b, o in owners.items())], 0)
    return it


def landed(it: Cluster, record: RoundRecord) -> None:
    """The round's moves have happened, and brokers have reported since."""
    moved = {move.bundle: move.destination for move in record.moves}
    changes = [change_row(b, destination, counter=2) for b, destination in moved.items()]
    it.receive([*changes, *reports(dict.fromkeys(EIGHTHS, "a:1") | moved)], 0)


def changed(settings: dict[str, str | int | float | bool]) -> Row:
    return intent_row(Intent(id="1", kind=IntentKind.SETTINGS, cluster="c", settings=settings))


def told(record: RoundRecord) -> ShadowRecord:
    assert record.shadow is not None
    return record.shadow


def elsewhere(it: Cluster) -> dict[str, str]:
    assert it.memory.shadow is not None
    return it.memory.shadow.elsewhere


def test_a_challenger_moves_bundles_in_its_own_world_only() -> None:
    it = uneven(RESTING | AVG_TRIED)
    first, second = held(it, 5000), held(it, 5000 + MINUTE_MS)
    assert (first.moves, second.moves, it.memory.in_flight) == ((), (), {})
    assert elsewhere(it) == dict.fromkeys(EIGHTHS[:4], "b:1")
    assert [told(each).champion.range for each in (first, second)] == pytest.approx([0.8, 0.8])
    assert told(first).challenger.range == pytest.approx(0.8)
    assert told(second).challenger.range == pytest.approx(0.0, abs=0.01)
    assert [told(each).challenger.moves for each in (first, second)] == [4, 0]
    assert [told(each).champion.moves for each in (first, second)] == [0, 0]


def test_a_champions_moves_do_not_happen_in_the_challengers_world() -> None:
    it = uneven(AVG | RESTING_TRIED)
    first = held(it, 5000)
    landed(it, first)
    second = told(held(it, 5000 + MINUTE_MS))
    assert [move.bundle for move in first.moves] == EIGHTHS[:4]
    assert elsewhere(it) == dict.fromkeys(EIGHTHS[:4], "a:1")
    assert second.champion.range == pytest.approx(0.0)
    assert second.challenger.range == pytest.approx(0.8, abs=0.01)
    assert (second.champion.total_moves, second.challenger.total_moves) == (4, 0)
    assert (second.rounds, second.since) == (2, 5000)
    assert second.challenger.mean_range == pytest.approx(0.8, abs=0.01)
    assert second.champion.mean_range == pytest.approx(0.4)


def test_where_both_have_moved_alike_their_worlds_are_one() -> None:
    it = uneven(AVG | AVG_TRIED)
    first = held(it, 5000)
    landed(it, first)
    second = held(it, 5000 + MINUTE_MS)
    assert len(first.moves) == told(first).challenger.moves == 4
    assert told(second).challenger.range == told(second).champion.range
    assert elsewhere(it) == {}


def test_a_failed_move_of_the_active_strategy_leaves_no_trace_in_the_shadow() -> None:
    unhurt = {"round.move_deadline": 30.0, "breaker.enabled": False}
    it = uneven(AVG | RESTING_TRIED | unhurt)
    held(it, 5000)
    assert elsewhere(it) == dict.fromkeys(EIGHTHS[:4], "a:1")
    it.receive([changed({"round.max_moves": 1})], 0)
    again = held(it, 5000 + MINUTE_MS)
    assert elsewhere(it) == {move.bundle: "a:1" for move in again.moves}
    assert len(again.moves) == 1


def test_while_observing_only_the_champion_moves_nothing() -> None:
    it = cluster(AVG | RESTING_TRIED | {"round.observe_only": True})
    it.receive(reports(dict.fromkeys(EIGHTHS, "a:1")), 0)
    record = held(it, 5000)
    assert len(record.moves) == 4
    assert told(record).champion.total_moves == 0
    assert elsewhere(it) == {}


def test_without_a_challenger_nothing_is_kept_or_told() -> None:
    it = uneven(AVG)
    assert held(it, 5000).shadow is None
    assert it.memory.shadow is None


def test_a_challenger_that_is_dropped_is_forgotten() -> None:
    it = uneven(RESTING | AVG_TRIED)
    held(it, 5000)
    it.receive([changed({"shadow.shedding": "none"})], 0)
    assert held(it, 5000 + MINUTE_MS).shadow is None
    assert it.memory.shadow is None


@pytest.mark.parametrize(
    "others",
    [
        {"shadow.shedding": "threshold", "shadow.placement": "round-robin"},
        {"round.placement": "round-robin"},
    ],
)
def test_a_comparison_of_other_strategies_starts_again(
    others: dict[str, str | int | float | bool],
) -> None:
    it = uneven(RESTING | AVG_TRIED)
    held(it, 5000)
    it.receive([changed(others)], 0)
    now = told(held(it, 5000 + MINUTE_MS))
    assert (now.since, now.rounds) == (5000 + MINUTE_MS, 1)
    assert now.challenger.range == pytest.approx(0.8)


def test_a_round_that_asks_no_strategy_compares_nothing() -> None:
    it = uneven(RESTING | AVG_TRIED)
    held(it, 5000)
    known = it.memory.shadow
    it.hold_round(6000, repair_only)
    it.receive([intent_row(Intent(id="1", kind=IntentKind.PAUSE, cluster="c"))], 0)
    paused = told(held(it, 5000 + MINUTE_MS))
    assert it.memory.shadow == known
    assert (paused.rounds, paused.champion.range, paused.challenger.range) == (1, None, None)
    assert (paused.challenger.moves, paused.challenger.total_moves) == (0, 4)


def test_a_challenger_that_fails_changes_nothing_for_the_champion() -> None:
    both = uneven(AVG), uneven(AVG)
    broken = ShadowSettings(shedding="no-such-strategy")
    both[1].defaults = replace(both[1].defaults, shadow=broken)
    alone, beside = (held(it, 5000) for it in both)
    assert beside.moves == alone.moves
    assert beside.problems == ("shadow.shedding: KeyError: 'no-such-strategy'",)
    assert told(beside).champion.total_moves == len(alone.moves) == 4
    assert (told(beside).rounds, told(beside).challenger.range) == (0, None)
    assert elsewhere(both[1]) == dict.fromkeys(EIGHTHS[:4], "a:1")


def test_a_drain_happens_in_both_worlds_and_is_not_compared() -> None:
    it = uneven(RESTING | AVG_TRIED)
    held(it, 5000)
    hot = snapshot_row("c:1", {}, cpu=50.0)
    it.receive([said(IntentKind.DRAIN, broker="a:1"), hot], 0)
    drained = held(it, 5000 + MINUTE_MS)
    assert drained.skipped == ""
    assert [move.reason for move in drained.moves] == ["drained"] * 8
    assert told(drained).champion.total_moves == 0
    assert told(drained).challenger.moves == 0
    assert elsewhere(it) == dict.fromkeys(EIGHTHS[:4], "b:1")


def test_what_an_operator_moves_is_not_compared() -> None:
    it = uneven(RESTING | AVG_TRIED)
    held(it, 5000)
    it.receive([said(IntentKind.UNLOAD, bundle=EIGHTHS[0], broker="b:1")], 0)
    moved = held(it, 5000 + MINUTE_MS)
    assert "asked" in [move.reason for move in moved.moves]
    assert told(moved).champion.total_moves == len(moved.moves) - 1


def test_the_challenger_has_nothing_on_a_broker_that_is_to_be_emptied() -> None:
    it = uneven(RESTING | AVG_TRIED)
    held(it, 5000)
    it.receive([said(IntentKind.DRAIN, broker="b:1"), snapshot_row("c:1", {}, 90.0)], 0)
    held(it, 5000 + MINUTE_MS)
    assert elsewhere(it) == {}


def test_both_find_a_place_for_the_halves_of_a_divided_bundle() -> None:
    it = uneven(RESTING | RESTING_TRIED)
    held(it, 5000)
    halves = [bundle(i, 16) for i in range(2)]
    split = [change_row(half, "a:1", 3, State.OWNED, Event.RETIRE) for half in halves]
    gone = change_row(EIGHTHS[0], None, 3, State.DELETED, Event.RETIRE)
    it.receive([gone, *split, *reports(dict.fromkeys([*halves, *EIGHTHS[1:]], "a:1"))], 0)
    record = held(it, 5000 + MINUTE_MS)
    assert [move.reason for move in record.moves] == ["divided"] * 2
    assert elsewhere(it) == {move.bundle: move.destination for move in record.moves}
    assert told(record).challenger == told(record).champion


def move(name: str, source: str, destination: str) -> Move:
    return Move(name, source, destination, Reason.OUT_OF_RANGE, NO_EPOCH)


@pytest.mark.parametrize(
    ("moves", "bounces"),
    [
        pytest.param([(0, "ab"), (23, "ba")], 1, id="back within a day"),
        pytest.param([(0, "ab"), (25, "ba")], 0, id="back after a day"),
        pytest.param([(0, "ab"), (1, "bc"), (2, "ca")], 1, id="back by another broker"),
        pytest.param([(0, "ab"), (1, "ba"), (2, "ab")], 2, id="to and fro"),
        pytest.param([(0, "ab"), (1, "bc")], 0, id="on and on"),
    ],
)
def test_a_bounce_is_a_move_to_a_broker_that_the_bundle_left_within_a_day(
    moves: list[tuple[int, str]], bounces: int
) -> None:
    tally = Tally()
    for hour, way in moves:
        tally = tally.after([move("x", way[0], way[1])], 0.1, hour * HOUR_MS)
    assert (tally.moves, tally.bounces) == (len(moves), bounces)
    assert tally.after([], None, hour * HOUR_MS + DAY_MS + 1).left == ()


def test_a_move_of_another_bundle_does_not_count_as_a_bounce() -> None:
    tally = Tally().after([move("x", "a", "b")], 0.1, 0).after([move("y", "b", "a")], 0.1, 1)
    assert tally.bounces == 0


def pair() -> View:
    a = Broker(0.5, [Bundle((100.0, 0.0, 0.0, 0.0), name="x")])
    return view_of({"a": a, "b": Broker(0.5, rates(100.0))})


@pytest.mark.parametrize(
    ("known", "brokers", "left"),
    [
        pytest.param({"x": "b"}, "ab", {"x": "b"}, id="on another broker than in truth"),
        pytest.param({"x": "a"}, "ab", {}, id="where it is in truth"),
        pytest.param({"x": "b"}, "a", {}, id="the broker is gone"),
        pytest.param({"y": "b"}, "ab", {}, id="the bundle is gone"),
    ],
)
def test_what_is_no_difference_any_more_is_forgotten(
    known: dict[str, str], brokers: str, left: dict[str, str]
) -> None:
    assert standing(known, pair(), set(brokers)) == left


@pytest.mark.parametrize("place", ["a", "b"])
def test_while_a_bundle_is_on_its_way_the_challengers_place_for_it_is_kept(place: str) -> None:
    """It may arrive, or come to nothing."""
    a = Broker(0.5, [Bundle(name="x", going_to="b")])
    view = view_of({"a": a, "b": Broker(0.1)})
    assert standing({"x": place}, view, {"a", "b"}) == {"x": place}


@pytest.mark.parametrize(
    ("state", "left"),
    [
        pytest.param(State.OWNED, {"y": "b"}, id="handed over, and not reported yet"),
        pytest.param(State.DELETED, {}, id="divided"),
    ],
)
def test_a_bundle_that_no_broker_reports_is_there_by_its_record(
    state: State, left: dict[str, str]
) -> None:
    view = replace(pair(), records={"y": Record(state=state, epoch=NO_EPOCH, owner="a")})
    assert standing({"y": "b"}, view, {"a", "b"}) == left


def test_a_bundle_takes_its_traffic_along_and_what_that_costs_there() -> None:
    """A small broker uses 20 % for 100 messages/s, a large one half as much."""
    view = view_of(
        {
            "big": Broker(0.2, rates(200.0), topics=1),
            "bigger": Broker(0.4, rates(400.0), topics=1),
            "small": Broker(0.2, rates(100.0), topics=1),
            "smaller": Broker(0.4, rates(100.0, 100.0), topics=2),
        }
    )
    limits, resources = np.zeros((5, 4)), view.brokers.resources.copy()
    limits[CPU] = 1600.0, 1600.0, 800.0, 800.0
    resources[MEMORY] = 30.0
    view = replace(view, brokers=replace(view.brokers, limits=limits, resources=resources))
    costs = learn_costs(NOTHING_LEARNT, view.brokers, 1.0)
    moved = overlay_view(view, {view.bundles.names[-1]: "big"}, costs)
    assert moved.brokers.resources[CPU] == pytest.approx([30.0, 40.0, 20.0, 20.0])
    assert moved.brokers.resources[MEMORY] == pytest.approx([30.0] * 4)
    assert moved.brokers.traffic[0].tolist() == [300.0, 400.0, 100.0, 100.0]
    assert moved.brokers.topics.tolist() == [2, 1, 1, 1]
    assert moved.brokers.listed.tolist() == [2, 1, 1, 1]
    assert moved.bundles.owner.tolist() == moved.intended.tolist() == [0, 1, 2, 3, 0]
    assert view.bundles.owner.tolist() == [0, 1, 2, 3, 3]


def test_a_report_beyond_all_measure_is_not_remembered() -> None:
    view = pair()
    with np.errstate(over="ignore"):
        costs = learn_costs(
            NOTHING_LEARNT, replace(view.brokers, traffic=view.brokers.traffic * 1e300), 1
        )
    assert learn_costs(costs, view.brokers, 1.0) == learn_costs(NOTHING_LEARNT, view.brokers, 1.0)


def test_a_world_without_a_difference_is_the_true_one() -> None:
    view = pair()
    assert overlay_view(view, {}, NOTHING_LEARNT) is view
    assert overlay_view(view, {"x": "a broker out of sight"}, NOTHING_LEARNT) is view


def test_memory_with_a_challenger_survives_its_bytes_and_older_memory_has_none() -> None:
    it = uneven(RESTING | AVG_TRIED)
    held(it, 5000)
    packed = pack(it.memory)
    assert pack(unpack(packed, Memory)) == packed
    before = msgspec.msgpack.decode(pack(Memory()))
    del before["shadow"]
    assert unpack(msgspec.msgpack.encode(before), Memory).shadow is None


def test_avg_goes_with_avg_in_a_shadow_too() -> None:
    with pytest.raises(InvalidSettings) as raised:
        Settings.parse({"shadow.shedding": "avg"})
    assert raised.value.problems == [
        "shadow.placement: avg placement and avg shedding go together or not at all"
    ]
    assert Settings.parse({"shadow.placement": "avg"}).shadow.shedding == "none"
