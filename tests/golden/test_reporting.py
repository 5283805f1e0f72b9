"""When a broker reports and what it says its links carry, in figures that can be checked by eye."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.intake.report_cadence import ReportingSettings, bandwidth_limit, is_due
from trimtab.load import percentages
from trimtab.settings import WeightSettings
from trimtab.wire.reports.load_report import LocalBrokerData, Resource

FIVE_PERCENT = ReportingSettings(threshold=5.0)
FIFTEEN_MINUTES_MS = 15 * 60 * 1000


def rate(messages: float) -> LocalBrokerData:
    return LocalBrokerData(msg_rate_in=messages)


def throughput(size: float) -> LocalBrokerData:
    return LocalBrokerData(msg_throughput_out=size)


def bundles(number: int) -> LocalBrokerData:
    return LocalBrokerData(num_bundles=number)


def cpu(used: float) -> LocalBrokerData:
    return LocalBrokerData(cpu=Resource(used, 1000))


@pytest.mark.parametrize(
    ("last", "current", "due"),
    [
        pytest.param(rate(100), rate(104), False, id="4 % more messages"),
        pytest.param(rate(100), rate(105), False, id="5 % is not above 5 %"),
        pytest.param(rate(100), rate(105.1), True, id="5.1 % more"),
        pytest.param(rate(100), rate(94), True, id="6 % less"),
        pytest.param(rate(100), rate(95.1), False, id="4.9 % less"),
        pytest.param(rate(0), rate(1e-8), True, id="the first message"),
        pytest.param(rate(1e-8), rate(0), True, id="no more messages"),
        pytest.param(rate(0), rate(0), False, id="none before and after"),
        pytest.param(bundles(100), bundles(106), True, id="6 % more bundles"),
        pytest.param(throughput(100), throughput(106), True, id="6 % more bytes"),
        pytest.param(cpu(100), cpu(106), False, id="0.6 points more usage"),
        pytest.param(cpu(100), cpu(206), True, id="10.6 points more"),
    ],
)
def test_a_change_above_the_threshold_is_reported(
    last: LocalBrokerData, current: LocalBrokerData, due: bool
) -> None:
    """Acceptance case A13: usage is compared in points, all else in percent of what was said."""
    assert is_due(last, current, 0, WeightSettings(), FIVE_PERCENT) is due


def test_what_has_no_weight_is_no_change() -> None:
    """Acceptance case A13: the processor's usage, where it is not counted."""
    assert not is_due(cpu(100), cpu(206), 0, WeightSettings(cpu=0.0), FIVE_PERCENT)


@pytest.mark.parametrize(("age_ms", "due"), [(FIFTEEN_MINUTES_MS, False), (900_001, True)])
def test_an_old_report_is_repeated(age_ms: int, due: bool) -> None:
    same = LocalBrokerData(last_update=1000)
    assert is_due(same, same, 1000 + age_ms, WeightSettings(), ReportingSettings()) is due


@pytest.mark.parametrize(
    ("speeds", "override", "limit"),
    [
        pytest.param([1000, 1000, 10_000], 3.0, 9_000_000, id="3 Gbit/s for each of three"),
        pytest.param([-1, -1, -1], 3.0, 9_000_000, id="whatever they say"),
        pytest.param([1000, 10_000], None, 11_000_000, id="their own speeds"),
        pytest.param([1000, -1], None, -1, id="one does not say: unknown, not 999 Mbit/s"),
        pytest.param([], 3.0, 0, id="no interface"),
    ],
)
def test_the_limit_of_the_links(speeds: list[float], override: float | None, limit: float) -> None:
    """Acceptance case A15, in kbit/s."""
    assert bandwidth_limit(speeds, override) == limit


@pytest.mark.parametrize("speeds", [[], [-1]])
def test_links_without_a_limit_are_not_used(speeds: list[float]) -> None:
    """Acceptance case A15: 0 %, whatever goes over them."""
    limit = np.array([bandwidth_limit(speeds)])
    assert percentages(np.array([1e6]), limit).tolist() == [0.0]
