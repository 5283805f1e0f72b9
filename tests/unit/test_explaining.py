"""Why, and why not, in rounds that can be checked by eye."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters import NOW_MS, Broker, Bundle, cluster, throughputs, view_of
from tests.support.clusters_by_rows import change_row, intent_row, record_row, said
from tests.support.fleets import EIGHTHS, fleet, round_at, two_each, woken
from tests.support.reports import bundle
from tests.support.scenes import MINUTE_MS, scene_of, scenes_of
from trimtab.arrays import CPU
from trimtab.cluster.operator import Cluster
from trimtab.doubt import Doubt
from trimtab.explaining.accounts import ACCOUNTS
from trimtab.explaining.accounts.pool import PoolAccount
from trimtab.explaining.nearest import raise_setting
from trimtab.explaining.options import Bar
from trimtab.explaining.prediction import follow_history
from trimtab.explaining.rules.refusals import REFUSED
from trimtab.explaining.rules.skips import SKIPPED
from trimtab.explaining.scene import Scene, again
from trimtab.explaining.telling import explain, explanations, of_subject, whys
from trimtab.explaining.verdict import Verdict
from trimtab.explaining.witness import Witness
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.plan import Plan, Refusal
from trimtab.planner.outlook import look_ahead
from trimtab.policies import Isolation, Policies
from trimtab.reasons import IDLE, Reason, Rest, Rule
from trimtab.round.decide import repair_only
from trimtab.settings import Settings
from trimtab.shedding import SHEDDERS
from trimtab.state.breaker_state import Breaker
from trimtab.state.memory import Memory
from trimtab.state.pace import Pace
from trimtab.state.round_state import RoundState
from trimtab.view import View
from trimtab.wire.explanation import Explanation
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Record

MB = 1e6
PLANNER = {"round.shedding": "trimtab", "breaker.enabled": False}
THRESHOLD = {"round.shedding": "threshold", "threshold.min_throughput": 0}


def even(usage: float, *sizes: float) -> Broker:
    """A broker whose usage is its traffic, 1 % for each MB/s, in bundles of these parts."""
    total = sum(sizes)
    return Broker(usage, throughputs(*(usage * 100 * MB * size / total for size in sizes)))


def named(broker: str, number: int) -> str:
    return f"t/{broker}/0x{number:08x}_0x{number + 1:08x}"


def planned(view: View, **settings: object) -> Scene:
    """The planner's second round, in which it knows that nothing is noise."""
    more = {name.replace("__", "."): value for name, value in settings.items()}
    return scenes_of([view] * 2, PLANNER | more)[-1]


def nearest(explanation: Explanation) -> tuple[str, object, object]:
    assert explanation.nearest is not None
    return explanation.nearest.setting, explanation.nearest.now, explanation.nearest.then


def options(explanation: Explanation) -> dict[str, str]:
    return {each.broker: "chosen" if each.chosen else each.bar for each in explanation.options}


# trimtab's own planner


def test_a_range_within_the_target() -> None:
    scene = planned(cluster(a=even(0.52, 1, 1, 1), b=even(0.5, 1, 1, 1), c=even(0.49, 1, 1, 1)))
    told = explain(scene, named("a", 0))
    assert (told.verdict, told.rule) == (Verdict.STAYED, Rest.IN_RANGE)
    assert told.why == (
        "a at 52.0 % and c at 49.0 % are 3.0 points apart, within the 5.0 points of planner.target"
    )
    setting, now, then = nearest(told)
    assert (setting, now) == ("planner.target", 0.05)
    # What chance may bring after a plan is accepted too, of which there is little here.
    assert isinstance(then, float)
    assert 0.022 < then < 0.027
    assert told.range == pytest.approx((0.03, 0.03))


def test_a_move_of_the_planner() -> None:
    scene = planned(cluster(a=even(0.7, 1, 2, 4), b=even(0.5, 1, 2, 4)))
    [move] = scene.plan.moves
    told = explain(scene, move.bundle)
    assert (told.verdict, told.rule) == (Verdict.MOVED, Reason.OUT_OF_RANGE)
    assert (told.source, told.destination) == (move.source, move.destination)
    assert told.why.startswith("a at 70.0 % and b at 50.0 % are 20.0 points apart, ")
    assert told.usage == {"a": pytest.approx((0.7, 0.6)), "b": pytest.approx((0.5, 0.6))}
    assert nearest(told)[0] == "planner.target"
    assert options(told) == {"a": Bar.HAS_IT, "b": "chosen"}
    assert whys(Witness(scene)).of[move.bundle] == (
        "source 70.0 -> 60.0 %, destination 50.0 -> 60.0 %, range 20.0 -> 0.0 points"
    )


def test_what_the_plan_does_without() -> None:
    view = cluster(
        a=even(0.7, *[1] * 10), b=even(0.5, *[1] * 10), c=even(0.48, *[1] * 10), d=even(0.54, 1, 1)
    )
    scene = planned(view)
    gone = {move.bundle for move in scene.plan.moves}
    stays = next(name for name in map(named, "a" * 10, range(10)) if name not in gone)
    told = explain(scene, stays)
    assert (told.verdict, told.rule) == (Verdict.STAYED, Rest.NOT_CHOSEN)
    assert f"{len(gone)} other bundles bring the range down; a gives " in told.why
    idle = explain(scene, "d")
    assert (idle.verdict, idle.rule) == (Verdict.LEFT, Rest.UNNEEDED)
    busy = explain(scene, "a")
    assert (busy.verdict, busy.rule) == (Verdict.GIVES, Reason.OUT_OF_RANGE)
    assert (
        "its expected usage, 70.0 % before the plan, is number 1 of 4; its newest report"
        in busy.why
    )
    assert busy.figures["reported_usage"] == pytest.approx(0.7)


def test_before_anything_was_reported_twice() -> None:
    scene = scene_of(cluster(a=0.5, b=0.3), PLANNER)
    assert explain(scene, "a").rule == Rest.LEARNING
    assert explain(scene, named("a", 0)).nearest is None


def test_what_no_noise_explains_is_acted_on_before_anything_was_reported_twice() -> None:
    usage = {f"b{row}": even(0.1 + 0.1 * row, *[1.0] * 60) for row in range(8)}
    told = explain(scene_of(cluster(**usage), PLANNER), "b7")
    assert (told.verdict, told.rule) == (Verdict.GIVES, Reason.OUT_OF_RANGE)
    assert "no bundle has been reported twice yet" in told.why
    assert told.figures["accepted"] == pytest.approx(0.05)


def test_brokers_that_count_as_they_report_where_counters_err() -> None:
    """All are at 50 %, and one of seven bundles reads 0 in each report."""

    def misread(minute: int) -> View:
        carried = [0.0 if (row + minute) % 7 == 0 else 17 * MB for row in range(24)]
        parts = [carried[3 * row : 3 * row + 3] for row in range(8)]
        return cluster(
            **{f"b{row}": Broker(0.5, throughputs(*part)) for row, part in enumerate(parts)}
        )

    told = explain(scenes_of([misread(minute) for minute in range(12)], PLANNER)[-1], "b0")
    assert told.rule in {Rest.IN_RANGE, Rest.WITHIN_NOISE}
    assert "count as they report, because their traffic says clearly otherwise" in told.why
    assert told.figures["as_reported"] > 0


def test_a_broker_that_does_not_report_a_limit_takes_no_part() -> None:
    view = cluster(a=0.5, b=0.5, c=0.5, d=0.0)
    limits = np.full((5, 4), 100.0)
    limits[CPU, 3] = 0.0
    view = replace(view, brokers=replace(view.brokers, limits=limits))
    scene = scenes_of([view, view], PLANNER)[-1]
    told = explain(scene, "d")
    assert (told.verdict, told.rule) == (Verdict.LEFT, Rest.RESERVED)
    assert "nothing tells how busy it is" in told.why
    other = explain(scene, "a")
    assert "1 broker took no part" in other.why
    assert other.figures["unmeasured"] == 1


def test_a_broker_that_is_cold_as_its_tenant_rests() -> None:
    """It is at 42 % where the others are at 50; the range that counts is less."""
    falls = [0.5] * 40 + [0.5 - 0.004 * step for step in range(20)] + [0.42] * 10
    busy = {name: even(0.5, 1, 1, 1, 1) for name in "bcd"}
    views = [cluster(a=even(usage, 1, 1, 1, 1), **busy) for usage in falls]
    told = explain(scenes_of(views, PLANNER)[-1], "a")
    assert (told.verdict, told.rule) == (Verdict.LEFT, Rest.IN_RANGE)
    assert told.figures["range"] < 0.05
    assert "the load of 1 namespace fell and may come back" in told.why


def test_a_bundle_that_forces_the_range() -> None:
    scene = planned(cluster(a=even(0.6, 1), b=even(0.2, 1, 1, 1, 1), c=even(0.2, 1, 1, 1, 1)))
    told = explain(scene, "a")
    assert told.rule == Rest.ONE_BUNDLE
    assert named("a", 0) in told.why
    assert told.nearest is None


def test_what_cannot_move_forces_a_range_where_no_broker_reports_a_bundle() -> None:
    grouped = Policies(groups={"t/any": "g"})
    full = replace(cluster(a=even(0.9, 1, 1), b=even(0.1, 1, 1)), policies=grouped)
    none = replace(cluster(a=Broker(0.9), b=Broker(0.1)), policies=grouped)
    told = explain(scenes_of([full] * 2 + [none] * 30, PLANNER)[-1], "a")
    assert told.rule == Rest.ONE_BUNDLE
    assert "the largest bundle or what may not move forces 80.0 points" in told.why


def noise_alone() -> Scene:
    """Four brokers that differ by noise."""
    rng, views = np.random.default_rng(5), []
    for _ in range(10):
        brokers = {}
        for name in "abcd":
            sizes = 10 * np.exp(0.5 * rng.normal(size=5))
            brokers[name] = Broker(sizes.sum() / 100, throughputs(*(sizes * MB)))
        views.append(view_of(brokers))
    return scenes_of(views, PLANNER)[-1]


def test_noise_that_explains_the_range() -> None:
    told = explain(noise_alone(), "a")
    assert told.rule == Rest.WITHIN_NOISE
    assert told.figures["target"] < told.figures["range"] <= told.figures["accepted"]
    assert "chance" in told.why


def test_a_burst_that_was_not_seen_to_begin_may_explain_the_range_too() -> None:
    scene = noise_alone()
    outlook, _ = look_ahead(scene.seen, follow_history(scene), scene.settings)
    doubted = replace(outlook, fleet=replace(outlook.fleet, hidden=np.full(4, 0.05)))
    whole, usual = (PoolAccount(scene, each, 0).at_rest for each in (doubted, outlook))
    assert whole is not None
    assert "a burst that was not seen to begin (5.0 points)" in whole.why
    assert usual is not None
    assert "burst" not in usual.why


def noisy(*more: Mapping[str, float], rounds: int = 20, noise: float = 0.1) -> list[View]:
    """Views of four brokers with six bundles each; then one for each of ``more``, with some
    bundles so many times as large."""
    rng, views = np.random.default_rng(5), []
    quiet: list[Mapping[str, float]] = [{}] * rounds
    for times in [*quiet, *more]:
        brokers = {}
        for name in "abcd":
            sizes = 8 * np.exp(noise * rng.normal(size=6))
            sizes *= [times.get(named(name, number), 1.0) for number in range(6)]
            brokers[name] = Broker(sizes.sum() / 100, throughputs(*(sizes * MB)))
        views.append(view_of(brokers))
    return views


def test_bundles_that_leap_together_need_less_evidence_and_the_answer_says_so() -> None:
    """The same range is left alone while one bundle has grown, and not once three have: in an hour
    before none did."""
    leapt = {named("a", number): 1.7 for number in range(3)}
    scenes = scenes_of(noisy(*[leapt] * 8, rounds=70), PLANNER)
    told = [explain(scene, "a") for scene in scenes[65:]]
    event = next(each for each in told if each.figures.get("leapt", 0) >= 3)
    assert (event.verdict, event.rule) == (Verdict.GIVES, Reason.OUT_OF_RANGE)
    before = told[told.index(event) - 1]
    assert before.figures["leapt"] < 3
    assert "5.0 points are accepted, whatever chance may do, for 3 bundles leapt" in event.why
    assert event.figures["accepted"] < before.figures["accepted"]


def test_a_load_that_swings_is_not_chased() -> None:
    view = cluster(a=even(0.57, *[1] * 20), b=even(0.5, *[1] * 20))
    state = planned(view, round__observe_only=True).after
    lately = replace(state.histories.trimtab, unrest=3.0, planned_ms=NOW_MS - 1)
    state = replace(state, histories=replace(state.histories, trimtab=lately))
    scene = scene_of(view, PLANNER, Memory(round=state))
    told = explain(scene, "b")
    assert told.rule == Rest.SWINGING
    assert told.why == (
        "a at 57.0 % and b at 50.0 % are 7.0 points apart, more than the 5.0 points of "
        "planner.target; up to 12.5 points are left alone because there were 3.0 recent plans, and "
        "a load that swings is not chased; its expected usage, 50.0 % before the plan, is number 2 "
        "of 2; its newest report says 50.0 %"
    )
    setting, _, then = nearest(told)
    assert setting == "planner.target"
    assert then == pytest.approx(0.028, rel=1e-3)
    joined = cluster(a=even(0.57, *[1] * 20), b=even(0.5, *[1] * 20), c=even(0.53, *[1] * 20))
    assert explain(scene_of(joined, PLANNER, Memory(round=state)), "b").figures["unrest"] == 0


def test_a_broker_that_the_plan_cannot_help() -> None:
    """What a has is one bundle: the others are evened out without it."""
    view = cluster(
        a=even(0.9, 1), b=even(0.6, *[1] * 12), c=even(0.3, *[1] * 6), d=even(0.3, *[1] * 6)
    )
    scene = planned(view, split__enabled=False)
    told = explain(scene, "a")
    assert scene.moves
    assert (told.verdict, told.rule) == (Verdict.LEFT, Rest.ONE_BUNDLE)
    assert "at 90.0 % it stays 50.0 points from another" in told.why
    assert named("a", 0) in told.why


# Pulsar's strategies


@pytest.mark.parametrize(
    ("usage", "least", "number", "rule", "then"),
    [
        # The mean is 50 %. Each of a's twenty bundles carries a twentieth of 1 MB/s a percent.
        pytest.param(0.56, 0, 0, Rest.BELOW_LINE, 0.06, id="6 points above"),
        pytest.param(0.56, 0, 1, Rest.BELOW_LINE, 0.06, id="the second is taken too"),
        pytest.param(0.62, 6 * MB, 0, Rest.TOO_LITTLE, 0.17 - 6 / 62, id="7 % of 62 are not 6"),
        pytest.param(0.66, 0, 3, Rest.ENOUGH, 0.21 - 9.9 / 66, id="11 % of 66, three of 3.3 are"),
    ],
)
def test_what_threshold_left(
    usage: float, least: float, number: int, rule: Rest, then: float
) -> None:
    view = cluster(a=even(usage, *[1] * 20), b=even(1 - usage, 1, 1))
    scene = scene_of(view, THRESHOLD | {"threshold.min_throughput": least})
    told = explain(scene, named("a", number))
    assert (told.verdict, told.rule) == (Verdict.STAYED, rule)
    setting, now, wanted = nearest(told)
    assert (setting, now) == ("threshold.threshold", 0.1)
    assert wanted == pytest.approx(then, rel=2e-3)


def test_threshold_moves_what_stands_first() -> None:
    scene = scene_of(cluster(a=even(0.7, 1, 2), b=even(0.3, 1, 1)), THRESHOLD)
    told = explain(scene, named("a", 1))
    assert (told.verdict, told.rule) == (Verdict.MOVED, Reason.OVER_AVERAGE)
    assert told.why == (
        "a is 20.0 points above the mean of 50.0 %, and sheds from 10.0 points above it on; "
        "round.placement (least-long-term-rate) chose b, which had the fewest messages/s in the "
        "long term at that point"
    )
    setting, _, then = nearest(told)
    assert setting == "threshold.threshold"
    assert then == pytest.approx(0.2, abs=2e-4)


def test_threshold_sheds_for_the_sake_of_an_idle_broker() -> None:
    view = cluster(a=even(0.55, 1, 1), b=even(0.54, 1, 1), c=even(0.53, 1, 1), d=even(0.38, 1, 1))
    settings = THRESHOLD | {"threshold.lower_boundary": True}
    told = explain(scene_of(view, settings), named("a", 0))
    assert (told.verdict, told.rule) == (Verdict.MOVED, Reason.UNDER_AVERAGE_PEER)
    assert told.why.startswith("d is 12.0 points below the mean, and a is the busiest; round.place")
    assert nearest(told) == ("threshold.lower_boundary", True, False)


def test_the_broker_that_sheds_for_an_idle_one_says_so() -> None:
    view = cluster(a=even(0.55, 1, 1), b=even(0.54, 1, 1), c=even(0.53, 1, 1), d=even(0.38, 1, 1))
    told = explain(scene_of(view, THRESHOLD | {"threshold.lower_boundary": True}), "a")
    assert (told.verdict, told.rule) == (Verdict.GIVES, Reason.UNDER_AVERAGE_PEER)
    assert nearest(told) == ("threshold.lower_boundary", True, False)


def test_no_threshold_is_suggested_that_the_lower_boundary_would_undo() -> None:
    """With a higher threshold no broker is above it, and a sheds for the sake of d all the same."""
    view = cluster(a=even(0.7, 1, 1), b=even(0.52, 1, 1), c=even(0.52, 1, 1), d=even(0.2, 1, 1))
    for boundary, setting in ((False, "threshold.threshold"), (True, None)):
        scene = scene_of(view, THRESHOLD | {"threshold.lower_boundary": boundary})
        told = explain(scene, scene.plan.moves[0].bundle)
        assert told.rule == Reason.OVER_AVERAGE
        assert (told.nearest.setting if told.nearest else None) == setting


def test_a_broker_that_lists_one_bundle_keeps_it() -> None:
    scene = scene_of(cluster(a=even(0.8, 1), b=even(0.2, 1, 1)), THRESHOLD)
    told = explain(scene, named("a", 0))
    assert (told.rule, told.nearest) == (Rule.LAST_BUNDLE, None)


AVG = {"round.shedding": "avg", "round.placement": "avg", "unload.min_throughput": 0}


def test_a_pair_whose_hits_are_too_few() -> None:
    scene = scenes_of([cluster(a=even(0.7, 1, 1), b=even(0.5, 1, 1))] * 3, AVG)[-1]
    told = explain(scene, named("a", 0))
    assert told.rule == Rest.HITS
    assert "for 3 rounds in a row of 8" in told.why
    assert nearest(told) == ("avg.low_hits", 8, 3)
    assert explain(scene, "b").rule == Rest.NOT_BUSIEST


def test_a_pair_that_is_near_enough() -> None:
    scene = scene_of(cluster(a=even(0.6, 1, 1), b=even(0.5, 1, 1)), AVG)
    told = explain(scene, "a")
    assert told.rule == Rest.BELOW_LINE
    setting, now, then = nearest(told)
    assert (setting, now) == ("avg.low_threshold", 15.0)
    assert then == pytest.approx(10.0, abs=2e-3)
    assert told.nearest is not None
    assert told.nearest.so_that == "a hit counts, 1 of 8"


def test_traffic_that_is_even_enough() -> None:
    scene = scene_of(cluster(a=even(0.6, 1, 1), b=even(0.2, 1, 1)), {"round.shedding": "uniform"})
    told = explain(scene, named("a", 0))
    assert told.rule == Rest.BELOW_LINE
    setting, now, then = nearest(told)
    assert (setting, now) == ("uniform.throughput_ratio", 4.0)
    assert then == pytest.approx(3.0, abs=1e-3)


def test_messages_and_bytes_that_are_both_too_uneven_have_no_single_way_out() -> None:
    both = Broker(0.9, [Bundle((5e3, 0.0, 9e6, 0.0))] * 20)
    view = cluster(a=both, b=Broker(0.1, [Bundle((1.0, 0.0, 1e6, 0.0))]))
    settings = {"round.shedding": "uniform"}
    told = explain(scene_of(view, settings), "a")
    assert (told.rule, told.nearest) == (Reason.RATE_GAP, None)
    alone = explain(scene_of(view, settings | {"uniform.throughput_ratio": 0.0}), "a")
    assert nearest(alone)[0] == "uniform.rate_difference"


def test_a_broker_below_the_limit() -> None:
    scene = scene_of(cluster(a=even(0.7, 1, 2), b=0.1), {"round.shedding": "overload"})
    told = explain(scene, named("a", 1))
    assert told.rule == Rest.BELOW_LINE
    setting, now, then = nearest(told)
    assert (setting, now) == ("round.overloaded_threshold", 0.85)
    assert then == pytest.approx(0.7, abs=1e-4)


def test_a_deviation_that_is_accepted_and_one_that_must_last() -> None:
    view = cluster(a=even(0.7, 1, 1), b=even(0.5, 1, 1))
    [calm] = scenes_of([view], {"round.shedding": "transfer"})
    told = explain(calm, "a")
    assert told.rule == Rest.IN_RANGE
    setting, now, then = nearest(told)
    assert (setting, now) == ("transfer.target_deviation", 0.25)
    assert then == pytest.approx(0.1, abs=1e-4)
    narrow = {"round.shedding": "transfer", "transfer.target_deviation": 0.05}
    hit = explain(scenes_of([view] * 2, narrow)[-1], "a")
    assert (hit.rule, nearest(hit)) == (Rest.HITS, ("transfer.hits", 3, 1))


def test_equal_usage_does_not_deviate_whatever_rounding_makes_of_it() -> None:
    """The variance comes out below 0, and its root is no number."""
    view = cluster(a=even(0.05, 1, 1), b=even(0.05, 1, 1), c=even(0.05, 1, 1))
    told = explain(scene_of(view, {"round.shedding": "transfer"}), "a")
    assert told.why.startswith("usage deviates by 0.0 points")
    assert told.figures["deviation"] == 0.0


def test_bundles_under_a_policy_are_spared() -> None:
    view = cluster(a=even(0.9, 1, 1, 1), b=even(0.1, 1, 1))
    bound = replace(view, policies=Policies({"p": Isolation(("t/a",), (".*",))}))
    settings = {"round.shedding": "transfer", "transfer.hits": 0, "transfer.with_policies": False}
    told = explain(scene_of(bound, settings), named("a", 0))
    assert told.rule in (Rest.UNDER_POLICY, Rest.NO_GAIN)


def test_accounts_are_of_strategies_that_there_are() -> None:
    assert ACCOUNTS.keys() <= SHEDDERS.keys()


def test_a_strategy_without_an_account_names_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = scene_of(cluster(a=even(0.7, 1, 2), b=even(0.3, 1, 1)), THRESHOLD)
    monkeypatch.setattr("trimtab.explaining.accounts.ACCOUNTS", {})
    told = explain(scene, named("a", 1))
    assert (told.verdict, told.rule) == (Verdict.MOVED, Reason.OVER_AVERAGE)
    assert told.why.startswith("threshold wants it gone: over-average; round.placement")
    assert explain(scene, named("a", 0)).rule == Rest.NOT_CHOSEN
    assert explain(scene, "a").rule == Reason.OVER_AVERAGE
    assert explain(scene, "b").verdict == Verdict.GETS


# What the round refuses, and when it asks no strategy


def hot(*going: str | None) -> View:
    """a sheds its largest bundles first, in this order; each perhaps on its way somewhere."""
    sizes = range(90, 90 - 10 * len(going), -10)
    bundles = [
        Bundle((0.0, 0.0, size * MB, 0.0), going_to=to)
        for size, to in zip(sizes, going, strict=True)
    ]
    return view_of({"a": Broker(0.9, bundles), "b": even(0.1, 1, 1), "c": even(0.1, 1, 1)})


def test_the_budget_is_used_up() -> None:
    scene = scene_of(hot(None, None, None, None), THRESHOLD | {"round.max_moves": 1})
    assert [refusal.rule for refusal in scene.plan.refusals] == [Rule.BUDGET]
    told = explain(scene, scene.plan.refusals[0].bundle)
    assert (told.verdict, told.rule) == (Verdict.REFUSED, Rule.BUDGET)
    assert told.why == "the round has moved the 1 bundle that it may; this one was number 2"
    assert nearest(told) == ("round.max_moves", 1, 2)


def test_a_bundle_that_rests_after_its_move() -> None:
    state = RoundState(recent={named("a", 0): NOW_MS - 600_000})
    scene = scene_of(hot(None, None), THRESHOLD, Memory(round=state))
    told = explain(scene, named("a", 0))
    assert (told.verdict, told.rule) == (Verdict.STAYED, Rule.COOLING_DOWN)
    assert told.why == "a round moved or split it 10 min ago, and it rests for 30 min"
    assert nearest(told) == ("round.grace_period", 1800.0, 599.9)
    assert told.until == NOW_MS + 1_200_001


def test_a_bundle_that_is_on_its_way() -> None:
    told = explain(scene_of(hot("b", None), THRESHOLD), named("a", 0))
    assert (told.rule, told.why) == (Rule.IN_FLIGHT, "it is on its way from a to b")


def test_an_isolation_policy_that_allows_no_other_broker() -> None:
    isolation = {"p": Isolation(("t/a",), ("a",))}
    scene = scene_of(replace(hot(None, None), policies=Policies(isolation)), THRESHOLD)
    told = explain(scene, named("a", 0))
    assert (told.verdict, told.rule) == (Verdict.REFUSED, Rule.ISOLATED)
    assert told.why == "the isolation policy of t/a allows no other broker that is there"
    assert options(told) == {"a": Bar.HAS_IT, "b": Bar.ISOLATED, "c": Bar.ISOLATED}


def test_a_heartbeat_stays_and_a_stranger_is_unknown() -> None:
    beat = "pulsar/c/h:8080/0x00000000_0xffffffff"
    view = view_of({"a": Broker(0.9, [Bundle(name=beat, movable=False)]), "b": Broker(0.1)})
    scene = scene_of(view, THRESHOLD)
    assert explain(scene, beat).rule == Rule.NOT_MOVABLE
    for unknown in ("t/no/0x00000000_0xffffffff", "no:1", "nonsense", "t/ns/nonsense"):
        told = explain(scene, unknown)
        assert (told.verdict, told.options) == (Verdict.UNKNOWN, ())


@pytest.mark.parametrize(
    ("settings", "memory", "rule", "setting"),
    [
        pytest.param({}, Memory(paused=True), Rule.PAUSED, None, id="paused"),
        pytest.param({"round.enabled": False}, Memory(), Rule.DISABLED, "round.enabled", id="off"),
        pytest.param(
            {}, Memory(doubts={"redis": Doubt.UNSTABLE}), Rule.DOUBT, None, id="an intent's doubt"
        ),
        pytest.param(
            {},
            Memory(appended={"a": NOW_MS, "b": NOW_MS, "c": 1, "d": 1}),
            Rule.DOUBT,
            "doubt.silent_brokers",
            id="half of the brokers are silent",
        ),
    ],
)
def test_a_round_that_asks_no_strategy(
    settings: Mapping[str, object], memory: Memory, rule: Rule, setting: str | None
) -> None:
    scene = scene_of(cluster(a=0.9, b=0.1), settings, memory)
    for subject in ("a", named("a", 0)):
        told = explain(scene, subject)
        assert told.rule == rule
        assert (told.nearest.setting if told.nearest else None) == setting


@pytest.mark.parametrize(
    ("settings", "goes_on"),
    [
        ({}, "splits and merges go on"),
        ({"merge.enabled": False}, "splits go on"),
        ({"split.enabled": False}, "so are splits and merges (split.enabled)"),
    ],
)
def test_with_shedding_off_it_is_said_what_goes_on(
    settings: Mapping[str, object], goes_on: str
) -> None:
    scene = scene_of(cluster(a=0.9, b=0.1), {"round.enabled": False, **settings})
    assert explain(scene, "a").why.startswith(
        f"no strategy was asked to move bundles: shedding is off (round.enabled); {goes_on};"
    )


def test_with_shedding_off_and_a_freeze_no_one_setting_helps() -> None:
    state = RoundState(breaker=Breaker(until_ms=NOW_MS + 300_000, found=("it did harm",)))
    scene = scene_of(hot(None, None), {"round.enabled": False}, Memory(round=state))
    told = explain(scene, named("a", 0))
    assert (told.rule, told.nearest) == (Rule.DISABLED, None)


def test_a_share_of_silent_brokers_that_is_borne_has_the_strategy_asked() -> None:
    silent = Memory(appended={"a": NOW_MS, "b": NOW_MS, "c": 1, "d": 1})
    scene = scene_of(cluster(a=0.9, b=0.1), {}, silent)
    told = explain(scene, "a")
    assert told.nearest is not None
    assert not scene.asked
    assert again(scene, {told.nearest.setting: told.nearest.then}).asked


@pytest.mark.parametrize(
    ("memory", "why"),
    [
        pytest.param(
            Memory(appended={"a": NOW_MS, "z": NOW_MS - 300_000}, paces={"z": Pace(60_000.0, 0.0)}),
            "it has not reported for 5 min; it did so each 60 s, and may be silent for 3 min "
            "(round.silence)",
            id="of a known pace",
        ),
        pytest.param(
            Memory(appended={"a": NOW_MS, "z": NOW_MS - 900_000}),
            "it has not reported for 15 min, since its first report; up to 3 min are allowed it",
            id="reported once",
        ),
        pytest.param(
            Memory(appended={"a": NOW_MS}),
            "a broker of this name has not reported for more than 60 min (round.forget)",
            id="unknown",
        ),
    ],
)
def test_how_long_a_broker_has_been_silent_and_may_be(memory: Memory, why: str) -> None:
    told = explain(scene_of(cluster(a=0.9, b=0.1), {}, memory), "z")
    assert (told.rule, told.why) == (Rest.SILENT, why)


def test_while_brokers_come_and_go_the_planner_says_what_it_waits_for() -> None:
    loaded = {name: even(0.5, *[1] * 10) for name in "abde"}
    whole = cluster(**loaded, c=even(0.5, *[1] * 10))
    back = cluster(**loaded, c=even(0.3, 1))
    scene = scenes_of([whole, whole, cluster(**loaded), back], PLANNER)[-1]
    assert scene.plan.skipped is Rule.CHANGING
    for subject in ("a", "c", named("a", 0)):
        told = explain(scene, subject)
        assert (told.rule, told.nearest) == (Rest.CHANGING, None)
        assert told.until == scene.now_ms + 10 * MINUTE_MS
    assert "are 20.0 points apart; brokers come and go one after another" in told.why
    assert "are left alone until none has come or gone for another 10 min" in told.why


def test_a_breaker_that_tripped_says_until_when() -> None:
    until = NOW_MS + 300_000
    state = RoundState(breaker=Breaker(until_ms=until, found=("after round 7 the range grew",)))
    scene = scene_of(hot(None, None), THRESHOLD, Memory(round=state))
    told = explain(scene, named("a", 0))
    assert (told.verdict, told.rule, told.until) == (Verdict.STAYED, Rule.FROZEN, until)
    assert told.why == (
        "no strategy is asked for another 5 min, or until "
        "`trimtab resume --cluster test --execute`: after round 7 the range grew"
    )
    assert nearest(told) == ("breaker.enabled", True, False)
    assert again(scene, {"breaker.enabled": False}).moves


def test_one_broker_alone_has_nowhere_to_go() -> None:
    told = explain(scene_of(cluster(a=0.9)), named("a", 0))
    assert told.rule == Rule.TOO_FEW_BROKERS


def test_loads_that_cannot_be_computed() -> None:
    scene = scene_of(cluster(a=Broker(float("nan"), throughputs(1.0)), b=0.1))
    told = explain(scene, named("a", 0))
    assert (told.rule, told.options, told.usage) == (Rule.UNCOMPUTABLE, (), {})
    assert "what a reports cannot be computed with" in told.why
    unasked = explanations(Witness(scene))
    assert unasked is not None
    assert unasked.subjects.keys() == {"a"}


# With records: drains, losses, divisions


def asked(it: Cluster, subject: str) -> Explanation:
    assert it.witness is not None
    return of_subject(it.witness, subject)


def test_a_drained_broker_gives_and_its_bundles_know_why() -> None:
    it = two_each()
    record = round_at(it, 2000, said(IntentKind.DRAIN, broker="a:1"))
    move = record.moves[0]
    told = asked(it, move.bundle)
    assert (told.verdict, told.rule) == (Verdict.MOVED, Reason.DRAINED)
    assert told.why == (
        f"a:1 is to be emptied; round.placement (least-long-term-rate) chose {move.destination}"
    )
    assert told.usage["a:1"][0] > told.usage["a:1"][1]
    giver, getter = asked(it, "a:1"), asked(it, move.destination)
    assert (giver.verdict, giver.rule) == (Verdict.GIVES, Reason.DRAINED)
    assert (getter.verdict, getter.rule) == (Verdict.GETS, Rule.REPAIR_ONLY)
    assert move.why.startswith("source ")


def test_what_is_under_way_holds_up_a_drain() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"), "ab", round__max_moves=2)
    round_at(it, 2000, said(IntentKind.DRAIN, broker="a:1"))
    it.hold_round(3000, repair_only)
    assert it.witness is not None
    refusal = it.witness.scene.plan.refusals[0]
    told = asked(it, refusal.bundle)
    assert (told.verdict, told.rule) == (Verdict.REFUSED, Rule.BUDGET)
    assert told.why == "2 of the 2 bundles that may move are under way; this one was number 3"
    assert nearest(told) == ("round.max_moves", 2, 3)
    assert again(it.witness.scene, {"round.max_moves": 3}).moves.keys() == {refusal.bundle}


def test_a_lost_brokers_bundles_get_another() -> None:
    it = two_each()
    record = round_at(it, 2000, said(IntentKind.BROKER_LOST, broker="a:1"))
    repair = record.repairs[0]
    told = asked(it, repair.bundle)
    assert (told.verdict, told.rule) == (Verdict.REPAIRED, Reason.OWNER_LOST)
    assert told.why == f"a:1 is lost; {repair.broker} gets it" == repair.why
    assert options(told)[repair.broker or ""] == "chosen"
    assert options(told)["a:1"] == Bar.GONE
    assert asked(it, "a:1").verdict == Verdict.AWAY


def test_a_round_between_two_others_tells_of_what_it_mends_alone() -> None:
    """Many of them follow a loss: they must not push out what says why a broker is hot."""
    it = two_each()
    record = round_at(it, 2000, said(IntentKind.BROKER_LOST, broker="a:1"))
    assert it.witness is not None
    told = explanations(it.witness)
    assert told is not None
    repaired = {repair.bundle for repair in record.repairs}
    assert told.subjects.keys() == repaired | {repair.broker for repair in record.repairs}
    assert {told.subjects[bundle].verdict for bundle in repaired} == {Verdict.REPAIRED}
    it.hold_round(3000, repair_only)
    assert explanations(it.witness) is None


def test_a_bundle_in_quarantine_says_how_to_let_it_out() -> None:
    it = two_each()
    stands = Record(state=State.QUARANTINED, epoch=Epoch(1, 2), falls=3)
    it.receive([record_row(EIGHTHS[0], stands)], 2000)
    it.hold_round(3000)
    told = asked(it, EIGHTHS[0])
    assert (told.verdict, told.rule) == (Verdict.STAYED, Rule.UNOWNED)
    assert "3 owners in a row died" in told.why
    assert told.why.endswith(f"trimtab bundles readmit {EIGHTHS[0]} --cluster c --execute")


def test_a_hand_over_says_to_whom() -> None:
    it = two_each()
    stands = Record(state=State.RELEASING, epoch=Epoch(1, 2), owner="a:1", destination="b:1")
    it.take([record_row(EIGHTHS[0], stands)], 2000)
    it.hold_round(3000)
    assert asked(it, EIGHTHS[0]).why == "a:1 is handing it over, to b:1"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (State.ASSIGNING, "a:1 has been given it, and has not said yet that it serves it"),
        (State.RELEASING, "a:1 is handing it over"),
        (State.SPLITTING, "a:1 is dividing it"),
        (State.MERGING, "a:1 is merging it with its neighbour"),
    ],
)
def test_a_bundle_that_is_under_way_says_what_is_done(state: State, said: str) -> None:
    it = two_each()
    it.take([change_row(EIGHTHS[0], "a:1", 2, state)], 2000)
    it.hold_round(3000)
    told = asked(it, EIGHTHS[0])
    assert (told.verdict, told.rule, told.why) == (Verdict.STAYED, Rule.IN_FLIGHT, said)


def test_a_broker_that_came_back_is_held_back() -> None:
    it = two_each()
    round_at(it, 2000, said(IntentKind.BROKER_LOST, broker="a:1"))
    it.take([said(IntentKind.BROKER_JOINED, broker="a:1", at_ms=3000)], 3000)
    it.hold_round(4000)
    told = asked(it, "a:1")
    assert (told.verdict, told.rule) == (Verdict.AWAY, Rest.AWAY)
    assert told.until == 13_000
    assert told.why.startswith("it was lost once and came back: it gets nothing for another 9 s")


def test_a_step_that_takes_too_long_is_called_off() -> None:
    it = two_each()
    it.take([change_row(EIGHTHS[0], "a:1", 2, State.RELEASING)], 2000)
    record = woken(it, 32_000)
    told = asked(it, EIGHTHS[0])
    assert told.rule == Reason.STUCK
    assert told.why == (
        "it has been Releasing for longer than 30 s (round.move_deadline); a:1 keeps it"
    )
    assert record.repairs[0].why == told.why


def test_records_that_say_why_a_bundle_stays() -> None:
    it = fleet({bundle(i): "a:1" for i in range(3)}, "ab")
    it.hold_round(2000)
    assert asked(it, bundle(0)).rule == Rule.BROKEN_NAMESPACE
    assert asked(it, bundle(3)).verdict == Verdict.UNKNOWN
    it.receive([change_row(bundle(0), None, 2, State.DELETED)], 3000)
    it.hold_round(4000)
    assert asked(it, bundle(0)).rule in (Rule.IN_FLIGHT, Rest.UNREPORTED)


def test_a_bundle_that_is_too_large_is_divided() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"), "ab", split__max_rate=60.0)
    it.hold_round(2000)
    told = asked(it, EIGHTHS[0])
    assert (told.verdict, told.rule) == (Verdict.SPLIT, Reason.TOO_MANY_MESSAGES)
    assert told.why == "it has 100 messages/s, and 60 messages/s are the most (split.max_rate)"
    assert nearest(told) == ("split.max_rate", 60.0, 100.1)


def test_a_tiny_limit_is_not_rounded_to_zero() -> None:
    found = raise_setting(Settings.parse({"split.max_rate": 0.0}), "split.max_rate", 5e-324, "")
    assert found is not None
    assert found.then == 5e-324


def test_what_is_planned_to_be_divided_is_judged_by_its_long_term_averages() -> None:
    long, short = (0.0, 0.0, 9e8, 0.0), (0.0, 0.0, 1e6, 0.0)
    a = Broker(0.5, [Bundle(short, long, topics=4)])
    view = replace(cluster(a=a, b=0.5), sizes={"t/a": 1})
    scene = scene_of(view, PLANNER | {"split.trigger": "planned", "split.max_throughput": 5e8})
    assert explain(scene, named("a", 0)).why.startswith("it has 900 MB/s, and 500 MB/s")


def test_cold_neighbours_are_merged() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"), "ab", split__max_bundles=8, merge__max_per_round=1)
    it.hold_round(1_800_000_000_000)
    assert it.witness is not None
    [merge] = it.witness.scene.plan.merges
    for part in merge.parts:
        told = asked(it, part)
        assert (told.verdict, told.rule) == (Verdict.MERGED, Reason.COLD_NEIGHBOURS)
        assert "t/ns has 8 of at most 8 bundles (split.max_bundles)" in told.why
    assert whys(it.witness).of[merge.bundle] == told.why


@pytest.mark.parametrize(
    ("rule", "said", "setting"),
    [
        (Rule.UNDIVIDABLE, "cannot be split", None),
        (Rule.FULL_NAMESPACE, "t/a has 7 bundles already", ("split.max_bundles", 7, 8)),
    ],
)
def test_a_giant_that_stays_whole(
    rule: Rule, said: str, setting: tuple[str, int, int] | None
) -> None:
    view = replace(cluster(a=even(0.9, 1), b=even(0.1, 1)), sizes={"t/a": 7})
    scene = scene_of(view, PLANNER | {"split.max_bundles": 7})
    refusal = Refusal(named("a", 0), "a", rule)
    told = explain(replace(scene, plan=Plan(refusals=(refusal,))), named("a", 0))
    assert (told.verdict, told.rule) == (Verdict.REFUSED, rule)
    assert said in told.why
    assert (nearest(told) if told.nearest else None) == setting


def test_a_paused_cluster_tells_of_its_extremes() -> None:
    it = two_each()
    it.take([intent_row(Intent(id="1", kind=IntentKind.PAUSE, cluster="c"))], 2000)
    it.hold_round(MINUTE_MS)
    assert it.witness is not None
    told = explanations(it.witness)
    assert told is not None
    # All use the same: the first is the hottest and the coldest.
    assert [*told.subjects] == ["a:1", EIGHTHS[0]]
    assert (told.round, told.problem) == (2, "")
    assert {each.rule for each in told.subjects.values()} == {Rule.PAUSED}


def test_nothing_is_told_where_no_rounds_are_kept() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"), "ab", explain__rounds=0)
    it.hold_round(2000)
    assert it.witness is not None
    assert explanations(it.witness) is None


def test_every_rule_is_told_in_a_sentence() -> None:
    """A rule without one was shown as a bare word, and no test failed."""
    excluded = {Rule.BROKEN_NAMESPACE, Rule.HELD, Rule.OUTSIDE_WINDOW}
    steps_of_plans = {Rule.LATE, Rule.CANCELLED}
    in_no_answer = {Rule.CONFLICT}
    told = REFUSED.keys() | SKIPPED.keys() | IDLE | excluded | steps_of_plans | in_no_answer
    assert set(Rule) == told, (
        "each Rule is in REFUSED (trimtab/explaining/rules/refusals.py) if it refuses a wish, in "
        "SKIPPED (rules/skips.py) if it skips a round; else its sentence is in rules/excluded.py "
        "or rules/controls.py, and it is named here"
    )
