"""The columnar shedders against their plain twins, on the same random clusters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters import view_of
from tests.support.plain import PlainAvg, PlainOverload, PlainThreshold, PlainUniform, Wish
from tests.support.plain_transfer import PlainTransfer
from tests.support.random_clusters import Cluster, all_settings, clusters
from trimtab.plan import ShedWish
from trimtab.settings import Settings
from trimtab.shedding import avg, overload, threshold, transfer, uniform
from trimtab.view import View

fleets = st.lists(clusters(), min_size=1, max_size=4)


def said(view: View, sheds: list[ShedWish] | tuple[ShedWish, ...]) -> list[Wish]:
    names = view.brokers.names
    return [
        (
            view.bundles.names[shed.bundle],
            names[shed.source],
            None if shed.destination is None else names[shed.destination],
        )
        for shed in sheds
    ]


@given(fleets, all_settings())
def test_threshold(fleets: list[Cluster], settings: Settings) -> None:
    plain, history = PlainThreshold(), threshold.ThresholdHistory()
    for view in map(view_of, fleets):
        sheds, history = threshold.shed(view, history, settings)
        assert said(view, tuple(sheds)) == plain.shed(view, settings)
        if view.brokers.names:
            assert history.usage == plain.average


@given(clusters(), all_settings())
def test_overload(fleet: Cluster, settings: Settings) -> None:
    view = view_of(fleet)
    sheds, _ = overload.shed(view, None, settings)
    assert said(view, tuple(sheds)) == PlainOverload().shed(view, settings)


@given(clusters(), all_settings())
def test_uniform(fleet: Cluster, settings: Settings) -> None:
    view = view_of(fleet)
    sheds, _ = uniform.shed(view, None, settings)
    assert said(view, tuple(sheds)) == PlainUniform().shed(view, settings)


@given(fleets, all_settings())
def test_avg(fleets: list[Cluster], settings: Settings) -> None:
    plain, history = PlainAvg(), avg.AvgHistory()
    for view in map(view_of, fleets):
        sheds, history = avg.shed(view, history, settings)
        assert said(view, tuple(sheds)) == plain.shed(view, settings)
        assert history.low.counts == plain.low
        assert history.high.counts == plain.high


@given(fleets, all_settings())
def test_transfer(fleets: list[Cluster], settings: Settings) -> None:
    """The plain one knows no versions."""
    settings = settings.changed({"placement.prefer_later_versions": False})
    plain, history = PlainTransfer(), transfer.TransferHistory()
    for view in map(view_of, fleets):
        sheds, history = transfer.shed(view, history, settings)
        assert said(view, tuple(sheds)) == plain.shed(view, settings)
        assert history.hits == plain.hits
