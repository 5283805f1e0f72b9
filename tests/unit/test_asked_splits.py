"""An operator's split is decided in the next round, or refused with the rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, cluster
from tests.support.clusters_by_rows import change_row, held, said, skewed
from tests.support.clusters_by_rows import cluster as empty_cluster
from tests.support.pulsar import PULSAR
from tests.support.reports import bundle
from tests.support.scenes import scene_of
from trimtab.explaining.telling import explain
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import State
from trimtab.plan import Plan
from trimtab.reasons import Reason, Rule
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.settings.words import BY_POSITIONS
from trimtab.state.memory import Memory
from trimtab.state.round_state import AskedSplit, RoundState
from trimtab.store.requests import BatchId, transitions
from trimtab.view import View
from trimtab.wire.columns import pack, unpack
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import Record

ONE = "t/n/0x00000000_0x40000000"
TWO = "t/n/0x40000000_0x80000000"
NEW = "t/new/0x00000000_0xffffffff"
AT = 0x33000000
QUARTERS = [bundle(i, 4) for i in range(4)]


def fleet(size: int = 4, **one: object) -> View:
    calm = replace(Bundle((1.0, 0, 0, 0), topics=10), **one)  # type: ignore[arg-type]  # by name
    view = cluster(
        a=Broker(0.3, [replace(calm, name=ONE), Bundle(name=TWO, topics=10)]),
        b=Broker(0.3, [Bundle()]),
    )
    return replace(view, sizes={"t/n": size})


def hold(
    view: View, state: RoundState, settings: Mapping[str, object] | None = None
) -> tuple[Plan, RoundState]:
    chosen = Settings.parse({**PULSAR, **(settings or {})})
    return decide(view, state, chosen, view.now_ms, np.random.default_rng(1))


def asking(*positions: int, bundle: str = ONE) -> RoundState:
    return RoundState(asked={bundle: AskedSplit(BY_POSITIONS if positions else "", positions)})


def test_it_is_granted_once_with_its_positions() -> None:
    plan, state = hold(fleet(), asking(AT))
    [split] = plan.splits
    assert (split.bundle, split.broker, split.reason) == (ONE, "a", Reason.ASKED)
    assert (split.algorithm, split.positions) == (BY_POSITIONS, (AT,))
    assert state.asked == {}
    assert hold(fleet(), state)[0].splits == ()


@pytest.mark.parametrize(
    "settings",
    [{"split.enabled": False}, {"round.enabled": False}],
    ids=["splits are off", "shedding is off"],
)
def test_it_needs_no_switch(settings: Mapping[str, object]) -> None:
    assert len(hold(fleet(), asking(AT), settings)[0].splits) == 1


def test_it_need_not_wait_for_a_cool_down() -> None:
    view = fleet()
    state = replace(asking(), recent={ONE: view.now_ms})
    assert [split.bundle for split in hold(view, state)[0].splits] == [ONE]


def test_it_waits_while_the_cluster_is_paused() -> None:
    _, state = hold(fleet(), replace(asking(AT), paused=True))
    assert len(hold(fleet(), replace(state, paused=False))[0].splits) == 1


def test_it_takes_its_places_before_the_trigger_does() -> None:
    hot = {"split.max_rate": 0.5, "split.max_bundles": 6}
    own, _ = hold(fleet(size=5), RoundState(), hot)
    asked, _ = hold(fleet(size=4), asking(AT, AT + 1, bundle=TWO), hot)
    assert [split.bundle for split in own.splits] == [ONE]
    assert [split.bundle for split in asked.splits] == [TWO]


@pytest.mark.parametrize(
    ("view", "state", "rule"),
    [
        pytest.param(fleet(), asking(AT, bundle="t/n/0x00000000_0x70000000"), Rule.UNOWNED, id="-"),
        pytest.param(
            replace(fleet(), records={NEW: Record(state=State.OWNED, epoch=NO_EPOCH, owner="a")}),
            asking(AT, bundle=NEW),
            Rule.UNREPORTED,
            id="its owner has just got it",
        ),
        pytest.param(
            replace(fleet(), records={NEW: Record(state=State.OWNED, epoch=NO_EPOCH, owner="z")}),
            asking(AT, bundle=NEW),
            Rule.OWNER_LOST,
            id="its owner is away",
        ),
        pytest.param(fleet(going_to="b"), asking(AT), Rule.IN_FLIGHT, id="on its way"),
        pytest.param(
            replace(fleet(), splitting=frozenset({"t/n/0x00000000_0x80000000"})),
            asking(AT),
            Rule.IN_FLIGHT,
            id="its parent is being split",
        ),
        pytest.param(fleet(movable=False), asking(AT), Rule.NOT_MOVABLE, id="fixed"),
        pytest.param(fleet(size=128), asking(AT), Rule.FULL_NAMESPACE, id="no place"),
        pytest.param(fleet(size=127), asking(AT, AT + 1), Rule.FULL_NAMESPACE, id="one place"),
    ],
)
def test_what_cannot_be_is_refused_by_its_rule(view: View, state: RoundState, rule: Rule) -> None:
    plan, after = hold(view, state)
    assert (plan.splits, [refusal.rule for refusal in plan.refusals]) == ((), [rule])
    assert after.asked == {}
    [name] = state.asked
    told = explain(scene_of(view, {}, Memory(round=state)), name)
    assert (told.verdict, told.rule) == ("refused", rule)


@pytest.mark.parametrize(
    ("state", "owner", "rule"),
    [
        (State.SPLITTING, "a", Rule.IN_FLIGHT),
        (State.OWNED, "gone", Rule.OWNER_LOST),
        (State.FREE, None, Rule.UNOWNED),
    ],
)
def test_what_no_broker_reports_is_refused_by_its_record(
    state: State, owner: str | None, rule: Rule
) -> None:
    name = "t/n/0x80000000_0xc0000000"
    record = Record(state=state, epoch=Epoch(1, 1), owner=owner)
    plan, _ = hold(replace(fleet(), records={name: record}), asking(bundle=name))
    assert [(each.source, each.rule) for each in plan.refusals] == [(owner or "", rule)]


def test_why_says_that_an_operator_asked() -> None:
    scene = scene_of(fleet(), {}, Memory(round=asking(AT)))
    told = explain(scene, ONE)
    assert (told.verdict, told.rule) == ("split", "asked")
    assert told.why == "an operator asked for it, by specified_positions_divide at 0x33000000"
    full = explain(scene_of(fleet(size=128), {}, Memory(round=asking(AT))), ONE)
    assert full.why.startswith("an operator asked to split it, but t/n has 128 bundles already")


def test_what_is_asked_is_kept_in_the_state() -> None:
    assert unpack(pack(asking(AT, 1)), RoundState).asked == asking(AT, 1).asked


def test_an_intent_reaches_the_owner_as_a_command() -> None:
    it = empty_cluster()
    it.receive(skewed(QUARTERS), 0)
    it.receive([said(IntentKind.SPLIT, bundle=QUARTERS[0], positions=[AT, 1])], 1000)
    it.receive([said(IntentKind.SPLIT, bundle=QUARTERS[1], algorithm="range_equally_divide")], 1000)
    it.receive([said(IntentKind.SPLIT, bundle=QUARTERS[2])], 1000)
    record = held(it, 5000)
    commands = [c for r in transitions(record, BatchId("q", 1)) for c in r.commands if c.division]
    divisions = [(c.bundle, c.division.algorithm, c.division.positions) for c in commands]  # type: ignore[union-attr]  # those with one
    assert divisions == [
        (QUARTERS[0], BY_POSITIONS, (1, AT)),
        (QUARTERS[1], "range_equally_divide", ()),
        (QUARTERS[2], "range_equally_divide", ()),
    ]
    assert {c.reason for c in commands} == {"asked"}


def test_a_split_in_flight_is_refused() -> None:
    it = empty_cluster()
    it.receive(skewed(QUARTERS), 0)
    it.receive([change_row(QUARTERS[0], "a:1", 2, State.SPLITTING)], 0)
    it.receive([said(IntentKind.SPLIT, bundle=QUARTERS[0])], 1000)
    record = held(it, 5000)
    assert (QUARTERS[0], "in-flight") in {(each.bundle, each.rule) for each in record.refusals}
