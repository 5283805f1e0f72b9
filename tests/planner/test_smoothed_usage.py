"""The planner judges a broker by operator ①'s average of it, not by its last report."""

from __future__ import annotations

import pytest

from tests.support.clusters_by_rows import change_row, cluster, held
from tests.support.reports import arrival, bundle, report
from trimtab.cluster.operator import Cluster
from trimtab.intake.fold import fold
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.wire.columns import pack
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row, Tag

OWNER = {bundle(i, 8): "a:1" if i < 4 else "b:1" for i in range(8)}
SECOND = 1000
PLANNER = {
    "round.shedding": "trimtab",
    "round.placement": "least-predicted-usage",
    "round.interval": 60.0,
}


class Reporting:
    """Two brokers of four equal bundles each, from their reports to the rounds."""

    def __init__(self, intake: IntakeSettings) -> None:
        self._intake = intake
        self._snapshots: dict[str, Snapshot] = {}
        self._it: Cluster = cluster(PLANNER)
        self._it.receive([change_row(name, owner) for name, owner in OWNER.items()], 0)

    def round(self, number: int, rate: float = 100.0, **cpu: float) -> RoundRecord:
        """Both report, and a minute's round is held; ``rate``: what each bundle of ``b`` has."""
        at, rows = 60 * number, []
        for name, percent in cpu.items():
            broker = f"{name}:1"
            each_has = rate if name == "b" else 100.0
            mine = {each: each_has for each, owner in OWNER.items() if owner == broker}
            news = arrival(number, report(mine, percent), seconds=at)
            told, _ = fold(self._snapshots.get(broker), broker, [news], self._intake)
            assert told is not None
            self._snapshots[broker] = told
            rows.append(Row("c", Tag.SNAPSHOT, broker, pack(told), at * SECOND, accepted=1))
        self._it.receive(rows, at * SECOND)
        return held(self._it, at * SECOND)


@pytest.mark.parametrize(("half_life", "moves"), [(1800.0, False), (1.0, True)])
def test_one_busy_report_moves_bundles_only_where_the_average_follows_it(
    half_life: float, moves: bool
) -> None:
    """Processors of a rise from 50 % to 90 % for one report, while its traffic stays as it is."""
    reporting = Reporting(IntakeSettings(half_life=half_life))
    for number in range(1, 31):
        assert reporting.round(number, a=50.0, b=50.0).moves == ()
    assert bool(reporting.round(31, a=90.0, b=50.0).moves) == moves


def test_what_stays_so_is_acted_on() -> None:
    reporting = Reporting(IntakeSettings())
    for number in range(1, 31):
        reporting.round(number, a=50.0, b=50.0)
    assert any(reporting.round(number, a=90.0, b=50.0).moves for number in range(31, 91))


def test_a_broker_whose_counters_begin_to_count_later_than_it_reports_is_judged_alike() -> None:
    """It has just started. Its first reports tell what it uses, and no traffic that explains it."""
    reporting = Reporting(IntakeSettings())
    for number in range(1, 31):
        rate = 100.0 if number > 2 else 0.0
        assert reporting.round(number, rate, a=50.0, b=50.0).moves == ()


def test_the_record_of_a_round_shows_the_average() -> None:
    reporting = Reporting(IntakeSettings(half_life=60.0))
    reporting.round(1, a=40.0, b=50.0)
    record = reporting.round(2, a=80.0, b=50.0)
    assert record.usage == pytest.approx({"a:1": 0.8, "b:1": 0.5})
    assert record.smoothed_usage == pytest.approx({"a:1": 0.6, "b:1": 0.5})
