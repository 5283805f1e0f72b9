"""Which bundles are divided, on clusters that can be worked out by hand.

Where Pulsar decides otherwise (docs/pulsar-differences.md), test_parity_triggers.py has its side.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.clusters import Broker, Bundle, view_of
from trimtab.settings import SPLIT_TRIGGERS, Settings
from trimtab.splitting.triggers import TRIGGERS
from trimtab.splitting.triggers.instantaneous import SplitHistory, split
from trimtab.state.round_state import Histories
from trimtab.view import View

MIB = 1048576.0
HUNDRED = {
    "split.max_topics": 100,
    "split.max_sessions": 100,
    "split.max_rate": 100,
    "split.max_throughput": 100 * MIB,
}
AT_LIMITS = Bundle(short=(50, 50, 50 * MIB, 50 * MIB), topics=100, sessions=100)
"""Exactly at every limit of HUNDRED; all comparisons are strict."""

TOPICS = replace(AT_LIMITS, topics=101)
SESSIONS = replace(AT_LIMITS, sessions=101)
MESSAGES = replace(AT_LIMITS, short=(50, 50.5, 50 * MIB, 50 * MIB))
TRAFFIC = replace(AT_LIMITS, short=(50, 50, 50 * MIB + 1, 50 * MIB))


def view(
    *bundles: Bundle, size: int | None = 4, namespace: str = "t/ns", splitting: str | None = None
) -> View:
    """Bundles 0, 1, ... of one namespace, each a sixteenth of the ring, in this order."""
    named = [
        replace(bundle, name=bundle.name or f"{namespace}/0x{i}0000000_0x{i + 1}0000000")
        for i, bundle in enumerate(bundles)
    ]
    sizes = {} if size is None else {namespace: size}
    holds = frozenset() if splitting is None else frozenset({splitting})
    return replace(view_of({"a": Broker(bundles=named)}), sizes=sizes, splitting=holds)


def divided(seen: View, **settings: object) -> list[int]:
    """Rows that the long-term trigger divides."""
    wanted = Settings.parse({**HUNDRED, **settings})
    divides, _ = TRIGGERS["long-term"](seen, None, wanted)
    return [divide.bundle for divide in divides]


class Rounds:
    """The instantaneous trigger, one round after another; without hits unless told."""

    def __init__(self, **settings: object) -> None:
        self.settings = Settings.parse({**HUNDRED, "split.hits": 0, **settings})
        self.history = SplitHistory()
        self.asked: list[int] = []

    def divided(self, seen: View, whole: tuple[int, ...] = ()) -> list[int]:
        """Rows divided; ``whole`` are those that turn out to be indivisible."""

        def divisible(row: int) -> bool:
            self.asked.append(row)
            return row not in whole

        divides, self.history = split(seen, self.history, self.settings, divisible)
        return [divide.bundle for divide in divides]

    @property
    def hits(self) -> list[int]:
        return list(self.history.hits.counts.values())


def test_the_names_are_those_of_the_settings() -> None:
    assert tuple(TRIGGERS) == SPLIT_TRIGGERS


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize(
    ("bundle", "reasons"),
    [
        pytest.param(AT_LIMITS, [], id="at every limit"),
        pytest.param(TOPICS, ["too-many-topics"], id="a topic more"),
        pytest.param(SESSIONS, ["too-many-sessions"], id="a session more"),
        pytest.param(MESSAGES, ["too-many-messages"], id="half a message a second more"),
        pytest.param(TRAFFIC, ["too-much-traffic"], id="a byte a second more"),
        pytest.param(
            Bundle(short=TRAFFIC.short, topics=2, sessions=101), ["too-many-sessions"], id="first"
        ),
        pytest.param(replace(SESSIONS, topics=1), [], id="one topic cannot be divided"),
        pytest.param(replace(TOPICS, movable=False), [], id="what may not move is left whole"),
    ],
)
def test_limits(trigger: str, bundle: Bundle, reasons: list[str]) -> None:
    settings = Settings.parse({**HUNDRED, "split.hits": 0})
    divides, _ = TRIGGERS[trigger](view(bundle), Histories().of(trigger), settings)
    assert [divide.reason for divide in divides] == reasons


@pytest.mark.parametrize("limit", [0, -1])
def test_sessions_need_not_be_counted(limit: int) -> None:
    assert divided(view(SESSIONS), **{"split.max_sessions": limit}) == []
    assert Rounds(**{"split.max_sessions": limit}).divided(view(SESSIONS)) == []


def test_each_trigger_judges_its_own_rates() -> None:
    peak = Bundle(short=(200, 0, 0, 0), long=(1, 0, 0, 0), topics=2)
    habit = Bundle(short=(1, 0, 0, 0), long=(200, 0, 0, 0), topics=2)
    assert divided(view(peak, habit)) == [1]
    assert Rounds().divided(view(peak, habit)) == [0]


@pytest.mark.parametrize(
    ("size", "rows"),
    [
        pytest.param(4, [0, 1, 2], id="room for all"),
        pytest.param(6, [0, 1], id="the first get the last two places"),
        pytest.param(8, [], id="full"),
        pytest.param(9, [], id="more than full"),
        pytest.param(None, [], id="of unknown size"),
    ],
)
def test_a_namespace_has_a_maximum(size: int | None, rows: list[int]) -> None:
    seen = view(TOPICS, TOPICS, TOPICS, size=size)
    assert divided(seen, **{"split.max_bundles": 8}) == rows
    assert Rounds(**{"split.max_bundles": 8}).divided(seen) == rows


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_the_maximum_is_one_for_the_bundles_of_all_brokers(trigger: str) -> None:
    """Item 003-12: each of the owners alone would see room."""
    named = [replace(TOPICS, name=f"t/ns/0x{i}0000000_0x{i + 1}0000000") for i in range(2)]
    view = view_of({"a": Broker(bundles=named[:1]), "b": Broker(bundles=named[1:])})
    settings = Settings.parse({**HUNDRED, "split.hits": 0, "split.max_bundles": 8})
    for size, rows in ((6, [0, 1]), (7, [0])):
        seen = replace(view, sizes={"t/ns": size})
        divides, _ = TRIGGERS[trigger](seen, Histories().of(trigger), settings)
        assert [divide.bundle for divide in divides] == rows


def test_another_namespace_has_places_of_its_own() -> None:
    other = replace(TOPICS, name="t/other/0x00000000_0x80000000")
    seen = replace(view(TOPICS, other), sizes={"t/ns": 8, "t/other": 7})
    assert divided(seen, **{"split.max_bundles": 8}) == [1]


@pytest.mark.parametrize("hot", [TOPICS, SESSIONS, MESSAGES, TRAFFIC])
def test_one_a_round_after_three_hits(hot: Bundle) -> None:
    """Acceptance case E12: two hot bundles, the first in call 4 and the second in call 5."""
    rounds = Rounds(**{"split.hits": 3, "split.max_per_round": 1})
    seen = view(hot, hot)
    assert [rounds.divided(seen) for _ in range(5)] == [[], [], [], [0], [1]]


def test_a_quiet_round_forgets_the_hits() -> None:
    rounds = Rounds(**{"split.hits": 1})
    seen = [view(TOPICS), view(AT_LIMITS), view(TOPICS), view(TOPICS)]
    assert [rounds.divided(each) for each in seen] == [[], [], [], [0]]


@pytest.mark.parametrize(
    "unjudged",
    [
        pytest.param(replace(TOPICS, topics=1), id="one topic"),
        pytest.param(replace(AT_LIMITS, movable=False), id="not movable"),
    ],
)
def test_a_round_that_does_not_judge_keeps_the_hits(unjudged: Bundle) -> None:
    rounds = Rounds(**{"split.hits": 1})
    assert [rounds.divided(view(each)) for each in (TOPICS, unjudged, TOPICS)] == [[], [], [0]]


def test_a_bundle_that_left_is_forgotten() -> None:
    rounds = Rounds(**{"split.hits": 1})
    assert [rounds.divided(each) for each in (view(TOPICS), view(), view(TOPICS))] == [[], [], []]
    assert rounds.hits == [1]


def test_past_the_cap_nothing_is_looked_at() -> None:
    """Neither is the last one counted, nor are the hits of one that is quiet now forgotten."""
    rounds = Rounds(**{"split.hits": 1, "split.max_per_round": 1})
    rounds.divided(view(TOPICS, TOPICS, TOPICS))
    assert rounds.divided(view(TOPICS, TOPICS, AT_LIMITS)) == [0]
    assert rounds.hits == [1, 1]


def test_a_cap_of_zero_is_none() -> None:
    assert Rounds(**{"split.max_per_round": 0}).divided(view(*[TOPICS] * 4)) == [0, 1, 2, 3]


def test_an_indivisible_bundle_takes_no_place_and_keeps_its_hits() -> None:
    rounds = Rounds(**{"split.max_bundles": 5, "split.max_per_round": 1})
    assert rounds.divided(view(TOPICS, TOPICS), whole=(0,)) == [1]
    assert rounds.hits == [1]


def test_only_of_what_would_be_divided_it_is_asked_whether_it_can_be() -> None:
    """Bundle 0 is itself being divided, 1 is quiet, 2 gets the last place, 3 finds none."""
    seen = view(TOPICS, AT_LIMITS, TOPICS, TOPICS, splitting="t/ns/0x00000000_0x10000000")
    rounds = Rounds(**{"split.max_bundles": 5})
    assert rounds.divided(seen) == rounds.asked == [2]


def test_a_range_of_one_position_is_neither_divided_nor_counted() -> None:
    rounds = Rounds()
    one = replace(TOPICS, name="t/ns/0x00000000_0x00000001")
    two = replace(TOPICS, name="t/ns/0x00000001_0x00000003")
    assert rounds.divided(view(one, two)) == [1]
    assert rounds.hits == []


@pytest.mark.parametrize(
    ("splitting", "rows"),
    [
        pytest.param("t/ns/0x00000000_0x10000000", [1, 2], id="itself"),
        pytest.param("t/ns/0x00000000_0x20000000", [2], id="the parent of two"),
        pytest.param("t/ns/0x20000000_0x40000000", [0, 1], id="the parent, other half not seen"),
        pytest.param("t/ns/0x10000001_0x2fffffff", [0, 1, 2], id="no end in common"),
        pytest.param("t/other/0x00000000_0x20000000", [0, 1, 2], id="another namespace"),
        pytest.param("t/ns1/0x00000000_0x20000000", [0, 1, 2], id="a longer name"),
    ],
)
def test_halves_wait_until_their_parent_is_divided(splitting: str, rows: list[int]) -> None:
    rounds = Rounds()
    assert rounds.divided(view(TOPICS, TOPICS, TOPICS, splitting=splitting)) == rows
    assert rounds.hits == [1] * (3 - len(rows))


@pytest.mark.parametrize("mebibytes", [2047, 2048, 4096])
def test_a_high_limit_divides_nothing(mebibytes: int) -> None:
    """Acceptance case E15: Pulsar's product of ints would be negative, or 0."""
    limit = {"loadBalancerNamespaceBundleMaxBandwidthMbytes": mebibytes, "split.hits": 0}
    settings = Settings.parse(limit)
    seen = view(Bundle(short=(0, 0, 2000 * MIB, 0), topics=2))
    assert TRIGGERS["long-term"](seen, None, settings)[0] == []
    assert TRIGGERS["instantaneous"](seen, SplitHistory(), settings)[0] == []
