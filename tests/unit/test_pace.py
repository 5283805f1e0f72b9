"""How long a broker may be silent: learned from when its reports come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters_by_rows import cluster, snapshot_row
from trimtab.settings import RoundSettings, Settings
from trimtab.state.liveness import Liveness, heard
from trimtab.state.memory import Memory
from trimtab.state.pace import Pace, allowed_silence, learn_pace
from trimtab.wire.columns import pack, unpack

ROUND = RoundSettings()


def learned(gaps: Iterable[float], known: Pace | None = None) -> Pace:
    for gap in gaps:
        known = learn_pace(known, round(1000 * gap), 1)
    assert known is not None
    return known


def too_long(gaps: Iterable[float], known: Pace | None = None) -> int:
    """How many of the gaps between reports (s) take the broker out of the view."""
    times = 0
    for gap in gaps:
        times += gap > allowed_silence(known, ROUND)
        known = learn_pace(known, round(1000 * gap), 1)
    return times


def arrivals(every: float, lost: float, late: float, seed: int) -> list[float]:
    """Gaps (s) between those of 2,000 reports that arrive before any newer one."""
    rng = np.random.default_rng(seed)
    made = every * np.arange(2000)
    arrives = np.where(rng.random(2000) < lost, np.inf, made + late * rng.random(2000))
    newest = np.minimum.accumulate(arrives[::-1])[::-1]
    gaps: list[float] = np.diff(np.unique(newest[np.isfinite(newest)])).tolist()
    return gaps


@pytest.mark.parametrize("every", [5.0, 30.0, 60.0, 180.0])
@pytest.mark.parametrize(("lost", "intervals"), [(0.0, 0), (0.2, 0), (0.2, 3)])
def test_reports_that_are_lost_or_late_take_no_broker_out_of_the_view(
    every: float, lost: float, intervals: int
) -> None:
    assert too_long(arrivals(every, lost, intervals * every, seed=1)) == 0


@pytest.mark.parametrize("every", [30.0, 60.0, 180.0])
def test_a_broker_that_reports_evenly_is_silent_after_a_few_of_its_intervals(every: float) -> None:
    pace = learned([every] * 100)
    assert 3 * every <= allowed_silence(pace, ROUND) <= 4 * every


@pytest.mark.parametrize("every", [30.0, 60.0, 180.0])
def test_however_reports_are_lost_silence_is_bounded(every: float) -> None:
    pace = learned(arrivals(every, 0.2, 3 * every, seed=2))
    assert allowed_silence(pace, ROUND) <= 12 * pace.mean / 1000 <= 24 * every


def test_a_broker_that_reports_often_is_silent_as_the_setting_says() -> None:
    assert allowed_silence(learned([5.0] * 100), ROUND) == ROUND.silence


def test_no_broker_may_be_silent_until_it_is_forgotten() -> None:
    assert allowed_silence(learned([3000.0] * 9), ROUND) == ROUND.forget


@pytest.mark.parametrize(("before", "after"), [(5.0, 60.0), (60.0, 5.0), (60.0, 180.0)])
def test_a_new_interval_is_learned_at_once(before: float, after: float) -> None:
    pace = learned([before] * 100)
    assert too_long([after] * 100, pace) == 0
    settled = learned([after] * 100, pace)
    assert allowed_silence(settled, ROUND) <= max(ROUND.silence, 4 * after)


def test_a_much_longer_interval_takes_a_broker_out_of_the_view_once() -> None:
    assert too_long([180.0] * 100, learned([5.0] * 100)) == 1


def test_a_backlog_does_not_count_as_silence() -> None:
    it = cluster()
    it.receive([snapshot_row("a:1", {}, at_ms=1_000)], 0)
    later = snapshot_row("a:1", {}, at_ms=3_601_000)._replace(accepted=720)
    it.receive([later], 0)
    assert it.memory.paces["a:1"].mean == pytest.approx(5_000)


def test_a_fleet_that_reports_each_minute_stays_in_view() -> None:
    it = cluster()
    for minute in range(5):
        it.receive([snapshot_row("a:1", {}, at_ms=60_000 * minute + 1)], 0)
        # b's report is a moment behind, and was there a minute ago only.
        seen = heard(it.memory.appended, it.memory.paces, it.settings)
        assert seen == (["a:1", "b:1"] if minute else ["a:1"])
        it.receive([snapshot_row("b:1", {}, at_ms=60_000 * minute)], 0)


def test_a_broker_whose_lease_ran_out_is_gone_however_slowly_it_reports() -> None:
    slow = {"a": Pace(180_000.0, 0.0)}
    appended = {"a": 1, "b": 60_001}
    assert heard(appended, slow, Settings()) == ["a", "b"]
    assert "a" in Liveness().lost("a", 1, 1).out_of_use(Settings().flapping, 1)


def test_a_checkpoint_without_paces_is_read() -> None:
    memory = replace(Memory(), appended={"a": 1})
    assert unpack(pack(memory), Memory).paces == {}
