"""The columnar merger against its plain twin, and what no round that merges may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters import NOW_MS, Broker, Bundle, view_of
from tests.support.plain_merger import merged_pairs
from trimtab.arrays import PRODUCERS
from trimtab.model import Epoch, HashRange, merge_names
from trimtab.names import PackedNames, ranges_of
from trimtab.ownership import State
from trimtab.plan import parts_of
from trimtab.round.decide import decide
from trimtab.round.proposals import ask_merger
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.view import View
from trimtab.wire.ownership import Record

EDGES = (0, 16, 20, 24, 32, 40, 41, 64, 80, 0xFFFFFFFF)
BUNDLES = [
    f"{namespace}/{HashRange(*ends)}" for namespace in ("t/b", "t/a") for ends in pairwise(EDGES)
]

few = st.integers(0, 4)
figures = st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.5, 2.0])
bundles = st.builds(
    Bundle,
    short=st.just((9.0, 9.0, 9.0, 9.0)),
    long=st.tuples(figures, figures, figures, figures),
    topics=few,
    sessions=few,
    movable=st.sampled_from([True, True, True, False]),
)


@st.composite
def views(draw: st.DrawFn) -> View:
    """Most of BUNDLES, on two brokers in runs, some of them changed lately."""
    missing = draw(st.sets(st.sampled_from(BUNDLES), max_size=3))
    owned: dict[str, list[Bundle]] = {"a": [], "b": []}
    owner = "a"
    for name in BUNDLES:
        owner = draw(st.sampled_from([owner, owner, owner, "a", "b"]))
        if name not in missing:
            owned[owner].append(replace(draw(bundles), name=name))
    view = view_of({name: Broker(0.3, each) for name, each in owned.items()})
    counts = view.bundles.counts.copy()
    counts[PRODUCERS] = draw(st.lists(few, min_size=counts.shape[1], max_size=counts.shape[1]))
    since = draw(st.lists(st.sampled_from([0, 0, 0, NOW_MS - 1]), min_size=len(BUNDLES)))
    records = {
        name: Record(state=State.OWNED, epoch=Epoch(1, row), since=at)
        for row, (name, at) in enumerate(zip(BUNDLES, since, strict=False))
    }
    return replace(
        view,
        bundles=replace(view.bundles, counts=counts),
        sizes={"t/a": draw(st.integers(0, 12)), "t/b": draw(st.integers(0, 12))},
        records=draw(st.sampled_from([records, {}])),
    )


limits = st.fixed_dictionaries(
    {
        "split.max_topics": st.sampled_from([0, 4, 16]),
        "split.max_sessions": st.sampled_from([0, 8, 32]),
        "split.max_rate": st.sampled_from([0.0, 4.0, 16.0]),
        "split.max_throughput": st.sampled_from([4.0, 16.0]),
        "split.max_bundles": st.sampled_from([0, 1, 8, 10]),
        "merge.share": st.sampled_from([0.0, 0.5, 0.9, 1.0]),
        "merge.fraction": st.sampled_from([0.25, 0.5, 1.0]),
        "merge.max_per_round": few,
    }
)


@given(views(), limits)
def test_the_merger_agrees_with_its_twin(view: View, values: Mapping[str, object]) -> None:
    settings = Settings.parse(values)
    view = _in_order_of_names(view)
    names, merges = view.bundles.names, ask_merger(view, settings)
    pairs = [(names[merge.bundle], names[merge.neighbour]) for merge in merges]
    assert pairs == merged_pairs(view, settings)


def _in_order_of_names(view: View) -> View:
    """As the job packs them: the rows of a namespace side by side."""
    rows = sorted(range(len(view.bundles.names)), key=view.bundles.names.__getitem__)
    names = [view.bundles.names[row] for row in rows]
    namespace = np.array([name.startswith("t/b") for name in names], dtype=np.int32)
    given = view.bundles
    packed = replace(
        given,
        names=PackedNames(("t/a", "t/b"), namespace, ranges_of("\n".join(names))),
        namespace=namespace,
        namespaces=("t/a", "t/b"),
        owner=given.owner[rows],
        long=given.long[:, rows],
        counts=given.counts[:, rows],
        movable=given.movable[rows],
    )
    return replace(view, bundles=packed, intended=view.intended[rows])


@given(views(), limits)
def test_what_is_merged_is_nothing_else_in_the_round(
    view: View, values: Mapping[str, object]
) -> None:
    settings = Settings.parse({**values, "split.max_rate": 2.0, "merge.fraction": 1.0})
    plan, state = decide(view, RoundState(), settings, NOW_MS, np.random.default_rng(1))
    changed = [move.bundle for move in plan.moves] + [split.bundle for split in plan.splits]
    for merge in plan.merges:
        assert merge_names(*merge.parts) in state.recent
        changed += merge.parts
    assert len(set(changed)) == len(changed)
    assert parts_of(plan.merges) <= state.recent.keys()
