"""Which brokers a bundle may go to."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, cluster
from trimtab.filters import narrow, reachable
from trimtab.filters.request import Projection, Request
from trimtab.filters.room import evenness, topic_cap
from trimtab.settings import Settings
from trimtab.view import View


def request(view: View) -> Request:
    return Projection(view).request_for("t/n")


def holding(**ranges: int) -> View:
    """Brokers with so many bundles of the namespace t/n."""
    return cluster(
        **{
            name: Broker(0.1, [Bundle(name=f"t/n/{name}{i}") for i in range(count)])
            for name, count in ranges.items()
        }
    )


@pytest.mark.parametrize(
    ("ranges", "left"),
    [
        ({"b1": 1, "b2": 0}, [1]),
        ({"b1": 1, "b2": 1}, [0, 1]),
        ({"b1": 1, "b2": 2}, [0]),
        ({"b1": 1, "b2": 2, "b3": 1}, [0, 2]),
    ],
)
def test_evenness_keeps_those_with_the_fewest_bundles(
    ranges: dict[str, int], left: list[int]
) -> None:
    view = holding(**ranges)
    kept = evenness(request(view), view.brokers.available, Settings())
    assert np.flatnonzero(kept).tolist() == left


def test_evenness_counts_where_bundles_will_be() -> None:
    view = cluster(
        b1=Broker(0.1, [Bundle(name="t/n/x", going_to="b2")]), b2=Broker(0.1), b3=Broker(0.1)
    )
    kept = evenness(request(view), view.brokers.available, Settings())
    assert np.flatnonzero(kept).tolist() == [0, 2]


def test_evenness_is_a_setting_except_for_system_topics() -> None:
    off = Settings.parse({"placement.distribute_evenly": False})
    for namespace, even in (("t/n", False), ("pulsar/system", True)):
        view = cluster(b1=Broker(0.1, [Bundle(name=f"{namespace}/x")]), b2=Broker(0.1))
        kept = evenness(Projection(view).request_for(namespace), view.brokers.available, off)
        assert kept.tolist() == [not even, True]


@pytest.mark.parametrize(
    ("topics", "left"),
    [
        pytest.param([50_000, 50_001], [0], id="the cap itself is kept"),
        pytest.param([60_000, 50_001], [0, 1], id="all above: the cap is ignored"),
    ],
)
def test_topic_cap(topics: list[int], left: list[int]) -> None:
    view = cluster(**{f"b{i}": Broker(topics=n) for i, n in enumerate(topics)})
    kept = narrow(request(view), view.brokers.available, (topic_cap,), Settings())
    assert np.flatnonzero(kept).tolist() == left


def test_topic_cap_counts_what_is_on_its_way() -> None:
    coming = Bundle(topics=20, going_to="b2")
    view = cluster(b1=Broker(0.1, [coming]), b2=Broker(topics=49_990), b3=Broker(topics=49_990))
    kept = topic_cap(request(view), view.brokers.available, Settings())
    assert np.flatnonzero(kept).tolist() == [0, 2]


def test_the_source_and_the_unavailable_are_out_of_reach() -> None:
    view = cluster(a=Broker(), b=Broker(available=False), c=Broker())
    asked = Projection(view).request_for("t/n", source=0)
    assert np.flatnonzero(reachable(asked)).tolist() == [2]
    assert view.brokers.available.tolist() == [True, False, True]
