"""Bundles that no plan can make room for are divided, or it is said why they are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from tests.planner.views import INTERVAL_MS, carrying, later, wished
from tests.support.clusters import Broker, cluster
from trimtab.load_model.history import PlannerHistory, Weighed
from trimtab.plan import Plan, SplitWish
from trimtab.planner import shed
from trimtab.reasons import Reason, Rule
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.splitting.triggers.planned import split
from trimtab.state.round_state import RoundState
from trimtab.view import View
from trimtab.wire.columns import pack, unpack

PLANNED = Settings.parse(
    {
        "round.shedding": "trimtab",
        "split.trigger": "planned",
        "merge.enabled": False,
        "split.max_rate": 1e12,
        "split.max_throughput": 1e12,
    }
)
HOUR_MS = 3_600_000
SMALL = [("t/small", 0.05)] * 6
LOADS = {"a": [("t/big", 0.6), ("t/big", 0.02)], "b": SMALL, "c": SMALL, "d": SMALL}
"""The others cannot be brought closer to ``a`` than by 0.28."""
BIG = "t/big/0x00000000_0x00000100"


def giant_on_a(topics: int = 10, size: int = 4) -> View:
    view = carrying(LOADS, topics=topics)
    return replace(view, sizes={"t/big": size, "t/small": 18})


def plans(
    view: View, settings: Settings = PLANNED, state: RoundState | None = None
) -> Iterator[Plan]:
    """Of rounds in which nothing that is planned is done."""
    state = state or RoundState()
    for number in count():
        seen = later(view, number)
        rng = np.random.default_rng(number)
        plan, state = decide(seen, state, settings, seen.now_ms, rng)
        yield plan


def first(number: int, view: View, settings: Settings = PLANNED) -> list[Plan]:
    return [plan for plan, _ in zip(plans(view, settings), range(number), strict=False)]


def test_a_giant_that_two_rounds_have_seen_is_divided() -> None:
    """The first round knows nothing of noise yet; the second and the third see it."""
    found = first(4, giant_on_a())
    splits = [[(split.bundle, split.reason) for split in plan.splits] for plan in found]
    assert splits == [[], [], [], [(BIG, Reason.GIANT)]]


def test_the_others_are_not_moved_away_from_it_meanwhile() -> None:
    assert not any(plan.moves for plan in first(4, giant_on_a()))


def test_under_a_wide_target_it_is_divided_too_rather_than_its_broker_cleared() -> None:
    """It forces less than the target, but only with nothing else on its broker."""
    beside = [("t/big", 0.6), *[("t/small", 0.02)] * 10]
    view = carrying({**LOADS, "a": beside}, topics=10)
    view = replace(view, sizes={"t/big": 4, "t/small": 28})
    found = first(4, view, PLANNED.changed({"planner.target": 0.35}))
    assert [[split.bundle for split in plan.splits] for plan in found] == [[], [], [], [BIG]]
    assert not any(plan.moves for plan in found)


def test_where_a_wide_target_is_kept_no_giant_is_divided() -> None:
    found = first(6, giant_on_a(), PLANNED.changed({"planner.target": 0.35}))
    assert not any(plan.splits or plan.moves for plan in found)


@pytest.mark.parametrize("target", [0.05, 0.2])
def test_parts_that_are_divided_once_more_are_waited_for(target: float) -> None:
    """Each is smaller than a wide target, but together they are what is too much."""
    parts = [("t/big", 0.15)] * 4
    view = carrying({**LOADS, "a": [*parts, *[("t/small", 0.02)] * 10]}, topics=10)
    settings = PLANNED.changed({"planner.target": target})
    names = frozenset(name for name in view.bundles.names if name.startswith("t/big/"))
    movable = np.array([name not in names for name in view.bundles.names])
    held = replace(view, splitting=names, bundles=replace(view.bundles, movable=movable))
    assert wished(view, settings)
    assert not wished(held, settings)


def test_a_bundle_that_others_outweigh_is_no_giant() -> None:
    view = carrying({"a": [("t/big", 0.3), ("t/big", 0.02)], "b": SMALL, "c": SMALL}, topics=10)
    assert not any(plan.splits for plan in first(6, replace(view, sizes={"t/big": 4})))


@pytest.mark.parametrize(
    "settings",
    [{"split.trigger": "long-term"}, {"split.enabled": False}, {"round.enabled": False}],
    ids=["limits", "off", "shedding is off"],
)
def test_nothing_else_knows_giants(settings: Mapping[str, object]) -> None:
    found = first(6, giant_on_a(), PLANNED.changed(settings))
    assert not any(plan.splits or plan.refusals for plan in found)


@pytest.mark.parametrize(
    ("view", "rule"),
    [
        pytest.param(giant_on_a(topics=1), Rule.UNDIVIDABLE, id="one topic"),
        pytest.param(giant_on_a(size=128), Rule.FULL_NAMESPACE, id="no place"),
    ],
)
def test_a_giant_that_stays_whole_is_told_once_a_round(view: View, rule: Rule) -> None:
    found = first(7, view)[3:]
    told = [[(r.bundle, r.source, r.rule) for r in plan.refusals] for plan in found]
    assert told == [[(BIG, "a", rule)]] * 4
    assert not any(plan.splits for plan in found)


def test_where_no_broker_reports_a_bundle_there_is_no_giant() -> None:
    """Brokers that stay apart although nothing can be moved: there is nothing to divide either."""
    history = PlannerHistory()
    for minute in range(2):
        _, history = shed(later(giant_on_a(), minute), history, PLANNED)
    wishes, history = shed(later(cluster(a=Broker(0.9), b=Broker(0.1)), 2), history, PLANNED)
    assert (list(wishes), history.giants) == ([], {})


def test_over_a_limit_a_bundle_is_divided_as_pulsar_divides_it() -> None:
    settings = PLANNED.changed({"split.max_throughput": 5e8})
    plan = next(plans(giant_on_a(), settings))
    assert [(split.bundle, split.reason) for split in plan.splits] == [
        (BIG, Reason.TOO_MUCH_TRAFFIC)
    ]


def test_giants_are_forgotten_soon_after_shedding_is_off() -> None:
    """The trigger asks for what the planner found, and the planner is asked no more."""
    off, state = PLANNED.changed({"round.enabled": False}), RoundState()
    found = []
    for number in range(7):
        seen = later(giant_on_a(topics=1), number)
        rng = np.random.default_rng(number)
        settings = PLANNED if number < 3 else off
        plan, state = decide(seen, state, settings, seen.now_ms, rng)
        found.append([refusal.rule for refusal in plan.refusals])
    assert found[3] == [Rule.UNDIVIDABLE]
    assert found[-1] == []


def test_with_shedding_off_a_bundle_over_a_limit_is_divided() -> None:
    settings = PLANNED.changed({"split.max_throughput": 5e8, "round.enabled": False})
    plan = next(plans(giant_on_a(), settings))
    assert [(split.bundle, split.reason) for split in plan.splits] == [
        (BIG, Reason.TOO_MUCH_TRAFFIC)
    ]
    assert plan.skipped is Rule.DISABLED


# The trigger alone, on what the planner left behind.

HALF = "t/big/0x00000000_0x00000080"
QUARTER = "t/big/0x00000000_0x00000040"


def known(
    giants: Sequence[tuple[str, float]], divided: Sequence[tuple[str, float, int]] = ()
) -> PlannerHistory:
    """Giants that were seen in the last two rounds; divisions with how long ago they were."""
    now_ms = giant_on_a().now_ms
    return PlannerHistory(
        giants={name: Weighed(size, now_ms - 2 * INTERVAL_MS) for name, size in giants},
        divided={name: Weighed(size, now_ms - ago) for name, size, ago in divided},
        looked_ms=now_ms - INTERVAL_MS,
    )


def view_with(name: str) -> View:
    """The fleet with the giant's name changed."""
    view = giant_on_a()
    names = tuple(name if each == BIG else each for each in view.bundles.names)
    return replace(view, bundles=replace(view.bundles, names=names))


def answered(
    view: View, history: PlannerHistory, settings: Settings = PLANNED
) -> list[Rule | None]:
    divides, _ = split(view, history, settings)
    return [divide.hindered for divide in divides]


def test_what_it_divides_it_remembers() -> None:
    view = giant_on_a()
    divides, history = split(view, known([(BIG, 0.4)]), PLANNED)
    assert list(divides) == [SplitWish(0, Reason.GIANT)]
    assert history.divided == {BIG: Weighed(0.4, view.now_ms)}


def test_while_observing_only_nothing_is_divided_and_nothing_remembered() -> None:
    settings = PLANNED.changed({"round.observe_only": True})
    divides, history = split(giant_on_a(), known([(BIG, 0.4)]), settings)
    assert (len(divides), history.divided) == (1, {})


@pytest.mark.parametrize(
    ("name", "divided", "answers"),
    [
        pytest.param(HALF, [(BIG, 0.4, 60_000)], [None], id="once without success"),
        pytest.param(
            QUARTER,
            [(BIG, 0.4, 90_000), (HALF, 0.4, 60_000)],
            [Rule.UNDIVIDABLE],
            id="twice without success",
        ),
        pytest.param(
            QUARTER, [(BIG, 0.9, 90_000), (HALF, 0.5, 60_000)], [None], id="it helped each time"
        ),
        pytest.param(
            QUARTER,
            [(BIG, 0.4, 30 * HOUR_MS), (HALF, 0.4, 30 * HOUR_MS)],
            [Rule.UNDIVIDABLE],
            id="long ago, and still the same giant",
        ),
        pytest.param(BIG, [(BIG, 0.4, HOUR_MS)], [Rule.UNDIVIDABLE], id="its owner did not"),
        pytest.param(BIG, [(BIG, 0.4, 25 * HOUR_MS)], [None], id="its owner did not yesterday"),
    ],
)
def test_what_was_divided_in_vain_is_taken_for_one_topic(
    name: str, divided: Sequence[tuple[str, float, int]], answers: list[Rule | None]
) -> None:
    assert answered(view_with(name), known([(name, 0.4)], divided)) == answers


def test_of_several_that_stay_whole_the_largest_is_told() -> None:
    """Whatever their names: a state that was stored has them by name."""
    view = carrying(LOADS, topics=1)
    small = view.bundles.names[1]
    for sizes in ((0.4, 0.3), (0.3, 0.4)):
        giants = list(zip((BIG, small), sizes, strict=True))
        history = unpack(pack(known(giants)), PlannerHistory)
        [told], _ = split(view, history, PLANNED)
        assert view.bundles.names[told.bundle] == max(giants, key=lambda giant: giant[1])[0]


def test_giants_that_were_not_looked_for_recently_are_none() -> None:
    history = known([(BIG, 0.4)])
    old = replace(history, looked_ms=history.looked_ms - 10 * INTERVAL_MS)
    assert answered(giant_on_a(), old) == []


def test_what_is_being_divided_or_rests_is_left_alone() -> None:
    view, history = giant_on_a(), known([(BIG, 0.4)])
    assert answered(replace(view, splitting=frozenset({BIG})), history) == []
    resting = replace(view.bundles, movable=np.zeros(len(view.bundles.names), np.bool_))
    assert answered(replace(view, bundles=resting), history) == []


def test_divisions_that_nothing_came_of_are_forgotten_after_a_day() -> None:
    _, history = split(
        giant_on_a(), known([], [("t/x/0x00000000_0x00000100", 0.4, 25 * HOUR_MS)]), PLANNED
    )
    assert history.divided == {}
