"""What TransferShedder swaps back, and what the round grants of it."""

from __future__ import annotations

import numpy as np

from tests.support.clusters import Broker, Bundle, view_of
from trimtab.policies import Isolation, Policies
from trimtab.reasons import Rule
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.shedding.transfer import TransferHistory, shed
from trimtab.state.round_state import RoundState
from trimtab.view import View

BIG = [Bundle((0, 0, 0, 5e6), name=f"t/big/0x0{i}000000_0x0{i + 1}000000") for i in range(2)]
SMALL = [Bundle((0, 0, 0, 2.4e6), name=f"t/sml/0x0{i}000000_0x0{i + 1}000000") for i in range(2)]
ACTING = {"transfer.hits": 0, "round.shedding": "transfer"}


def fleet(*, resting: bool = False, policies: Policies | None = None) -> View:
    """Acceptance case D8: a big bundle fits only if a small one comes back."""
    small = [Bundle(b.short, name=b.name, movable=not resting) for b in SMALL]
    brokers = {"idle": Broker(0.48, small), "busy": Broker(1.0, BIG)}
    return view_of(brokers, policies or Policies())


def swapped(view: View, **settings: object) -> list[tuple[str, str]]:
    given = {name.replace("__", "."): value for name, value in settings.items()}
    sheds, _ = shed(view, TransferHistory(), Settings.parse(ACTING | given))
    names = view.bundles.names
    return [(names[each.bundle].split("/")[1], view.brokers.names[each.source]) for each in sheds]


def test_a_small_bundle_comes_back_for_a_big_one() -> None:
    assert swapped(fleet()) == [("big", "busy"), ("sml", "idle")]


def test_a_bundle_that_moved_lately_is_not_swapped_back() -> None:
    assert swapped(fleet(resting=True)) == []


def test_pulsar_asks_for_it_all_the_same() -> None:
    asked = swapped(fleet(resting=True), transfer__checked_swaps=False)
    assert asked == [("big", "busy"), ("sml", "idle")]


def test_one_of_the_listed_bundles_stays() -> None:
    """All of them would fit."""
    light = [Bundle((0, 0, 0, 1e6), name=f"t/big/0x0{i}000000_0x0{i + 1}000000") for i in range(3)]
    busy = Broker(1.0, light, traffic=(0, 0, 0, 1e8))
    view = view_of({"busy": busy, "idle": Broker(0.1, [SMALL[0]])})
    assert swapped(view) == [("big", "busy"), ("big", "busy")]


def test_without_directions_nothing_is_swapped() -> None:
    assert swapped(fleet(), transfer__directed=False) == []


def test_both_halves_of_a_swap_are_granted() -> None:
    plan, state = decide(fleet(), RoundState(), Settings.parse(ACTING), 0, np.random.default_rng(1))
    assert [(move.source, move.destination) for move in plan.moves] == [
        ("busy", "idle"),
        ("idle", "busy"),
    ]
    assert set(state.relieved) == {"busy", "idle"}


def test_a_group_that_stands_evenly_is_not_gathered_by_a_transfer() -> None:
    """The shedder asks Pulsar's filter, which lets it pass; the round asks whether it may leave."""
    group = Policies(groups={"t/big": "db", "t/sml": "db"})
    view = fleet(policies=group)
    wished = {"transfer.with_policies": True, **ACTING}
    assert swapped(view, transfer__with_policies=True) == [("big", "busy"), ("sml", "idle")]
    plan, _ = decide(view, RoundState(), Settings.parse(wished), 0, np.random.default_rng(1))
    assert {refusal.rule for refusal in plan.refusals} == {Rule.ANTI_AFFINITY}
    assert plan.moves == ()


def test_isolation_binds_a_transfer() -> None:
    """Bundles under policies stay unless they may move, and then where the policy lets them."""
    own = Policies(isolation={"own": Isolation(("t/big",), ("busy",))})
    assert swapped(fleet(policies=own)) == []
    assert swapped(fleet(policies=own), transfer__with_policies=True) == []
