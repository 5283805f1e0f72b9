"""The columnar split triggers against their plain twins, on the same random clusters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters import Broker, Bundle, view_of
from tests.support.plain_triggers import PlainInstantaneous, PlainLongTerm, Wish
from trimtab.arrays import PRODUCERS
from trimtab.plan import SplitWish
from trimtab.settings import Settings
from trimtab.splitting.triggers import TRIGGERS
from trimtab.splitting.triggers.instantaneous import SplitHistory, split
from trimtab.view import View

RANGES = ["0x00000000_0x00000008", "0x00000000_0x00000004", "0x00000004_0x00000008"]
SMALL = ["0x00000008_0x00000009", "0x00000008_0x0000000a", "0x0000000a_0xffffffff"]
BUNDLES = [f"{namespace}/{ends}" for namespace in ("t/n", "t/n1") for ends in RANGES + SMALL]
BUNDLES.append("t/unknown/0x00000000_0xffffffff")

few = st.integers(0, 4)
fours = st.tuples(*[st.sampled_from([0.0, 1.0, 1.5, 2.0, 5.0])] * 4)
bundles = st.builds(
    Bundle,
    short=fours,
    long=fours,
    topics=few,
    sessions=few,
    movable=st.sampled_from([True, True, True, False]),
)


@st.composite
def views(draw: st.DrawFn) -> View:
    """Most of BUNDLES on two brokers; a few of them, seen or not, are being divided."""
    missing = draw(st.sets(st.sampled_from(BUNDLES), max_size=4))
    given = [replace(draw(bundles), name=name) for name in BUNDLES if name not in missing]
    cut = draw(st.integers(0, len(given)))
    view = view_of({"a": Broker(bundles=given[:cut]), "b": Broker(bundles=given[cut:])})
    counts = view.bundles.counts.copy()
    counts[PRODUCERS] = draw(st.lists(few, min_size=len(given), max_size=len(given)))
    return replace(
        view,
        bundles=replace(view.bundles, counts=counts),
        sizes={"t/n": draw(few), "t/n1": draw(few)},
        splitting=frozenset(draw(st.lists(st.sampled_from(BUNDLES), max_size=2))),
    )


limits = st.builds(
    lambda topics, sessions, rate, throughput, room, hits, cap: Settings.parse(
        {
            "split.max_topics": topics,
            "split.max_sessions": sessions,
            "split.max_rate": rate,
            "split.max_throughput": throughput,
            "split.max_bundles": room,
            "split.hits": hits,
            "split.max_per_round": cap,
        }
    ),
    st.integers(0, 4),
    st.integers(-1, 4),
    st.sampled_from([0, 2, 3, 7]),
    st.sampled_from([0, 2, 3, 7]),
    st.integers(1, 9),
    st.sampled_from([0, 1, 1, 2]),
    st.sampled_from([0, 1, 1, 2, 3]),
)


def said(view: View, divides: Sequence[SplitWish]) -> list[Wish]:
    return [(view.bundles.names[divide.bundle], divide.reason) for divide in divides]


def outside(view: View, whole: Collection[str]) -> Callable[[int], bool]:
    return lambda row: view.bundles.names[row] not in whole


@given(views(), limits)
def test_long_term(view: View, settings: Settings) -> None:
    divides, _ = TRIGGERS["long-term"](view, None, settings)
    assert said(view, divides) == PlainLongTerm().split(view, settings)


@given(
    st.lists(views(), min_size=2, max_size=4),
    limits,
    st.sets(st.sampled_from(BUNDLES), max_size=3),
)
def test_instantaneous(seen: list[View], settings: Settings, whole: set[str]) -> None:
    plain, history = PlainInstantaneous(), SplitHistory()
    for view in seen:
        divides, history = split(view, history, settings, outside(view, whole))
        assert said(view, divides) == plain.split(view, settings, whole)
        assert history.hits.counts == plain.hits
