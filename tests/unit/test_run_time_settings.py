"""Settings that intents change and reset while the job runs, and the rounds that follow."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.clusters_by_rows import cluster, held, said, skewed, snapshot_row
from tests.support.reports import bundle
from trimtab.cluster.operator import Cluster
from trimtab.settings import Value
from trimtab.state.memory import Memory
from trimtab.wire.columns import pack, unpack
from trimtab.wire.intent import IntentKind
from trimtab.wire.rows import DeadLetter, Row, Tag

QUARTERS = [bundle(i) for i in range(4)]
SHEDDING = "loadBalancerLoadSheddingStrategy"
PLACEMENT = "loadBalancerLoadPlacementStrategy"


def change(**values: Value) -> Row:
    return said(IntentKind.SETTINGS, settings={n.replace("__", "."): v for n, v in values.items()})


def reset(*names: str) -> Row:
    return said(IntentKind.RESET, names=names)


def letters(rows: list[Row]) -> list[DeadLetter]:
    return [
        msgspec.json.decode(r.payload, type=DeadLetter) for r in rows if r.tag == Tag.DEAD_LETTER
    ]


def refusal(it: Cluster, row: Row) -> DeadLetter:
    before = it.memory.overrides
    (letter,) = letters(it.receive([row], 0)[1])
    assert it.memory.overrides == before
    return letter


def restarted(it: Cluster) -> Cluster:
    """The cluster as a job that starts again finds it."""
    memory = unpack(pack(it.memory), Memory)
    return Cluster(it.name, {**it.snapshots}, {**it.namespaces}, memory, it.defaults)


def test_either_spelling_changes_a_setting_and_the_later_one_counts() -> None:
    it = cluster()
    it.receive([change(round__grace_period=60)], 0)
    it.receive([change(loadBalancerSheddingGracePeriodMinutes=5)], 0)
    assert it.settings.round.grace_period == 300.0
    it.receive([change(round__grace_period=90)], 0)
    assert it.settings.round.grace_period == 90.0
    assert it.memory.overrides == {"round.grace_period": 90.0}


def test_of_an_aim_and_a_number_the_later_one_counts() -> None:
    it = cluster({"planner.target": 0.07})
    it.receive([change(planner__aim="calm")], 0)
    assert it.settings.planner.target == 0.15
    it.receive([change(planner__target=0.1)], 0)
    assert it.memory.overrides == {"planner.target": 0.1}
    it.receive([change(planner__aim="tight")], 0)
    assert it.memory.overrides == {"planner.target": 0.02}
    it.receive([reset("planner.aim")], 0)
    assert it.settings.planner.target == 0.07


def test_a_change_that_an_earlier_version_kept_under_pulsars_key_is_replaced() -> None:
    it = cluster()
    it.memory = Memory(overrides={"loadBalancerSheddingGracePeriodMinutes": 5})
    it.receive([change(round__grace_period=90)], 0)
    assert it.memory.overrides == {"round.grace_period": 90.0}


def test_one_setting_or_all_return_to_what_the_job_was_started_with() -> None:
    it = cluster({"round.grace_period": 7.0})
    it.receive([change(round__grace_period=60, round__max_moves=3, round__silence=9)], 0)
    it.receive([reset("loadBalancerSheddingGracePeriodMinutes")], 0)
    assert it.memory.overrides == {"round.max_moves": 3, "round.silence": 9.0}
    assert it.settings.round.grace_period == 7.0
    it.receive([reset()], 0)
    assert it.settings == it.defaults
    assert it.memory.settings_version == 3


def test_a_setting_that_no_longer_exists_can_be_reset() -> None:
    it = cluster()
    it.memory = Memory(overrides={"round.no_more": 1})
    it.receive([reset("round.no_more")], 0)
    assert it.memory.overrides == {}


def test_a_set_is_checked_together_and_all_its_problems_are_told_at_once() -> None:
    it = cluster()
    wrong = {
        "round.max_moves": -1,
        "round.sheding": "avg",
        "intake.half_life": 1.0,
        "avg.low_threshold": 90.0,
    }
    letter = refusal(it, said(IntentKind.SETTINGS, settings=wrong))
    assert (letter.reason, letter.rule) == ("refused-intent", "fixed-setting")
    assert letter.detail.startswith(
        "intake.half_life: is fixed while the job runs; change [intake]"
    )
    assert "; round.max_moves: must be from 0 to" in letter.detail
    assert "did you mean round.shedding?" in letter.detail
    assert "avg.low_threshold: must not be above avg.high_threshold" in letter.detail


def test_what_contradicts_an_earlier_change_is_refused() -> None:
    it = cluster()
    it.receive([change(avg__high_threshold=50.0)], 0)
    it.receive([change(avg__low_threshold=45.0)], 0)
    letter = refusal(it, change(avg__high_threshold=40.0))
    assert letter.rule == "invalid-setting"
    assert letter.detail == "avg.low_threshold: must not be above avg.high_threshold"


def test_a_reset_that_leaves_a_contradiction_is_refused_and_the_pair_together_is_not() -> None:
    it = cluster()
    it.receive(
        [change(**{SHEDDING: "a.ThresholdShedder", PLACEMENT: "LeastResourceUsageWithWeight"})], 0
    )
    assert refusal(it, reset(SHEDDING)).detail.startswith("round.placement: avg placement")
    it.receive([reset("round.shedding", PLACEMENT)], 0)
    assert it.settings == it.defaults


@pytest.mark.parametrize(
    ("row", "rule", "says"),
    [
        (reset("round.sheding"), "invalid-setting", "round.sheding: no such setting"),
        (reset("round.intervall"), "invalid-setting", "did you mean round.interval?"),
        (reset("intake.nonsense"), "invalid-setting", "intake.nonsense: no such setting; there is"),
        (reset("intake.half_life"), "fixed-setting", "is fixed while the job runs"),
        (change(), "no-subject", "says nothing"),
    ],
)
def test_what_cannot_be_changed_or_reset_is_refused(row: Row, rule: str, says: str) -> None:
    letter = refusal(cluster(), row)
    assert letter.rule == rule
    assert says in letter.detail


def test_an_old_spelling_that_would_not_be_read_is_refused() -> None:
    it = cluster({"weights.bandwidth_in": 0.5})
    letter = refusal(it, change(loadBalancerBandwithInResourceWeight=0.7))
    assert "not read while weights.bandwidth_in is set" in letter.detail


def test_a_rounds_record_tells_the_changed_settings() -> None:
    it = cluster()
    it.receive([change(loadBalancerSheddingGracePeriodMinutes=5), *skewed(QUARTERS)], 0)
    assert held(it, 1000).overrides == {"round.grace_period": 300.0}


def test_another_strategy_decides_from_the_next_round_on_and_after_a_restart() -> None:
    it = cluster({"avg.high_hits": 9, "round.grace_period": 0.0})
    it.receive(skewed(QUARTERS), 0)
    assert (held(it, 1000).strategy, held(it, 2000).moves) == ("avg", ())
    it.receive([change(**{SHEDDING: "overload", PLACEMENT: "least-long-term-rate"})], 3000)
    again = restarted(it)
    for each in (it, again):
        record = held(each, 4000)
        assert (record.strategy, record.placement) == ("overload", "least-long-term-rate")
        assert record.moves
        assert {move.reason for move in record.moves} == {"overloaded"}
    assert again.memory == it.memory
    assert restarted(again).settings.round.shedding == "overload"


def test_hits_in_a_row_do_not_count_across_another_strategy() -> None:
    """Two hits, another strategy, and avg again: a third hit would have made it act."""
    it = cluster({"avg.high_hits": 3})
    it.receive(skewed(QUARTERS), 0)
    held(it, 1000)
    held(it, 2000)
    it.receive([change(**{SHEDDING: "threshold", PLACEMENT: "least-long-term-rate"})], 3000)
    assert held(it, 3000).moves == ()
    it.receive([reset()], 4000)
    moved = [bool(held(restarted(it), 4000).moves)]
    held(it, 4000)
    held(it, 5000)
    moved.append(bool(held(it, 6000).moves))
    assert moved == [False, True]


def test_averages_start_again_when_their_strategy_returns() -> None:
    """Threshold's average is of its own rounds: one that it missed for hours is no average."""
    it = cluster(
        {
            "round.shedding": "threshold",
            "round.placement": "least-long-term-rate",
            "round.max_moves": 1,
            "weights.history": 0.9,
        }
    )
    it.receive(skewed(QUARTERS), 0)
    held(it, 1000)
    it.receive([change(round__shedding="overload")], 1000)
    held(it, 2000)
    it.receive([snapshot_row("a:1", dict.fromkeys(QUARTERS, 1.0), cpu=10.0, at_ms=3000)], 3000)
    it.receive([reset()], 3000)
    held(it, 4000)
    assert it.memory.round.histories.threshold.usage == pytest.approx({"a:1": 0.1, "b:1": 0.1})
