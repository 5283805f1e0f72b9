"""When a broker reports, and that the job's picture of it stays true in between."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec
import pytest

from agent.reports.outbox import Outbox
from agent.reports.reporting import HEARTBEAT_S, REPEAT_S, Cadence, Reporter
from tests.agent.shelf import Shelf
from tests.agent.support import SESSION, A
from trimtab.arrays import CPU, RATE_IN
from trimtab.intake.fold import Arrival, fold
from trimtab.intake.report_cadence import ReportingSettings
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.settings import RoundSettings, WeightSettings
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource

BEAT_S = 5.0
HOT, COLD = "t/ns/0x00000000_0x80000000", "t/ns/0x80000000_0xffffffff"


def figures(cpu: float = 50.0, **rates: float) -> LocalBrokerData:
    """Of a broker with the bundles ``hot`` and ``cold`` that are given; messages/s of each."""
    names = {"hot": HOT, "cold": COLD}
    stats = {names[key]: BundleStats(msg_rate_in=rate) for key, rate in rates.items()}
    return LocalBrokerData(
        cpu=Resource(cpu, 100.0),
        msg_rate_in=sum(rates.values()),
        last_stats=stats,
        bundles=list(stats),
        num_bundles=len(stats),
        start_timestamp=SESSION,
    )


class Desk:
    """A reporter that is offered figures at each beat, and what the job makes of its reports."""

    def __init__(self, cadence: Cadence | None = None) -> None:
        self.shelf = Shelf()
        self.outbox = Outbox(lambda: self.shelf)
        self.reporter = Reporter(self.outbox, "c", A, cadence)
        self.now = 1000.0
        self.present = True
        self.snapshot: Snapshot | None = None

    def offer(self, data: LocalBrokerData) -> str:
        """At the next beat; what was sent: all, a heartbeat, or nothing."""
        self.now += BEAT_S
        before = len(self.shelf.sent)
        self.reporter.offer(data, self.now)
        self.outbox.pump()
        sent = self.shelf.sent[before:]
        for each in sent:
            each.end(delivered=self.present)
            if self.present:
                arrival = Arrival(
                    round(self.now * 1000), 1, len(self.shelf.sent), decode(each.message.value)
                )
                self.snapshot, _ = fold(self.snapshot, A, [arrival], IntakeSettings())
        return "".join(
            "all" if b"lastStats" in each.message.value else "heartbeat" for each in sent
        )

    def beats(self, told: Iterable[LocalBrokerData]) -> list[str]:
        return [self.offer(data) for data in told]


def test_a_quiet_broker_sends_heartbeats_and_now_and_then_everything() -> None:
    desk = Desk()
    told = desk.beats([figures(hot=100.0)] * 27)
    quiet = ["", "", "heartbeat"]
    assert told == ["all", *quiet * 4, "all", *quiet * 4, "all"]


@pytest.mark.parametrize(
    ("now", "sent"),
    [
        pytest.param(figures(hot=109.0), "", id="9 percent more messages"),
        pytest.param(figures(hot=111.0), "all", id="11 percent more messages"),
        pytest.param(figures(cpu=59.0, hot=100.0), "", id="9 points more usage"),
        pytest.param(figures(cpu=61.0, hot=100.0), "all", id="11 points more usage"),
        pytest.param(figures(hot=60.0, cold=40.0), "all", id="one bundle more"),
        pytest.param(figures(cold=100.0), "all", id="another bundle"),
    ],
)
def test_what_has_changed_is_told_at_the_next_beat(now: LocalBrokerData, sent: str) -> None:
    desk = Desk()
    assert desk.beats([figures(hot=100.0), now]) == ["all", sent]


def test_a_heartbeat_tells_the_usage_of_now_and_leaves_the_bundles_as_they_were() -> None:
    desk = Desk()
    told = desk.beats([figures(cpu=50.0, hot=100.0), *[figures(cpu=58.0, hot=104.0)] * 3])
    assert told[-1] == "heartbeat"
    assert desk.snapshot is not None
    assert desk.snapshot.resources[CPU] == 58.0
    assert desk.snapshot.traffic[RATE_IN] == 104.0
    assert (desk.snapshot.bundles, desk.snapshot.listed) == ((HOT,), 1)
    assert desk.snapshot.stats[RATE_IN].tolist() == [100.0]


def test_a_heartbeat_is_small() -> None:
    desk = Desk()
    many = figures(hot=1.0)
    many.bundles = [f"t/ns{row}/0x00000000_0xffffffff" for row in range(100)]
    many.last_stats = dict.fromkeys(many.bundles, BundleStats())
    desk.beats([many] * 4)
    whole, heartbeat = (len(each.message.value) for each in desk.shelf.sent)
    assert 20 * heartbeat < whole


def test_the_average_of_a_bundle_that_went_idle_comes_down_minute_by_minute() -> None:
    """Of ten samples at most: nine of zero leave a tenth, whatever the sum of the broker is."""
    desk = Desk()
    desk.offer(figures(hot=100.0, cold=100.0))
    desk.beats([figures(hot=0.0, cold=200.0)] * round(10 * (REPEAT_S + BEAT_S) / BEAT_S))
    assert desk.snapshot is not None
    hot, cold = desk.snapshot.short[RATE_IN].tolist()
    assert hot <= 10.0
    assert cold > 100.0


def test_the_job_never_takes_a_quiet_broker_for_silent() -> None:
    desk = Desk()
    heard = [BEAT_S * n for n, sent in enumerate(desk.beats([figures()] * 100)) if sent]
    assert max(later - earlier for earlier, later in pairwise(heard)) == HEARTBEAT_S
    assert RoundSettings().silence > 3 * HEARTBEAT_S + BEAT_S


def test_figures_that_were_lost_are_told_again_before_any_heartbeat() -> None:
    desk = Desk()
    desk.present = False
    lost = desk.beats([figures(hot=100.0)] * 4)
    desk.present = True
    found = desk.beats([figures(hot=100.0)] * 4)
    assert lost == ["all"] * 4
    assert found == ["all", "", "", "heartbeat"]


def test_a_change_is_measured_against_what_kafka_has() -> None:
    desk = Desk()
    desk.offer(figures(hot=100.0))
    desk.present = False
    desk.offer(figures(hot=120.0))
    desk.present = True
    assert desk.offer(figures(hot=121.0)) == "all"
    assert desk.offer(figures(hot=122.0)) == ""


def test_every_beat_is_told_where_the_settings_say_so() -> None:
    desk = Desk(Cadence(ReportingSettings(max_interval=0.0)))
    assert desk.beats([figures()] * 3) == ["all"] * 3


def test_what_has_no_weight_in_the_job_is_no_change() -> None:
    desk = Desk(Cadence(weights=WeightSettings(cpu=0.0)))
    assert desk.beats([figures(cpu=10.0), figures(cpu=90.0)]) == ["all", ""]


def test_a_wall_clock_that_is_set_back_holds_up_nothing() -> None:
    desk = Desk()
    told = figures(hot=100.0)
    told.last_update = SESSION
    back = msgspec.structs.replace(told, last_update=SESSION - 3_600_000)
    assert desk.beats([told, *[back] * 13])[-1] == "all"


def test_heartbeats_are_numbered_with_the_others() -> None:
    desk = Desk()
    desk.beats([figures()] * 7)
    numbers = [dict(each.message.headers)["trimtab-sequence"] for each in desk.shelf.sent]
    assert numbers == [b"1", b"2", b"3"]
