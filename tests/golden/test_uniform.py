"""UniformLoadShedder on clusters whose answer can be worked out by hand (Pulsar's own numbers)."""

from __future__ import annotations

import pytest

from tests.support.clusters import Broker, Bundle, cluster, rates, throughputs
from tests.support.picking import picked

BY_RATE = rates(9000, 6000, 4000, 2500, 1500, 1000)
SMALL = rates(1900, 1500, 100, 50)


def pair(most: float, least: float, bundles: list[Bundle], **settings: object) -> list[int]:
    """What a broker of ``most`` messages/s loses next to one of ``least``."""
    view = cluster(
        a=Broker(0, bundles, traffic=(most, 0, 0, 0)), b=Broker(0, traffic=(least, 0, 0, 0))
    )
    taken = picked("uniform", view, **settings)
    assert {source for source, _ in taken} <= {"a"}
    return [number for _, number in taken]


@pytest.mark.parametrize(
    ("most", "least", "bundles", "expected"),
    [
        pytest.param(24000, 8000, BY_RATE, [3], id="C1: 3200 left: 4000 is within 1000 above"),
        pytest.param(12000, 8000, BY_RATE, [], id="C2: 50 % is not above 50 %"),
        pytest.param(12001, 8000, BY_RATE, [], id="C2: 800 are below the minimum of 1000"),
        pytest.param(13000, 8000, SMALL, [1, 3], id="C3: 1000 left: 1900, then 100 at -900"),
        pytest.param(500, 0, SMALL, [], id="C4: a least of 0 counts as 1; 99 are too few"),
        pytest.param(6000, 0, SMALL, [1, 3, 4], id="C4: 1199 left: 1900, then 100 and 50"),
        pytest.param(24000, 8000, BY_RATE[:1], [], id="a sole bundle stays"),
    ],
)
def test_messages(most: float, least: float, bundles: list[Bundle], expected: list[int]) -> None:
    """Acceptance cases C1, C2, C3 and C4."""
    assert pair(most, least, bundles) == expected


@pytest.mark.parametrize(("cap", "expected"), [(-1, [1, 3, 4]), (2, [1, 3]), (1, [1]), (0, [])])
def test_the_cap_counts_bundles(cap: int, expected: list[int]) -> None:
    assert pair(6000, 0, SMALL, maxUnloadBundleNumPerShedding=cap) == expected


def test_bytes_are_compared_where_messages_are_alike() -> None:
    """Acceptance case C5: 8 MB/s against 1.5: 1363148 left, which the bundle of 0.5 MB fits."""
    mib = 1048576
    view = cluster(
        a=Broker(0, throughputs(3 * mib, 1.5 * mib, 0.5 * mib), traffic=(0, 0, 8 * mib, 0)),
        b=Broker(0, traffic=(0, 0, 1.5 * mib, 0)),
    )
    assert picked("uniform", view) == [("a", 3)]


@pytest.mark.parametrize(
    ("off", "source"),
    [
        pytest.param({}, "c", id="both exceed: messages decide"),
        pytest.param({"uniform.throughput_ratio": 0}, "c", id="messages only"),
        pytest.param({"uniform.rate_difference": 0}, "d", id="bytes only"),
    ],
)
def test_the_source_has_the_most_of_what_is_measured(off: dict[str, object], source: str) -> None:
    """Acceptance case C6: brokers with so many thousand messages/s and MB/s."""
    load = {"a": (50, 50), "b": (60, 60), "c": (70, 70), "d": (10, 80), "e": (20, 10)}
    view = cluster(
        **{
            name: Broker(0, [Bundle((50, 0, 50, 0))] * 20, traffic=(1e3 * rate, 0, 1e6 * size, 0))
            for name, (rate, size) in load.items()
        }
    )
    limits = {"uniform.throughput_ratio": 2, "unload.max_share": 0.5, "unload.max_bundles": 1}
    assert picked("uniform", view, **limits | off) == [(source, 1)]


def test_brokers_above_two_gigabytes_a_second_are_compared_too() -> None:
    """Pulsar's 32-bit minimum would hide the lesser one, and its difference overflow."""
    giga = 1e9
    view = cluster(
        a=Broker(0, throughputs(*[giga] * 100), traffic=(0, 0, 100 * giga, 0)),
        b=Broker(0, throughputs(*[giga] * 12), traffic=(0, 0, 12 * giga, 0)),
    )
    assert [source for source, _ in picked("uniform", view)] == ["a"] * 17
