"""Leaps that came back make the next ones wait; leaps that last do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from trimtab.load_model.estimating.bundle_leaps import expect_levels, record_leaps
from trimtab.load_model.estimating.doubted_leaps import are_in_event
from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.leap_record import LeapRecord, open_leaps
from trimtab.load_model.estimating.sampling import follow_samples

COUNT = 50
MINUTE_MS = 60_000
HALF_LIFE_S = 1800.0
BOUND = 6.0


class Fleet:
    """Fifty bundles, each with a hundredth more or less of its load from one minute to the next, or
    as much as ``noise`` says."""

    def __init__(self, noise: float = 0.01) -> None:
        self.noise, self.count = noise, COUNT
        self.estimates, self.record = Estimates(), LeapRecord()
        self.minute = 0
        self._rng = np.random.default_rng(3)

    def run(self, minutes: int, times: float = 1.0, bundles: Sequence[int] = ()) -> None:
        """So many minutes in which some bundles have so many times their load."""
        for _ in range(minutes):
            self.minute += 1
            load = np.exp(self.noise * self._rng.standard_normal(self.count))
            load[[*bundles]] *= times
            at_ms = np.full(self.count, self.minute * MINUTE_MS)
            samples = Samples(np.arange(self.count, dtype=np.uint64), load, at_ms)
            after = follow_samples(self.estimates, samples, HALF_LIFE_S, BOUND)
            before, self.estimates = self.estimates, after
            now_ms = self.minute * MINUTE_MS
            self.record = record_leaps(self.record, before, after, now_ms, MINUTE_MS)

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        now_ms = self.minute * MINUTE_MS
        found = expect_levels(self.record, self.estimates, now_ms, MINUTE_MS)
        return found.level, found.passing


def test_a_fleet_whose_leaps_came_back_waits_for_longer_than_they_took() -> None:
    fleet = Fleet()
    fleet.run(10)
    for bundle in range(5):
        fleet.run(10, 3.0, [bundle])
        fleet.run(10)
    assert 600 < fleet.record.wait_s <= 1920
    fleet.run(3, 3.0, [9])
    level, passing = fleet.expected()
    assert np.flatnonzero(passing).tolist() == [9]
    np.testing.assert_allclose(level[9], 1 / COUNT, rtol=0.05)
    fleet.run(40, 3.0, [9])
    assert not fleet.expected()[1].any()


def test_a_bundle_first_seen_in_a_burst_counts_calm_once_it_is_calm_for_longer() -> None:
    """It does not count with its burst for as long as the fleet's bursts are waited for."""
    fleet = Fleet()
    fleet.run(4, 3.0, [0])
    fleet.run(6)
    for bundles in ([1], [1, 2], [2, 3], [3]):
        fleet.run(9, 3.0, bundles)
    fleet.run(3)
    assert fleet.record.wait_s == 3840
    level, passing = fleet.expected()
    assert not passing.any()
    assert level[0] == pytest.approx(1 / COUNT, rel=0.1)


def test_a_dip_is_waited_out_as_a_burst_is() -> None:
    fleet = Fleet()
    fleet.run(10)
    for bundle in range(5):
        fleet.run(10, 1 / 3, [bundle])
        fleet.run(10)
    fleet.run(8, 1 / 3, [9])
    level, passing = fleet.expected()
    assert np.flatnonzero(passing).tolist() == [9]
    assert level[9] == pytest.approx(1 / COUNT, rel=0.05)


def test_one_leap_that_came_back_proves_nothing() -> None:
    fleet = Fleet()
    fleet.run(10)
    fleet.run(10, 3.0, [0])
    fleet.run(10)
    fleet.run(3, 3.0, [1, 2, 3])
    assert fleet.record.wait_s == 0
    assert not fleet.expected()[1].any()


def test_the_first_leap_of_a_fleet_waits_for_a_quarter_of_an_hour() -> None:
    fleet = Fleet()
    fleet.run(10)
    fleet.run(14, 3.0, [1])
    level, passing = fleet.expected()
    assert np.flatnonzero(passing).tolist() == [1]
    np.testing.assert_allclose(level[1], 1 / COUNT, rtol=0.05)
    fleet.run(3, 3.0, [1])
    assert not fleet.expected()[1].any()


def test_the_first_leap_down_is_believed_at_once() -> None:
    """What was known of its load may have been a burst that has passed."""
    fleet = Fleet()
    fleet.run(10)
    fleet.run(3, 0.3, [1])
    assert not fleet.expected()[1].any()


def test_leaps_that_come_one_after_another_are_no_event() -> None:
    fleet = Fleet()
    fleet.run(10)
    for count in range(1, 6):
        fleet.run(2, 3.0, range(count))
    assert fleet.expected()[1].sum() == 5


def test_leaps_that_keep_coming_are_no_event_however_short_the_fleet_was_watched() -> None:
    """Three a minute are many for an hour, and as many as ever for a fleet known for minutes."""
    fleet = Fleet()
    fleet.run(10)
    for count in range(3, 18, 3):
        fleet.run(1, 3.0, range(count))
    assert fleet.expected()[1].sum() == 15


def test_a_leap_begins_with_its_first_sample_and_not_when_it_is_found() -> None:
    """In a young fleet a shift takes several samples: what is found in one minute may have begun
    in several, and is no event then."""
    fleet = Fleet()
    fleet.run(5)
    fleet.run(1, 3.0, [1])
    assert not len(fleet.record.keys)
    fleet.run(6, 3.0, [1])
    assert fleet.record.since_ms.tolist() == [6 * MINUTE_MS]
    assert fleet.record.before[0] == pytest.approx(1 / COUNT, rel=0.05)


def test_what_leaps_soon_after_an_event_belongs_to_it() -> None:
    fleet = Fleet()
    fleet.run(10)
    fleet.run(2, 3.0, range(3))
    fleet.run(2, 3.0, range(4))
    assert not fleet.expected()[1].any()


def test_once_more_leaps_have_lasted_than_returned_one_by_itself_is_believed_at_once() -> None:
    fleet = Fleet()
    fleet.run(10)
    fleet.run(90, 3.0, [0])
    fleet.run(3, 3.0, [0, 1])
    assert not fleet.expected()[1].any()


def test_leaps_that_last_are_believed_at_once() -> None:
    fleet = Fleet()
    fleet.run(10)
    for count in range(1, 6):
        fleet.run(90, 3.0, range(count))
    assert fleet.record.wait_s == 0
    assert fleet.record.lasted > 3


def test_leaps_that_begin_together_count_as_one() -> None:
    fleet = Fleet()
    fleet.run(10)
    fleet.run(10, 3.0, range(10))
    fleet.run(10)
    np.testing.assert_allclose(sum(fleet.record.returned), 1.0, atol=0.01)
    assert fleet.record.wait_s == 0


def test_a_wait_ends_some_days_after_the_last_burst() -> None:
    fleet = Fleet()
    fleet.run(10)
    for bundle in range(3):
        fleet.run(10, 3.0, [bundle])
        fleet.run(10)
    assert fleet.record.wait_s > 0
    fleet.minute += 3 * 24 * 60
    fleet.run(1)
    assert fleet.record.wait_s == 0


def test_a_fleet_known_for_minutes_was_not_watched_while_no_leap_could_be_found() -> None:
    """Nine of fourteen leaps in two minutes are many for eleven minutes, and not for five."""
    minutes = np.array([3, 4, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7, 7]) * MINUTE_MS
    levels, keys = (np.ones(14), np.full(14, 3.0)), np.arange(14, dtype=np.uint64)
    record = open_leaps(LeapRecord(), keys, levels, minutes)
    assert not are_in_event(record, 660.0).any()
    assert are_in_event(record, 3840.0).any()


def test_a_job_that_runs_every_hour_is_waited_out_the_second_time() -> None:
    """Ten bundles leap together, which is an event; whatever others do, those ten were back after
    eight minutes the last time."""
    fleet = Fleet()
    fleet.run(30)
    fleet.run(8, 3.0, range(10))
    fleet.run(52)
    fleet.run(3, 3.0, range(1, 11))
    assert fleet.record.wait_s == 0
    level, passing = fleet.expected()
    assert np.flatnonzero(passing).tolist() == [*range(1, 10)]
    assert level[10] > 2 / COUNT
    fleet.run(20, 3.0, range(1, 11))
    assert not fleet.expected()[1].any()


def test_one_that_was_running_when_the_fleet_was_first_seen_has_passed_too() -> None:
    fleet = Fleet()
    fleet.run(8, 3.0, range(10))
    fleet.run(52)
    fleet.run(3, 3.0, range(10))
    assert np.flatnonzero(fleet.expected()[1]).tolist() == [*range(10)]


def test_what_leaps_the_other_way_than_it_did_is_believed() -> None:
    fleet = Fleet()
    fleet.run(30)
    fleet.run(8, 3.0, range(10))
    fleet.run(52)
    fleet.run(3, 1 / 3, range(10))
    assert not fleet.expected()[1].any()


@pytest.mark.parametrize("between", [0, 15])
def test_what_catches_up_on_a_dip_is_waited_out(between: int) -> None:
    """The consumers of ten bundles stop for twenty minutes, and then read what they missed."""
    fleet = Fleet()
    fleet.run(30)
    fleet.run(20, 0.3, range(10))
    fleet.run(between)
    fleet.run(3, 2.0, range(10))
    level, passing = fleet.expected()
    assert np.flatnonzero(passing).tolist() == [*range(10)]
    np.testing.assert_allclose(level, level.mean(), rtol=0.1)
    fleet.run(40, 2.0, range(10))
    assert not fleet.expected()[1].any()


def test_what_grows_long_after_a_dip_is_believed() -> None:
    fleet = Fleet()
    fleet.run(30)
    fleet.run(8, 0.3, range(10))
    fleet.run(20)
    fleet.run(3, 2.0, range(10))
    assert not fleet.expected()[1].any()


def test_what_leapt_for_good_is_forgotten_to_have_passed() -> None:
    fleet = Fleet()
    fleet.run(30)
    fleet.run(8, 3.0, range(10))
    fleet.run(20)
    fleet.run(80, 3.0, range(10))
    assert not len(fleet.record.passed.keys)


def test_levels_before_leaps_are_parts_of_the_traffic_of_now() -> None:
    """Twenty of fifty get three times as busy: what all others are a part of grows by four fifths,
    and what counts of each of the twenty is as much as of any other."""
    fleet = Fleet()
    fleet.run(30)
    fleet.run(8, 3.0, range(20))
    fleet.run(52)
    fleet.run(3, 3.0, range(20))
    level, passing = fleet.expected()
    assert passing.sum() == 20
    np.testing.assert_allclose(level, level.mean(), rtol=0.05)


def test_so_are_levels_before_leaps_that_others_follow() -> None:
    """One is waited for; as twenty others grow, what it counts shrinks as that of those at rest."""
    fleet = Fleet()
    fleet.run(30)
    fleet.run(2, 3.0, [0])
    fleet.run(2, 3.0, range(20))
    level, passing = fleet.expected()
    assert passing.tolist() == [True, *[False] * 49]
    assert level[0] == pytest.approx(level[30:].mean(), rel=0.05)


def test_and_as_what_leapt_goes_on_growing() -> None:
    """It grows by two fifths more: all others are an eighth less of the traffic."""
    fleet = Fleet()
    fleet.run(30)
    fleet.run(2, 30.0, [0])
    fleet.run(3, 42.0, [0])
    level, passing = fleet.expected()
    assert passing.tolist() == [True, *[False] * 49]
    assert level[0] == pytest.approx(level[1:].mean(), rel=0.04)


def test_a_leap_that_is_over_is_not_found_again_where_nothing_is_reported() -> None:
    fleet = Fleet()
    fleet.run(10)
    fleet.run(8, 3.0, [1])
    fleet.run(3)
    known, now_ms = fleet.estimates, (fleet.minute + 1) * MINUTE_MS
    assert not len(fleet.record.keys)
    assert not len(record_leaps(fleet.record, known, known, now_ms, MINUTE_MS).keys)


def test_what_is_new_in_a_fleet_leaps_from_what_it_had_and_not_from_nothing() -> None:
    fleet = Fleet()
    fleet.count = COUNT - 1
    fleet.run(20)
    fleet.count = COUNT
    fleet.run(3)
    fleet.run(3, 3.0, [COUNT - 1])
    level, passing = fleet.expected()
    assert np.flatnonzero(passing).tolist() == [COUNT - 1]
    assert level[-1] == pytest.approx(1 / COUNT, rel=0.1)


def test_a_first_sample_above_the_others_is_not_what_a_leap_begins_from() -> None:
    fleet = Fleet()
    fleet.run(1, 1.4, [1])
    fleet.run(2)
    fleet.run(6, 3.0, [1])
    assert fleet.record.keys.tolist() == [1]
    assert fleet.record.before[0] < 1.2 / COUNT


@pytest.mark.parametrize(
    ("left", "returned"),
    [
        pytest.param(2.2, False, id="less than half"),
        pytest.param(1.4, True, id="more, by the logarithm"),
        pytest.param(1 / 3, True, id="further than where it came from"),
    ],
)
def test_a_leap_has_returned_once_it_is_more_than_half_of_the_way_back(
    left: float, returned: bool
) -> None:
    fleet = Fleet()
    fleet.run(10)
    fleet.run(8, 4.0, [1])
    fleet.run(6, left, [1])
    assert (1 in fleet.record.passed.keys) == returned


def test_a_leap_in_a_fleets_second_minute_is_found_once_noise_is_known() -> None:
    """Its level is mostly from after the leap by then; the first sample tells."""
    fleet = Fleet()
    fleet.run(1)
    fleet.run(8, 3.0, [1])
    level, passing = fleet.expected()
    assert np.flatnonzero(passing).tolist() == [1]
    assert level[1] == pytest.approx(1 / COUNT, rel=0.05)
    assert fleet.record.since_ms.tolist() == [2 * MINUTE_MS]


def test_under_noise_such_a_leap_is_found_by_the_first_sample_alone() -> None:
    """Nothing but the average was known while noise was learned, and it has followed the leap."""
    fleet = Fleet(noise=0.1)
    fleet.run(1)
    fleet.run(8, 3.0, [1])
    assert np.flatnonzero(fleet.expected()[1]).tolist() == [1]
    assert fleet.record.since_ms.tolist() == [2 * MINUTE_MS]


def test_a_burst_in_a_fleets_first_minutes_has_passed() -> None:
    fleet = Fleet()
    fleet.run(3, 3.0, [1])
    fleet.run(10)
    assert not fleet.expected()[1].any()
    assert fleet.record.passed.keys.tolist() == [1]


def test_where_leaps_are_common_one_passes_however_long_it_has_lasted() -> None:
    """One a minute in fifty bundles: if they lasted, all would have grown within an hour."""
    fleet = Fleet()
    fleet.run(10)
    for count in range(1, 21):
        fleet.run(1, 3.0, range(count))
    assert fleet.record.wait_s == 0
    assert fleet.expected()[1].sum() >= 19


def test_ends_of_bursts_are_no_part_of_an_event() -> None:
    """Three of five leap up, and two down, in one minute."""
    minutes = np.array([8, *[30] * 5, 50]) * MINUTE_MS
    before, after = np.ones(7), np.array([3.0, 3.0, 3.0, 3.0, 0.3, 0.3, 3.0])
    keys = np.arange(7, dtype=np.uint64)
    record = open_leaps(LeapRecord(), keys, (before, after), minutes)
    assert not are_in_event(record, 1800.0).any()
    together = open_leaps(LeapRecord(), keys, (before, np.maximum(after, 1 / after)), minutes)
    assert are_in_event(together, 1800.0).tolist() == [False, *[True] * 5, False]
