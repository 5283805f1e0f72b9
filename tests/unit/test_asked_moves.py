"""A bundle that an operator unloads moves in the next round, or is refused with the rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, cluster
from tests.support.pulsar import PULSAR
from tests.support.scenes import scene_of
from trimtab.cluster.round import Deciding
from trimtab.doubt import Doubt
from trimtab.explaining.telling import explain
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.plan import Plan
from trimtab.policies import Isolation, Policies
from trimtab.reasons import Reason, Rule
from trimtab.round.decide import decide, repair_only
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.state.round_state import RoundState
from trimtab.view import View
from trimtab.wire.columns import pack, unpack
from trimtab.wire.ownership import Record

ONE = "t/n/0x00000000_0x80000000"


def fleet(**one: object) -> View:
    """Three equal brokers: no strategy wants anything moved; ``a`` has ONE only."""
    bundle = replace(Bundle((1.0, 0, 0, 0), name=ONE), **one)  # type: ignore[arg-type]  # by name
    brokers = {name: Broker(0.3, [Bundle((1.0, 0, 0, 0))]) for name in ("b", "c")}
    return cluster(a=Broker(0.3, [bundle]), **brokers)


def hold(
    view: View, state: RoundState, deciding: Deciding = repair_only
) -> tuple[Plan, RoundState]:
    settings = Settings.parse(PULSAR)
    return deciding(view, state, settings, view.now_ms, np.random.default_rng(1))


def asking(to: str = "", bundle: str = ONE) -> RoundState:
    return RoundState(asked_moves={bundle: to})


@pytest.mark.parametrize("deciding", [repair_only, decide])
def test_it_goes_where_the_operator_says_in_any_round(deciding: Deciding) -> None:
    plan, state = hold(fleet(), asking("c"), deciding)
    [move] = plan.moves
    assert (move.bundle, move.source, move.destination) == (ONE, "a", "c")
    assert move.reason is Reason.ASKED
    assert state.asked_moves == {}
    assert hold(fleet(), state, deciding)[0].moves == ()


def test_without_a_destination_placement_finds_another_broker() -> None:
    [move] = hold(fleet(), asking())[0].moves
    assert move.destination in ("b", "c")


def test_it_need_not_wait_for_a_cool_down_and_begins_one() -> None:
    view = fleet()
    plan, after = hold(view, replace(asking("b"), recent={ONE: view.now_ms}))
    assert len(plan.moves) == 1
    assert after.recent == {ONE: view.now_ms}


@pytest.mark.parametrize("doubt", [Doubt.JITTERY, Doubt.UNSTABLE])
def test_it_waits_while_ownership_is_in_doubt(doubt: Doubt) -> None:
    view = fleet()
    doubtful = replace(view, trouble=replace(view.trouble, doubt=doubt))
    plan, after = hold(doubtful, asking("b"))
    assert (plan.moves, after.asked_moves) == ((), {ONE: "b"})


def test_it_waits_while_the_cluster_is_paused() -> None:
    _, state = hold(fleet(), replace(asking("b"), paused=True))
    assert len(hold(fleet(), replace(state, paused=False))[0].moves) == 1


def test_a_bundle_of_a_draining_broker_goes_where_the_operator_says() -> None:
    view = fleet()
    draining = replace(view, trouble=replace(view.trouble, draining=frozenset({"a"})))
    assert [move.reason for move in hold(draining, asking("c"))[0].moves] == [Reason.ASKED]


FORBIDDEN = Policies(isolation={"p": Isolation(namespaces=("t/n",), primary=("a", "b"))})


@pytest.mark.parametrize(
    ("view", "state", "rule"),
    [
        pytest.param(fleet(), asking(bundle="t/n/0x0_0x7"), Rule.UNOWNED, id="no such bundle"),
        pytest.param(fleet(), asking("nobody"), Rule.UNFIT_DESTINATION, id="no such broker"),
        pytest.param(fleet(), asking("a"), Rule.SAME_BROKER, id="it is there"),
        pytest.param(fleet(going_to="b"), asking("c"), Rule.IN_FLIGHT, id="on its way"),
        pytest.param(fleet(movable=False), asking("c"), Rule.NOT_MOVABLE, id="fixed"),
        pytest.param(
            replace(fleet(), policies=FORBIDDEN), asking("c"), Rule.UNFIT_DESTINATION, id="isolated"
        ),
    ],
)
def test_what_cannot_be_is_refused_by_its_rule(view: View, state: RoundState, rule: Rule) -> None:
    plan, after = hold(view, state)
    assert (plan.moves, [refusal.rule for refusal in plan.refusals]) == ((), [rule])
    assert after.asked_moves == {}
    [name] = state.asked_moves
    told = explain(scene_of(view, {}, Memory(round=state)), name)
    assert (told.verdict, told.rule) == ("refused", rule)


def test_a_bundle_whose_owner_is_gone_is_refused_by_its_record() -> None:
    name = "t/n/0x80000000_0xc0000000"
    record = Record(state=State.OWNED, epoch=Epoch(1, 1), owner="gone")
    plan, _ = hold(replace(fleet(), records={name: record}), asking(bundle=name))
    assert [(each.source, each.rule) for each in plan.refusals] == [("gone", Rule.OWNER_LOST)]


@pytest.mark.parametrize("to", ["", "c"])
def test_why_says_that_an_operator_asked_and_who_chose_the_broker(to: str) -> None:
    told = explain(scene_of(fleet(), {}, Memory(round=asking(to))), ONE)
    assert (told.verdict, told.rule) == ("moved", "asked")
    assert "an operator asked for it" in told.why
    assert ("chose" in told.why) is not bool(to)


def test_a_refused_request_of_an_operator_does_not_count_as_a_wish() -> None:
    assert not scene_of(fleet(), {}, Memory(round=asking("nobody"))).wanted


def test_the_strategy_is_shown_the_bundle_where_it_goes() -> None:
    scene = scene_of(fleet(), {}, Memory(round=asking("c")))
    row = scene.shown.bundles.names.index(ONE)
    assert scene.shown.brokers.names[scene.shown.intended[row]] == "c"


def test_what_is_asked_outlives_a_checkpoint() -> None:
    state = asking("c")
    assert unpack(pack(state), RoundState).asked_moves == {ONE: "c"}
