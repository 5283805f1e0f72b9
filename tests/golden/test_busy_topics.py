"""Topics that need more partitions: Pulsar's operators propose it when one reaches 20 MB/s."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from sinks.exposition import Exposition
from streaming.metrics.gauges import show_round
from tests.support.clusters import Broker, Bundle, Four, cluster
from tests.support.clusters_by_rows import change_row, held
from tests.support.clusters_by_rows import cluster as empty_cluster
from tests.support.reports import EVERY_REPORT
from tests.support.scenes import scene_of
from trimtab.explaining.telling import explain
from trimtab.intake.fold import Arrival, fold
from trimtab.plan import Refusal
from trimtab.reasons import Rule
from trimtab.settings import SplitSettings
from trimtab.splitting.busy_topics import find_busy_topics
from trimtab.view import View
from trimtab.wire.columns import pack
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode
from trimtab.wire.rows import Row, Tag

BUSY = "t/n/0x00000000_0x40000000"
IDLE = "t/n/0x40000000_0x80000000"
MB = 1e6
PARTITION: Four = (5_000.0, 5_000.0, 10 * MB, 10 * MB)
"""20 MB/s in and out together."""
WHERE = "pulsar-admin topics list t/n --bundle 0x00000000_0x40000000"
ADVICE = (
    "one topic carries it, 20 MB/s and 10,000 messages/s on {}: give the topic more partitions "
    f"({WHERE} names it)"
)


def fleet(traffic: Four = PARTITION, topics: int = 1) -> View:
    busy, idle = Bundle(traffic, name=BUSY, topics=topics), Bundle(name=IDLE, topics=9)
    return replace(cluster(a=Broker(0.4, [busy, idle]), b=Broker(0.4, [idle])), sizes={"t/n": 4})


def busy(view: View, *refused: Rule, limits: SplitSettings | None = None) -> list[str]:
    refusals = [Refusal(BUSY, "a", rule) for rule in refused]
    return [each.bundle for each in find_busy_topics(view, refusals, limits or SplitSettings())]


@pytest.mark.parametrize(
    ("traffic", "topics", "expected"),
    [
        pytest.param(PARTITION, 1, [BUSY], id="20 MB/s, in and out"),
        pytest.param((0, 0, 20 * MB, 0), 1, [BUSY], id="20 MB/s, all in"),
        pytest.param((5e3, 5e3, 10 * MB, 9.9 * MB), 1, [], id="19.9 MB/s"),
        pytest.param(PARTITION, 2, [], id="of two topics: a split may help"),
        pytest.param(PARTITION, 0, [], id="of none: a report that does not count them"),
        pytest.param((20e3, 10.1e3, MB, MB), 1, [BUSY], id="over max_rate"),
    ],
)
def test_partitions_that_reach_20_megabytes(
    traffic: Four, topics: int, expected: list[str]
) -> None:
    assert busy(fleet(traffic, topics)) == expected


def test_the_figure_is_a_setting_and_the_limits_of_splits_remain_without_it() -> None:
    assert busy(fleet(), limits=SplitSettings(topic_throughput=21 * MB)) == []
    assert busy(fleet(), limits=SplitSettings(topic_throughput=0.0)) == []
    below = SplitSettings(topic_throughput=0.0, max_throughput=19 * MB)
    assert busy(fleet(), limits=below) == [BUSY]


def test_what_was_split_in_vain_is_named_whatever_its_topics() -> None:
    calm = fleet((1.0, 1.0, MB, MB), topics=9)
    assert busy(calm, Rule.UNDIVIDABLE) == [BUSY]
    assert busy(calm, Rule.FULL_NAMESPACE) == []


def test_the_busiest_are_named_first_and_twenty_at_most() -> None:
    bundles = [Bundle((0, 0, (20 + i) * MB, 0), topics=1) for i in range(50)]
    view = cluster(a=Broker(0.4, bundles))
    found = find_busy_topics(view, (), SplitSettings())
    assert [each.throughput / MB for each in found] == [69 - i for i in range(20)]


def test_a_broker_s_own_heartbeat_has_no_partitions() -> None:
    own = Bundle(PARTITION, name="pulsar/c/h:8080/0x00000000_0xffffffff", topics=1)
    assert busy(cluster(a=Broker(0.4, [own]), b=Broker(0.4))) == []


def test_why_says_what_to_do() -> None:
    assert explain(scene_of(fleet()), BUSY).advice == ADVICE.format("a")
    assert explain(scene_of(fleet(topics=2)), BUSY).advice == ""


def test_a_round_names_it_in_its_problems_and_a_metric_has_its_rate() -> None:
    stats = BundleStats(*PARTITION, topics=1)
    told = LocalBrokerData(
        cpu=Resource(40.0, 100.0), last_stats={BUSY: stats}, bundles=[BUSY], start_timestamp=1
    )
    report = decode(encode(told))
    snapshot, _ = fold(None, "a:1", [Arrival(1000, 1, 1, report)], EVERY_REPORT)
    it, shown = empty_cluster(), Exposition()
    row = Row("c", Tag.SNAPSHOT, "a:1", pack(snapshot), 1000, accepted=1)
    it.receive([row, change_row(BUSY, "a:1")], 0)
    record = held(it, 5000)
    assert f"{BUSY}: {ADVICE.format('a:1')}" in record.problems
    [named] = record.busy_topics
    assert (named.bundle, named.broker, named.rate, named.throughput) == (
        BUSY,
        "a:1",
        10_000.0,
        20 * MB,
    )
    labels = {"cluster": "c", "bundle": BUSY}
    show_round(shown, record)
    assert shown.registry.get_sample_value("trimtab_busy_topic_bytes", labels) == 20 * MB
    show_round(shown, msgspec.structs.replace(record, busy_topics=()))
    assert shown.registry.get_sample_value("trimtab_busy_topic_bytes", labels) is None
