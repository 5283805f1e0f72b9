"""Another strategy beside the recorded one, and where two records differ."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from simulation.replay.batches import Replay
from simulation.replay.difference import unlike_rounds
from simulation.replay.run import ReplayCycle
from simulation.replay.shadowed import ShadowedCluster, with_shadow
from sources.records import Record
from tests.support.clusters_by_rows import AVG, rounds_in, skewed
from tests.support.recorded_batches import batch, held
from tests.support.reports import bundle
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings
from trimtab.state.memory import Memory
from trimtab.wire import keys
from trimtab.wire.planned import PlannedMove

QUARTERS = [bundle(i) for i in range(4)]
SETTINGS = Settings.parse(AVG)


def test_a_shadow_is_compared_whatever_intents_say() -> None:
    replay = Replay(IntakeSettings(), SETTINGS, made=partial(ShadowedCluster, shadow="overload"))
    intent = b'{"id":"i","kind":"settings","cluster":"c","settings":{"avg.low_hits":2}}'
    replay.run(10_000, [Record(keys.CONTROL, 0, 0, 0, b"c", intent)])
    settings = replay.clusters["c"].settings
    assert (settings.shadow.shedding, settings.avg.low_hits) == ("overload", 2)
    assert settings.round == SETTINGS.round


def test_a_round_says_what_the_shadow_would_have_done() -> None:
    it = ShadowedCluster("c", {}, {}, Memory(), SETTINGS, shadow="overload")
    it.receive(skewed(QUARTERS), 0)
    [record] = rounds_in([it.hold_round(5000)])
    assert record.shadow
    champion, challenger = record.shadow.champion, record.shadow.challenger
    assert (champion.strategy, champion.moves) == ("avg", len(record.moves))
    assert (challenger.strategy, challenger.moves) == ("overload", 1)


@pytest.mark.parametrize(
    ("before", "strategy", "placement"),
    [
        ("avg", "avg", "avg"),
        ("least-long-term-rate", "avg", "avg"),
        ("round-robin", "overload", "round-robin"),
        ("avg", "overload", "least-long-term-rate"),
    ],
)
def test_a_shadow_gets_the_placement_that_goes_with_it(
    before: str, strategy: str, placement: str
) -> None:
    shedding = "avg" if before == "avg" else "threshold"
    settings = Settings.parse({"round.shedding": shedding, "round.placement": before})
    found = with_shadow(settings, strategy)
    assert (found.shadow.shedding, found.shadow.placement) == (strategy, placement)
    assert found.round == settings.round


def test_a_strategy_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSettings, match=r"shadow\.shedding: must be one of"):
        with_shadow(SETTINGS, "fastest")


def test_rounds_that_differ_are_told_by_the_first_member_that_does() -> None:
    moves = tuple(
        PlannedMove(bundle=name, source="a", destination="b", reason="r", epoch=(1, 1))
        for name in QUARTERS[:2]
    )
    again = msgspec.structs.replace(held("e"), moves=moves)
    other = msgspec.structs.replace(
        again, moves=(moves[0], msgspec.structs.replace(moves[1], destination="c"))
    )
    [difference] = unlike_rounds(ReplayCycle(batch(3), {"e": again}, {"e": other}, 0))
    assert difference.subject == "e, round 1, moves[1], destination"
    assert (difference.batch, difference.recorded, difference.again) == (3, "b", "c")


def test_another_memory_is_told_only_where_all_that_was_decided_is_the_same() -> None:
    remembered = msgspec.structs.replace(held("e"), state_hash="1")
    [difference] = unlike_rounds(ReplayCycle(batch(3), {"e": held("e")}, {"e": remembered}, 0))
    assert (difference.subject, difference.decided_alike) == ("e, round 1, stateHash", True)
    decided = msgspec.structs.replace(remembered, gone=("a",))
    [difference] = unlike_rounds(ReplayCycle(batch(3), {"e": held("e")}, {"e": decided}, 0))
    assert (difference.subject, difference.decided_alike) == ("e, round 1, gone[0]", False)


def test_a_round_on_one_side_alone_is_a_difference() -> None:
    [difference] = unlike_rounds(ReplayCycle(batch(3), {}, {"e": held("e")}, 0))
    assert (difference.subject, difference.recorded) == ("e, round 1", "nothing")
    assert list(unlike_rounds(ReplayCycle(batch(3), {"e": held("e")}, {"e": held("e")}, 0))) == []
