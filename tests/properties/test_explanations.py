"""Whatever a round did is explained by the rule that bound, and what would change it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters import Broker, throughputs, view_of
from tests.support.examples import examples
from tests.support.promises import Retried, is_kept
from tests.support.random_clusters import Cluster, all_settings, clusters, policies
from tests.support.scenes import scenes_of
from trimtab.explaining.scene import Scene, again
from trimtab.explaining.telling import explanations, of_subject, whys
from trimtab.explaining.verdict import Verdict
from trimtab.explaining.witness import Witness
from trimtab.policies import NO_POLICIES, Policies
from trimtab.settings import Settings
from trimtab.view import View
from trimtab.wire.explanation import Explanation, Nearest

fleets = st.lists(clusters(), min_size=1, max_size=3)


def rounds_of(
    fleets: list[Cluster], settings: Settings, policies: Policies = NO_POLICIES
) -> list[Scene]:
    """Bundles that are too large may be divided: their namespaces have places."""
    views = [view_of(fleet, policies) for fleet in fleets]
    sizes = {"t/one": 20, "t/two": 127}
    return scenes_of([replace(view, sizes=sizes) for view in views], settings)


@st.composite
def steady(draw: st.DrawFn) -> list[View]:
    """Three views of one fleet whose usage follows its traffic, each bundle with some noise."""
    noise = draw(st.sampled_from([0.0, 0.02, 0.3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    brokers, most = draw(st.integers(2, 6)), draw(st.integers(2, 10))
    spread = draw(st.sampled_from([0.1, 0.5, 1.5]))
    sizes = [rng.lognormal(0, spread, rng.integers(1, most + 1)) for _ in range(brokers)]
    unit = 0.5 / max(each.sum() for each in sizes)
    views = []
    for _ in range(3):
        loads = [each * unit * np.exp(noise * rng.normal(size=len(each))) for each in sizes]
        views.append(
            view_of(
                {
                    f"b{row}": Broker(0.1 + float(each.sum()), throughputs(*(each * 1e8)))
                    for row, each in enumerate(loads)
                }
            )
        )
    return views


@st.composite
def leaping(draw: st.DrawFn) -> list[View]:
    """Nine views with some noise, and four more in which a few bundles carry much more."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    noise, times = draw(st.sampled_from([0.02, 0.1])), draw(st.sampled_from([1.6, 3.0]))
    brokers, each = draw(st.integers(2, 6)), draw(st.integers(3, 10))
    sizes = rng.lognormal(0, 0.3, (brokers, each)) * 0.4 / each
    leapt = rng.permutation(brokers * each)[: draw(st.integers(1, 5))]
    views = []
    for number in range(13):
        loads = sizes * np.exp(noise * rng.normal(size=sizes.shape))
        if number >= 9:
            loads.flat[leapt] *= times
        views.append(
            view_of(
                {
                    f"b{row}": Broker(0.1 + float(each.sum()), throughputs(*(each * 1e8)))
                    for row, each in enumerate(loads)
                }
            )
        )
    return views


def answers(scene: Scene) -> dict[str, Explanation]:
    witness = Witness(scene)
    subjects = [*scene.view.bundles.names, *scene.view.brokers.names]
    return {subject: of_subject(witness, subject) for subject in subjects}


@given(fleets, all_settings(), policies())
def test_every_subject_gets_an_explanation(
    fleets: list[Cluster], settings: Settings, demanded: Policies
) -> None:
    for scene in rounds_of(fleets, settings, demanded):
        plan = scene.plan
        moved = {move.bundle: move for move in plan.moves}
        refused = {each.bundle: each.rule for each in reversed(plan.refusals)}
        split = {each.bundle: each.reason for each in plan.splits}
        for subject, answer in answers(scene).items():
            assert answer.why
            assert answer.round == scene.number
            if subject in moved:
                move = moved[subject]
                assert (answer.verdict, answer.rule) == (Verdict.MOVED, move.reason)
                assert (answer.source, answer.destination) == (move.source, move.destination)
                assert [each.broker for each in answer.options if each.chosen] == [move.destination]
            elif subject in split:
                assert (answer.verdict, answer.rule) == (Verdict.SPLIT, split[subject])
            elif subject in refused:
                assert (answer.verdict, answer.rule) == (Verdict.REFUSED, refused[subject])
            elif subject in scene.view.bundles.names:
                assert answer.verdict is Verdict.STAYED


@given(fleets, all_settings(), policies())
def test_what_would_change_an_answer_changes_it(
    fleets: list[Cluster], settings: Settings, demanded: Policies
) -> None:
    assert_changes_are_true(rounds_of(fleets, settings, demanded)[-1])


@examples(40)
@given(
    steady(),
    st.sampled_from(["trimtab", "threshold"]),
    st.sampled_from([0.01, 0.05, 0.2]),
    st.sampled_from([0, 2]),
)
def test_on_a_steady_fleet_it_does_too(
    views: list[View], shedding: str, narrow: float, most: int
) -> None:
    settings = {
        "round.shedding": shedding,
        "round.max_moves": most,
        "planner.target": narrow,
        "threshold.threshold": narrow,
        "threshold.min_throughput": 1e6,
        # What is moved here stays where it was: transfers that fail, to the breaker.
        "breaker.enabled": False,
    }
    for scene in scenes_of(views, settings):
        assert_changes_are_true(scene)


@examples(10)
@given(leaping(), st.sampled_from([0.02, 0.05, 0.1]), st.sampled_from([0.1, 1.0, 100.0]))
def test_while_bundles_leap_together_it_does_too(
    views: list[View], target: float, false_moves: float
) -> None:
    chosen = {
        "round.shedding": "trimtab",
        "planner.target": target,
        "planner.false_moves": false_moves,
        "breaker.enabled": False,
    }
    for scene in scenes_of(views, chosen)[10:]:
        assert_changes_are_true(scene)


def assert_changes_are_true(scene: Scene) -> None:
    told_of = {
        subject: answer for subject, answer in answers(scene).items() if answer.nearest is not None
    }
    tried: dict[Nearest, Witness] = {}
    for subject, answer in told_of.items():
        nearest = answer.nearest
        assert nearest is not None
        assert nearest.then != nearest.now
        if nearest not in tried:
            tried[nearest] = Witness(again(scene, {nearest.setting: nearest.then}))
        after = of_subject(tried[nearest], subject)
        assert (after.verdict, after.rule) != (answer.verdict, answer.rule), nearest
        assert is_kept(nearest.so_that, Retried(tried[nearest].scene, after)), (nearest, after)


@given(fleets, all_settings())
def test_a_round_explains_the_bundles_it_concerns_up_to_the_limit(
    fleets: list[Cluster], settings: Settings
) -> None:
    settings = settings.changed({"explain.subjects": 7})
    for scene in rounds_of(fleets, settings):
        witness = Witness(scene)
        said = explanations(witness)
        assert said is not None
        assert not said.problem
        assert len(said.subjects) <= 7
        planned = {move.bundle for move in scene.plan.moves}
        planned |= {split.bundle for split in scene.plan.splits}
        assert whys(witness).of.keys() == planned
        assert all(whys(witness).of.values())
        assert whys(witness).problems == ()
        if len(planned) <= 4:
            assert said.subjects.keys() >= planned
