"""What is believed of a report, figure by figure, and what is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.reports import bundle
from trimtab.load import percentages
from trimtab.wire.reports.decode import LoadReport, decode
from trimtab.wire.reports.poison import Poison, PoisonReport

ONE, TWO = bundle(0, 2), bundle(1, 2)


def told(**members: Any) -> LoadReport:
    return decode(msgspec.json.encode({"cpu": {"usage": -1, "limit": -1}} | members))


def of(usage: float, limit: float) -> dict[str, float]:
    return {"usage": usage, "limit": limit}


def of_bundles(**figures: float) -> dict[str, dict[str, float]]:
    """Two bundles that say the same."""
    return {ONE: figures, TWO: figures}


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"cpu": of(105, 100)}, id="processors measured a little late"),
        pytest.param({"cpu": of(200, 100)}, id="a burst of twice the quota"),
        pytest.param({"cpu": of(819_200, 819_200)}, id="8192 processors"),
        pytest.param({"cpu": of(0.05, 0.1)}, id="a thousandth of a processor"),
        pytest.param({"memory": of(2048, 1024)}, id="a heap twice its limit"),
        pytest.param({"memory": of(900, 2.0**43 - 0.01)}, id="no limit, in pages"),
        pytest.param({"directMemory": of(700, 384)}, id="direct memory of Netty and the JVM"),
        pytest.param({"directMemory": of(20, 2.0**43)}, id="no limit"),
        pytest.param({"bandwidthIn": of(1e8, 1e7)}, id="100 Gbit/s through a veth"),
        pytest.param({"bandwidthOut": of(1e6, 4_294_967_295_000)}, id="an old kernel's unknown"),
        pytest.param({"bandwidthOut": of(1e6, -1)}, id="a speed that is not known"),
        pytest.param({"bandwidthIn": of(-1, -1)}, id="Pulsar's unknown"),
        pytest.param({"msgRateIn": 1e9, "msgThroughputIn": 1e12}, id="the most of a machine"),
        pytest.param(
            {"bandwidthIn": of(0, 1e6), "msgThroughputIn": 1.25e9}, id="clients on the machine"
        ),
        pytest.param({"numTopics": 10**8}, id="the most topics"),
        pytest.param({"startTimestamp": 10**15, "lastUpdate": 10**18}, id="times are no figures"),
    ],
)
def test_what_hardware_can_do_is_believed(members: dict[str, Any]) -> None:
    report = told(**members)
    for i, name in enumerate(("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")):
        said = members.get(name, of(-1, -1))
        assert report.resources[:, i].tolist() == [said["usage"], said["limit"]]


@pytest.mark.parametrize(
    ("members", "field"),
    [
        pytest.param({"cpu": of(1e14, 100)}, "cpu", id="the issue's"),
        pytest.param({"cpu": of(201, 100)}, "cpu", id="more than a burst"),
        pytest.param({"cpu": of(50, 1e-6)}, "cpu", id="a limit of next to nothing"),
        pytest.param({"cpu": of(0, 0.09)}, "cpu", id="an idle one too"),
        pytest.param({"cpu": of(50, 1e6)}, "cpu", id="more processors than Linux knows"),
        pytest.param({"cpu": of(50, 1e15)}, "cpu", id="which would look idle"),
        pytest.param({"memory": of(2049, 1024)}, "memory", id="a heap above its limit"),
        pytest.param({"memory": of(1, 2.0**33)}, "memory", id="8 PiB"),
        pytest.param({"directMemory": of(1e9, 384)}, "directMemory", id="direct memory"),
        pytest.param({"bandwidthIn": of(1.1e7, 1e6)}, "bandwidthIn", id="a counter that jumped"),
        pytest.param({"bandwidthOut": of(0, 1e12)}, "bandwidthOut", id="a thousand Tbit/s"),
        pytest.param({"msgRateIn": 1.1e9}, "msgRateIn", id="messages"),
        pytest.param({"msgThroughputOut": 1.1e12}, "msgThroughputOut", id="bytes"),
        pytest.param(
            {"bandwidthIn": of(1, 1e6), "msgThroughputIn": 1.3e9},
            "msgThroughputIn",
            id="ten times the network",
        ),
        pytest.param(
            {"bandwidthOut": of(1, 1e6), "lastStats": of_bundles(msgThroughputOut=7e8)},
            "msgThroughputOut",
            id="of bundles together",
        ),
        pytest.param({"lastStats": of_bundles(msgRateOut=6e8)}, "msgRateOut", id="of all bundles"),
        pytest.param({"lastStats": of_bundles(topics=10**18)}, "topics", id="topics of a bundle"),
        pytest.param(
            {"lastStats": of_bundles(consumerCount=6 * 10**7)}, "consumerCount", id="consumers"
        ),
        pytest.param({"numTopics": 10**8 + 1}, "numTopics", id="topics of the broker"),
        pytest.param({"msgRateIn": 1e300}, "msgRateIn", id="beyond any sum"),
        pytest.param({"lastStats": of_bundles(msgRateIn=1e300)}, "msgRateIn", id="of a bundle"),
        pytest.param({"lastStats": of_bundles(cacheSize=-1)}, "cacheSize", id="a negative count"),
        pytest.param({"bandwidthIn": of(-3, 1e6)}, "bandwidthIn", id="a negative usage"),
    ],
)
def test_what_hardware_cannot_do_is_rejected_by_its_field(
    members: dict[str, Any], field: str
) -> None:
    with pytest.raises(PoisonReport, match=field) as caught:
        told(**members)
    assert caught.value.field == field
    assert caught.value.poison in (Poison.IMPLAUSIBLE, Poison.RANGE)


def test_a_figure_that_is_rejected_names_its_bundle() -> None:
    with pytest.raises(PoisonReport, match=f"msgRateIn is 1e[+]300, of {ONE}"):
        told(lastStats={ONE: {"msgRateIn": 1e300}})


def test_a_number_of_400_digits_names_its_field() -> None:
    value = b'{"lastStats":{"%s":{"topics":1%s}}}' % (ONE.encode(), b"0" * 400)
    with pytest.raises(PoisonReport, match="topics is beyond 1e300") as caught:
        decode(value)
    assert caught.value.field == "topics"


def test_an_unknown_usage_is_no_percentage_of_a_known_limit() -> None:
    """It would be -1000 % of a small one."""
    report = told(bandwidthIn=of(-1, 0.1))
    assert percentages(*report.resources).tolist() == [0.0] * 5


@pytest.mark.parametrize("member", ["brokerVersionString", "loadManagerClassName"])
def test_a_word_that_is_a_flood_is_rejected(member: str) -> None:
    """A version of 5000 digits ended the round that compared versions."""
    assert told(**{member: "9" * 256}).heartbeat
    with pytest.raises(PoisonReport, match="256 characters"):
        told(**{member: "9" * 257})


def test_a_listed_bundle_that_is_no_range_is_rejected() -> None:
    assert told(bundles=[ONE], lastStats={ONE: {}}).listed == 1
    with pytest.raises(PoisonReport, match="junk") as caught:
        told(bundles=[ONE, "t/ns/junk"], lastStats={ONE: {}})
    assert caught.value.poison is Poison.BUNDLE
