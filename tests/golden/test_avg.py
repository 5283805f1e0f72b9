"""AvgShedder on clusters whose answer can be worked out by hand (Pulsar's own numbers)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.clusters import Broker, cluster, rates
from trimtab.arrays import RATE_IN
from trimtab.filters.request import Projection
from trimtab.placement.avg import Avg
from trimtab.plan import Plan
from trimtab.reasons import Reason, Rule
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.shedding.avg import AvgHistory, shed
from trimtab.state.round_state import RoundState
from trimtab.view import View

AVG = {"round.shedding": "avg", "round.placement": "avg"}


def busy(usage: float, sizes: Sequence[float], rate: float) -> Broker:
    """A broker with bundles of these message rates that itself reports ``rate``."""
    return Broker(usage, rates(*sizes), traffic=(rate, 0, 0, 0))


def quiet(usage: float, rate: float = 2000) -> Broker:
    return Broker(usage, traffic=(rate, 0, 0, 0))


def moves(
    view: View, history: AvgHistory, settings: Settings
) -> tuple[list[tuple[float, str, str]], AvgHistory]:
    """(message rate, source, destination) of every wish."""
    sheds, history = shed(view, history, settings)
    names = view.brokers.names
    said = [
        (
            float(view.bundles.short[RATE_IN, s.bundle]),
            names[s.source],
            names[-1 if s.destination is None else s.destination],
        )
        for s in sheds
    ]
    return said, history


def second_round(view: View, **settings: object) -> tuple[Plan, RoundState]:
    """After a first that moves nothing."""
    chosen, state = Settings.parse(AVG | settings), RoundState()
    first, state = decide(view, state, chosen, 0, np.random.default_rng(1))
    assert first == Plan(skipped=Rule.NO_PROPOSAL, summary=first.summary)
    return decide(view, state, chosen, 0, np.random.default_rng(1))


DOCUMENTED = cluster(
    b20=Broker(0.20, rates(*[50] * 10)),
    b30=Broker(0.30, rates(*[50] * 10)),
    b52=Broker(0.52, rates(*[50] * 12)),
    b70=Broker(0.70, rates(*[50] * 18)),
    b80=Broker(0.80, rates(*[50] * 20)),
)
"""Brokers scoring 20, 30, 52, 70 and 80; 1000 msg/s on the hottest, 500 on the coldest."""


def test_documented_example() -> None:
    """Items 003-41 and 003-42: 250 msg/s of the hottest go to the coldest, and both have 750.

    80 - 20 is a high hit. 70 - 30 is not: in binary32 it is 39.999998. On the second round half of
    the 500 msg/s between the outer pair moves, five bundles of 50.
    """
    plan, state = second_round(DOCUMENTED, maxUnloadPercentage=0.5, minUnloadMessage=100)
    assert [(m.source, m.destination, m.reason) for m in plan.moves] == [
        ("b80", "b20", Reason.HIGH_PAIR)
    ] * 5
    assert state.histories.avg.low.counts == {"b30": 2, "b70": 2}
    assert state.histories.avg.high.counts == {}


def test_the_documented_example_moves_nothing_by_default() -> None:
    """Item 003-42: 250 msg/s are below minUnloadMessage, which is 1000 in Pulsar too."""
    plan, _ = second_round(DOCUMENTED, maxUnloadPercentage=0.5)
    assert plan.moves == ()


def test_two_high_hits_then_the_count_starts_again() -> None:
    """Acceptance case C7: half of 20000 - 2000 is 9000, ten bundles of 900."""
    view = cluster(hot=busy(0.8, [900] * 11, 20000), cold=quiet(0.3), mid=quiet(0.5))
    settings, history = Settings.parse(AVG | {"maxUnloadPercentage": 0.5}), AvgHistory()
    said = []
    for _ in range(3):
        wishes, history = moves(view, history, settings)
        said.append(wishes)
    assert said == [[], [(900.0, "hot", "cold")] * 10, []]
    assert history.high.counts == {"hot": 1, "cold": 1}


def test_eight_low_hits() -> None:
    """Acceptance case C8: a fifth of 20000 - 2000 is 3600, four bundles of 900."""
    view = cluster(hot=busy(0.6, [900] * 11, 20000), cold=quiet(0.4))
    history, said = AvgHistory(), []
    for _ in range(8):
        wishes, history = moves(view, history, Settings.parse(AVG))
        said.append(len(wishes))
    assert said == [0, 0, 0, 0, 0, 0, 0, 4]


def test_a_low_hit_in_between_starts_the_high_count_again() -> None:
    """Acceptance case C9."""
    history, said, high, low = AvgHistory(), [], [], []
    for usage in (0.8, 0.6, 0.8, 0.8):
        view = cluster(hot=busy(usage, [900] * 11, 20000), cold=quiet(0.3))
        wishes, history = moves(view, history, Settings.parse(AVG))
        said.append(len(wishes))
        high.append(history.high.counts.get("hot"))
        low.append(history.low.counts.get("hot"))
    assert said == [0, 0, 0, 4]
    assert high == [1, None, 1, None]
    assert low == [1, 2, 3, None]


def test_an_even_round_in_between_starts_the_low_count_again() -> None:
    """Item 003-48: seven hits, an even round, then eight more are needed."""
    history, said = AvgHistory(), []
    for usage in [0.6] * 7 + [0.45] + [0.6] * 8:
        view = cluster(hot=busy(usage, [900] * 11, 20000), cold=quiet(0.4))
        wishes, history = moves(view, history, Settings.parse(AVG))
        said.append(len(wishes))
    assert said == [0] * 15 + [4]


def test_hits_are_spent_even_when_too_little_would_move() -> None:
    """Acceptance case C10: a fifth of 3000 msg/s is below the floor of 1000.

    The bytes/s do not differ.
    """
    view = cluster(hot=busy(0.8, [900], 5000), cold=quiet(0.3))
    history = AvgHistory()
    for _ in range(2):
        wishes, history = moves(view, history, Settings.parse(AVG))
        assert wishes == []
    assert history == AvgHistory()


@pytest.mark.parametrize(
    ("sizes", "rate", "taken"),
    [
        pytest.param(
            [5000, 3000, 900, 700, 300, 0],
            11000,
            [900, 700],
            id="C11: 1800: 200 left, 300 is too big",
        ),
        pytest.param([3600], 21000, [3600], id="C12: 3800: Pulsar takes even a sole bundle"),
    ],
)
def test_bundles_are_taken_while_they_fit(
    sizes: list[float], rate: float, taken: list[float]
) -> None:
    """Acceptance cases C11 and C12."""
    view = cluster(hot=busy(0.8, sizes, rate), cold=quiet(0.3))
    settings = Settings.parse(AVG | {"avg.high_hits": 1})
    wishes, _ = moves(view, AvgHistory(), settings)
    assert wishes == [(size, "hot", "cold") for size in taken]


def test_the_round_keeps_the_sole_bundle() -> None:
    view = cluster(hot=busy(0.8, [3600], 21000), cold=quiet(0.3))
    settings = Settings.parse(AVG | {"avg.high_hits": 1})
    plan, _ = decide(view, RoundState(), settings, 0, np.random.default_rng(1))
    assert plan.moves == ()
    assert [refusal.rule for refusal in plan.refusals] == [Rule.LAST_BUNDLE]


def test_pairs_act_one_by_one_from_the_outside() -> None:
    """Acceptance case C13: 80 with 30 and 75 with 35, as C7 each."""
    view = cluster(
        a=busy(0.80, [900] * 11, 20000),
        b=busy(0.75, [900] * 11, 20000),
        y=quiet(0.35),
        z=quiet(0.30),
    )
    settings = Settings.parse(AVG | {"maxUnloadPercentage": 0.5})
    early, history = moves(view, AvgHistory(), settings)
    wishes, _ = moves(view, history, settings)
    assert early == []
    assert wishes == [(900.0, "a", "z")] * 10 + [(900.0, "b", "y")] * 10


def test_the_middle_broker_is_its_own_peer_when_every_gap_counts() -> None:
    view = cluster(a=0.2, b=0.3, c=0.4)
    settings = Settings.parse(AVG | {"avg.low_threshold": 0.0})
    _, history = moves(view, AvgHistory(), settings)
    assert history.low.counts == {"a": 1, "b": 2, "c": 1}


def test_hits_of_brokers_that_left_are_forgotten() -> None:
    """Pulsar keeps them: a broker that returns would be shed on its first high reading."""
    settings = Settings.parse(AVG | {"avg.high_hits": 5})
    _, history = moves(cluster(hot=0.8, cold=0.2), AvgHistory(), settings)
    _, history = moves(cluster(hot=0.8, other=0.2), history, settings)
    assert history.high.counts == {"hot": 2, "other": 1}


def placed(view: View, bundle: str, candidates: list[int], history: AvgHistory) -> list[int]:
    placer = Avg(Projection(view), history, Settings())
    best: list[int] = placer.best(bundle, np.array(candidates)).tolist()
    return best


def test_placement_follows_the_plan_while_the_target_is_a_candidate() -> None:
    view = cluster(a=0.8, b=0.5, c=0.2)
    history = AvgHistory(targets={"t/a/0x00000000_0x00000001": "c"})
    bundle = "t/a/0x00000000_0x00000001"
    assert placed(view, bundle, [0, 1, 2], history) == [2]
    assert placed(view, bundle, [0, 1], history) == [0, 1]
    assert placed(view, "t/a/0x00000001_0x00000002", [0, 1, 2], history) == [0, 1, 2]


def test_bundles_with_equal_numbers_keep_their_own_targets() -> None:
    """Pulsar's plan is keyed by a bundle's numbers: both of these would go to the last one's."""
    view = cluster(
        a=busy(0.80, [900] * 2, 20000),
        b=busy(0.75, [900] * 2, 20000),
        y=quiet(0.35),
        z=quiet(0.30),
    )
    settings = Settings.parse(AVG | {"avg.high_hits": 1})
    _, history = moves(view, AvgHistory(), settings)
    assert sorted(history.targets.values()) == ["y", "y", "z", "z"]
