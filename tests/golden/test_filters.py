"""Which brokers may take a bundle, on clusters that can be worked out by hand (Pulsar's numbers).

`modular` asks as a round does for placements, `extensible` as TransferShedder does for transfers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, view_of
from trimtab.filters import FILTERS, may_unload, narrow, reachable, transferable
from trimtab.filters.request import Projection, Request
from trimtab.model import namespace_of
from trimtab.policies import Policies
from trimtab.settings import Settings
from trimtab.view import View

NEW = "t/new/0x80000000_0xffffffff"
"""A bundle that no broker has."""

HALF = "0x00000000_0x80000000"


def modular(view: View, **settings: object) -> list[str]:
    """The brokers left for the new bundle, a filter that leaves none being ignored."""
    request = _request(view)
    left = narrow(request, reachable(request), FILTERS, Settings.parse(settings))
    return [view.brokers.names[row] for row in np.flatnonzero(left)]


def extensible(view: View, **settings: object) -> list[str]:
    """The brokers to which it may be transferred."""
    request, parsed = _request(view), Settings.parse(settings)
    names = view.brokers.names
    return [name for row, name in enumerate(names) if transferable(request, row, parsed)]


def _request(view: View) -> Request:
    return Projection(view).request_for("t/new")


def having(bundles: int) -> Broker:
    """A broker with so many bundles of the new one's namespace."""
    return Broker(bundles=[Bundle(name=f"t/new/0x{i:08x}_0x{i + 1:08x}") for i in range(bundles)])


@pytest.mark.parametrize(
    ("bundles", "left"),
    [
        pytest.param([1, 0], ["b2"], id="1 and 0"),
        pytest.param([1, 1], ["b1", "b2"], id="1 and 1"),
        pytest.param([1, 2], ["b1"], id="1 and 2"),
        pytest.param([1, 2, 1], ["b1", "b3"], id="1, 2 and 1"),
    ],
)
def test_the_bundles_of_a_namespace_spread(bundles: list[int], left: list[str]) -> None:
    """Acceptance case E6; the extensible manager has no such filter."""
    view = view_of({f"b{i}": having(count) for i, count in enumerate(bundles, 1)})
    assert modular(view) == left
    assert extensible(view) == list(view.brokers.names)


@pytest.mark.parametrize(
    ("topics", "in_modular", "in_extensible"),
    [
        pytest.param([49_999, 50_000], ["b1", "b2"], ["b1"], id="49999 and 50000"),
        pytest.param([50_000, 50_001], ["b1"], [], id="50000 and 50001"),
        pytest.param([50_001, 60_000], ["b1", "b2"], [], id="all above: modular ignores it"),
    ],
)
def test_a_broker_has_room_for_so_many_topics(
    topics: list[int], in_modular: list[str], in_extensible: list[str]
) -> None:
    """Acceptance case E7: the cap itself is allowed in one manager only."""
    view = view_of({f"b{i}": Broker(topics=count) for i, count in enumerate(topics, 1)})
    assert modular(view) == in_modular
    assert extensible(view) == in_extensible


def test_a_broker_that_has_not_reported_has_room() -> None:
    """Acceptance case E7, the extensible part."""
    view = view_of({"b1": Broker(topics=50_000), "b2": Broker(reported_ms=0)})
    assert extensible(view) == ["b2"]


def grouped(holders: Iterable[str], brokers: Iterable[str], domains: dict[str, str]) -> View:
    """Brokers of which each holder has a namespace of the new bundle's group, or several."""
    held: dict[str, list[Bundle]] = {broker: [] for broker in brokers}
    groups = {namespace_of(NEW): "group"}
    for i, holder in enumerate(holders):
        held[holder].append(Bundle(name=f"t/n{i}/{HALF}"))
        groups[f"t/n{i}"] = "Group"
    fleet = {broker: Broker(bundles=bundles) for broker, bundles in held.items()}
    return view_of(fleet, Policies(groups=groups, domains=domains))


FOUR = ["b0", "b1", "b2", "b3"]


@pytest.mark.parametrize(
    ("holders", "left"),
    [
        pytest.param([], FOUR, id="the first namespace goes anywhere: b0"),
        pytest.param(["b0"], ["b2", "b3"], id="the second to the other domain: b2"),
        pytest.param(["b0", "b2"], ["b1", "b3"], id="the third next to one of them: b1"),
        pytest.param(["b0", "b2", "b1"], ["b3"], id="the fourth to the last that has none"),
        pytest.param(["b0", "b2", "b1", "b3"], FOUR, id="the fifth anywhere again"),
    ],
)
def test_a_group_spreads_over_domains_then_brokers(holders: list[str], left: list[str]) -> None:
    """Acceptance case E8: b0 and b1 are one failure domain, b2 and b3 another."""
    view = grouped(holders, FOUR, {"b0": "d0", "b1": "d0", "b2": "d1", "b3": "d1"})
    assert modular(view, failureDomainsEnabled=True) == left
    assert extensible(view, failureDomainsEnabled=True) == left


@pytest.mark.parametrize(
    ("holders", "left"),
    [
        pytest.param([], ["b1", "b2", "b3"], id="the first"),
        pytest.param(["b1"], ["b2", "b3"], id="the second"),
        pytest.param(["b1", "b2"], ["b3"], id="the third"),
        pytest.param(["b1", "b2", "b3"], ["b1", "b2", "b3"], id="the fourth"),
    ],
)
def test_a_group_spreads_over_brokers(holders: list[str], left: list[str]) -> None:
    """Acceptance case E9: no failure domains."""
    view = grouped(holders, ["b1", "b2", "b3"], {})
    assert modular(view) == left
    assert extensible(view) == left


def test_the_emptiest_domains_are_found_first() -> None:
    """Acceptance case E9, the second part: the domains have 3, 3 and 4; b2 and b4 have least."""
    holders = [*["b1"] * 2, "b2", *["b3"] * 2, "b4", *["b5"] * 2, *["b6"] * 2]
    domains = {"b1": "d1", "b2": "d1", "b3": "d2", "b4": "d2", "b5": "d3", "b6": "d3"}
    view = grouped(holders, domains, domains)
    assert modular(view, failureDomainsEnabled=True) == ["b2", "b4"]
    assert extensible(view, failureDomainsEnabled=True) == ["b2", "b4"]


@pytest.mark.parametrize(
    ("holders", "may"),
    [
        pytest.param(["b0"], True, id="1 and 0"),
        pytest.param(["b0", "b0", "b1"], True, id="2 and 1"),
        pytest.param(["b0", "b1"], False, id="1 and 1"),
    ],
)
def test_a_bundle_leaves_if_its_group_is_thinner_elsewhere(holders: list[str], may: bool) -> None:
    """Acceptance case E10: the first of b0's namespaces, of two brokers."""
    view = grouped(holders, ["b0", "b1"], {})
    assert may_unload(Projection(view).request(bundle=0, source=0)) is may


@pytest.mark.parametrize(
    ("third", "left"),
    [
        pytest.param("2.10.1-SNAPSHOT", ["b2"], id="a snapshot comes before its release"),
        pytest.param("latest", ["b1", "b2", "b3"], id="one is no version: no filter"),
    ],
)
def test_later_versions_are_preferred(third: str, left: list[str]) -> None:
    """Acceptance case E14: next to 2.10.0 and 2.10.1."""
    versions = {"b1": "2.10.0", "b2": "2.10.1", "b3": third}
    view = view_of({name: Broker(version=version) for name, version in versions.items()})
    assert modular(view, preferLaterVersions=True) == left
    assert extensible(view, preferLaterVersions=True) == left
    assert modular(view) == extensible(view) == ["b1", "b2", "b3"]
