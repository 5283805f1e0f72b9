"""A round that raises stops the whole job: none does, whatever finite figures brokers report.

Warnings are errors in these tests: neither may anything overflow.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters import Broker, Bundle, Four, view_of
from tests.support.examples import examples
from tests.support.random_clusters import PAIRS, all_settings, policies
from tests.support.reports import bundle
from tests.support.scenes import scene_of
from trimtab.arrays import BANDWIDTH_IN
from trimtab.explaining.telling import of_subject
from trimtab.explaining.witness import Witness
from trimtab.plan import Plan
from trimtab.policies import Policies
from trimtab.settings import Settings
from trimtab.shadow.run import compare_shadow
from trimtab.state.memory import Memory
from trimtab.view import View
from trimtab.wire.columns import pack, unpack

BROKERS = "abcd"
BUNDLES = [bundle(row, 8, space) for space in ("t/one", "t/two") for row in range(8)]
PAUSES = st.sampled_from([60_000, 60_000, 60_000, 1, 1_000_000, 10 * 86_400_000])

figures = st.sampled_from([0.0, 0.0, 5e-324, 1e-300, 1e-9, 1.0, 1e3, 1e6, 4e7, 1e15, 1e35])
loads = st.one_of(figures.map(lambda each: (0.0, 0.0, each, each)), st.tuples(*[figures] * 4))
usages = st.sampled_from([0.0, 0.0, 1e-9, 0.1, 0.5, 0.9, 1.2, 1e15])
limits = st.sampled_from([0.0, 0.0, 1e-9, 100.0, 400.0, 1e15])


class Turn(NamedTuple):
    """What a round finds."""

    pause_ms: int
    usages: list[float]
    limits: list[float]
    away: set[str]
    loads: dict[str, Four]
    """Of bundles that carry something else than before."""
    strays: dict[str, str]
    """Bundles that are elsewhere, and on which broker."""
    silent: set[str]
    """Bundles that no broker reports."""
    obeyed: bool
    """Whether the last plan was done."""


def some(of: list[str]) -> st.SearchStrategy[set[str]]:
    return st.one_of(st.just(set[str]()), st.sets(st.sampled_from(of)), st.just({*of}))


turns = st.builds(
    Turn,
    PAUSES,
    st.lists(usages, min_size=4, max_size=4),
    st.lists(limits, min_size=4, max_size=4),
    st.one_of(st.just(set[str]()), st.sets(st.sampled_from(BROKERS), max_size=3)),
    st.dictionaries(st.sampled_from(BUNDLES), loads, max_size=6),
    st.dictionaries(st.sampled_from(BUNDLES), st.sampled_from(BROKERS), max_size=3),
    some(BUNDLES),
    st.booleans(),
)


@st.composite
def eager(draw: st.DrawFn) -> Settings:
    """Settings with which everything happens soon: plans, giants, merges, verdicts, undoing."""
    shedding, placement = draw(st.sampled_from([*PAIRS, *[("trimtab", "round-robin")] * 8]))
    shadow, beside = draw(st.sampled_from([("none", placement), *PAIRS]))
    return draw(all_settings()).changed(
        {
            "round.shedding": shedding,
            "round.placement": placement,
            "shadow.shedding": shadow,
            "shadow.placement": beside if shadow != "none" else "round-robin",
            "round.grace_period": draw(st.sampled_from([0.0, 60.0])),
            "round.observe_only": draw(st.sampled_from([False, False, False, True])),
            "planner.target": draw(st.sampled_from([0.001, 0.05])),
            "planner.false_moves": 1e6,
            "split.trigger": draw(st.sampled_from(["planned", "planned", "long-term"])),
            "split.max_rate": draw(st.sampled_from([0.0, 1e15])),
            "split.max_throughput": 1e15,
            "merge.share": draw(st.sampled_from([0.1, 1.0])),
            "ledger.settle": 1.0,
            "breaker.freeze": 60.0,
            "breaker.worse": 0.0,
            "breaker.undo": draw(st.sampled_from(["off", "propose", "issue"])),
        }
    )


class World:
    """Four brokers, and where the bundles are."""

    def __init__(self, demanded: Policies) -> None:
        self.owner = {name: BROKERS[row % 3] for row, name in enumerate(BUNDLES)}
        self.loads: dict[str, Four] = dict.fromkeys(BUNDLES, (0.0, 0.0, 1e6, 1e6))
        self._demanded, self._past_ms = demanded, 0

    def view(self, turn: Turn, last: Plan) -> View:
        """What is reported after the last plan."""
        done = {move.bundle: move.destination for move in last.moves} if turn.obeyed else {}
        self.owner |= done | turn.strays
        self.loads |= turn.loads
        self._past_ms += turn.pause_ms
        there = [name for name in BUNDLES if name not in turn.silent]
        brokers = {
            name: Broker(
                usage,
                [Bundle(self.loads[b], name=b, topics=4) for b in there if self.owner[b] == name],
                available=name not in turn.away,
            )
            for name, usage in zip(BROKERS, turn.usages, strict=True)
        }
        view = view_of(brokers, self._demanded)
        said = np.zeros((5, len(BROKERS)))
        said[BANDWIDTH_IN] = turn.limits
        reported_ms = view.brokers.reported_ms + self._past_ms
        return replace(
            view,
            brokers=replace(view.brokers, limits=said, reported_ms=reported_ms),
            now_ms=view.now_ms + self._past_ms,
            sizes={"t/one": 8, "t/two": 8},
        )


@examples(40)
@given(st.lists(turns, min_size=2, max_size=6), eager(), policies())
def test_no_round_fails(told: list[Turn], chosen: Settings, demanded: Policies) -> None:
    """Nor does its explanation, nor its shadow; and each goes on from what was stored."""
    world, memory, plan = World(demanded), Memory(), Plan()
    for turn in told:
        view = world.view(turn, plan)
        scene = scene_of(view, chosen, memory)
        plan = scene.plan
        assert_sound(view, plan)
        witness = Witness(scene)
        assert all(of_subject(witness, name).why for name in (*view.bundles.names, *BROKERS))
        memory, _ = compare_shadow(memory, view, plan, chosen)
        assert memory.problems == []
        memory = replace(memory, round=scene.after)
        stored = pack(memory)
        memory = unpack(stored, Memory)
        assert pack(memory) == stored


def assert_sound(view: View, plan: Plan) -> None:
    """Every change is of a bundle that stands still, and every move goes to who may get it."""
    names, bundles = view.brokers.names, view.bundles
    owner = {bundle: names[row] for bundle, row in zip(bundles.names, bundles.owner, strict=True)}
    receive = {name for name, here in zip(names, view.brokers.available, strict=True) if here}
    changed = Counter(move.bundle for move in plan.moves)
    changed.update(split.bundle for split in plan.splits)
    changed.update(part for merge in plan.merges for part in merge.parts)
    assert set(changed.values()) <= {1}
    for move in plan.moves:
        assert owner[move.bundle] == move.source != move.destination
        assert move.destination in receive
