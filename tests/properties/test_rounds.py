"""What every plan keeps to, whatever the cluster and the strategy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import compress
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters import view_of
from tests.support.granting import disposed
from tests.support.random_clusters import Cluster, all_settings, clusters, policies
from trimtab.model import namespace_of
from trimtab.plan import Plan, ShedWish
from trimtab.policies import NO_POLICIES, Policies
from trimtab.reasons import Reason
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.view import View, available_part, is_monitoring

INTERVAL_MS = 60_000


def rounds_of(
    fleets: list[Cluster], settings: Settings, policies: Policies = NO_POLICIES
) -> list[tuple[View, Plan]]:
    """A round on each of ``fleets``, one after another."""
    state, held = RoundState(), []
    for number, fleet in enumerate(fleets):
        view = view_of(fleet, policies)
        rng = np.random.default_rng([1, state.number])
        plan, state = decide(view, state, settings, number * INTERVAL_MS, rng)
        held.append((view, plan))
    return held


fleets = st.lists(clusters(), min_size=1, max_size=3)


@given(fleets, all_settings())
def test_no_broker_loses_its_last_bundle(fleets: list[Cluster], settings: Settings) -> None:
    """Some would stay, or come in the same plan; heartbeats do not count."""
    for view, plan in rounds_of(fleets, settings):
        assert_no_broker_emptied(view, plan)


def assert_no_broker_emptied(view: View, plan: Plan) -> None:
    staying = Counter(
        view.brokers.names[row]
        for name, row in zip(view.bundles.names, view.intended.tolist(), strict=True)
        if not is_monitoring(name)
    )
    for move in plan.moves:
        staying[move.source] -= 1
        staying[move.destination] += 1
    assert all(staying[move.source] >= 1 for move in plan.moves)


@given(fleets, all_settings())
def test_a_bundle_moves_once_and_then_rests(fleets: list[Cluster], settings: Settings) -> None:
    moved: set[str] = set()
    for _, plan in rounds_of(fleets, settings):
        bundles = [move.bundle for move in plan.moves]
        assert len(set(bundles)) == len(bundles)
        assert not moved & set(bundles)
        moved |= set(bundles)


@given(fleets, all_settings())
def test_moves_lead_from_the_owner_to_another_available_broker(
    fleets: list[Cluster], settings: Settings
) -> None:
    for view, plan in rounds_of(fleets, settings):
        brokers, bundles = view.brokers, view.bundles
        available = dict(zip(brokers.names, brokers.available.tolist(), strict=True))
        for move in plan.moves:
            row = bundles.names.index(move.bundle)
            assert available[move.destination]
            assert move.destination != move.source == brokers.names[bundles.owner[row]]
            assert bundles.movable[row]


@given(fleets, all_settings(), policies())
def test_no_move_leads_where_a_policy_forbids(
    fleets: list[Cluster], settings: Settings, demanded: Policies
) -> None:
    """Brokers are named a to h: hosts without a port."""
    for view, plan in rounds_of(fleets, settings, demanded):
        there = set(compress(view.brokers.names, view.brokers.available.tolist()))
        for move in plan.moves:
            assert move.destination in allowed(demanded, namespace_of(move.bundle), there)


def allowed(policies: Policies, namespace: str, there: set[str]) -> set[str]:
    for policy in policies.isolation.values():
        if any(re.fullmatch(pattern, namespace) for pattern in policy.namespaces):
            primary = matching(policy.primary, there)
            few = len(primary) < policy.min_available
            return primary | (matching(policy.secondary, there) if few else set())
    reserved = [matching(policy.primary, there) for policy in policies.isolation.values()]
    return there.difference(*reserved)


def matching(patterns: Iterable[str], names: set[str]) -> set[str]:
    return {name for name in names for pattern in patterns if re.fullmatch(pattern, name)}


@given(fleets, all_settings())
def test_the_budget_holds_and_every_wish_is_answered(
    fleets: list[Cluster], settings: Settings
) -> None:
    for _, plan in rounds_of(fleets, settings):
        assert not settings.round.max_moves or len(plan.moves) <= settings.round.max_moves
        assert (plan.skipped is None) == bool(plan.moves or plan.refusals)


@given(fleets, all_settings(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(
    fleets: list[Cluster], settings: Settings, random: Random
) -> None:
    shuffled = []
    for fleet in fleets:
        names = list(fleet)
        random.shuffle(names)
        shuffled.append({name: fleet[name] for name in names})
    plans = [plan for _, plan in rounds_of(fleets, settings)]
    assert plans == [plan for _, plan in rounds_of(shuffled, settings)]


@given(clusters(least=1), all_settings(), st.data())
def test_no_shedder_can_make_a_plan_unsafe(
    fleet: Cluster, settings: Settings, data: st.DataObject
) -> None:
    """Wishes of a shedder that minds nothing: any bundle, any source, any destination."""
    view = available_part(view_of(fleet))
    brokers, bundles = len(view.brokers.names), len(view.bundles.names)
    if not (brokers and bundles):
        return
    row = st.integers(0, brokers - 1)
    wish = st.builds(
        ShedWish, st.integers(0, bundles - 1), row, st.just(Reason.OVER_AVERAGE), st.none() | row
    )
    wishes = data.draw(st.lists(wish, max_size=20))
    plan = disposed(view, wishes, settings)
    assert len(plan.moves) + len(plan.refusals) == len(wishes)
    assert_no_broker_emptied(view, plan)
    for move in plan.moves:
        at = view.bundles.names.index(move.bundle)
        assert view.bundles.movable[at]
        assert move.source == view.brokers.names[view.bundles.owner[at]] != move.destination
