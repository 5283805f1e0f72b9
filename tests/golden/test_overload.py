"""OverloadShedder on clusters whose answer can be worked out by hand (Pulsar's own numbers)."""

from __future__ import annotations

import pytest

from tests.support.clusters import Broker, cluster
from tests.support.picking import TEN, picked, ten


@pytest.mark.parametrize(
    ("recent", "expected"),
    [
        pytest.param((), [10, 9], id="21.89 MiB/s are needed: 20 + 18"),
        pytest.param((10, 9), [8, 7], id="those that moved lately stay: 16 + 14"),
    ],
)
def test_a_full_link_sheds_the_largest(recent: tuple[int, ...], expected: list[int]) -> None:
    """Acceptance case B1: 110 MiB/s * (0.999000015 - 0.85 + 0.05).

    The bandwidth counts as the processor does.
    """
    view = cluster(x=Broker(0, ten(*recent), bandwidth_out=0.999))
    assert picked("overload", view) == [("x", n) for n in expected]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(0.849, [], id="below the line"),
        pytest.param(0.85, [10], id="at the line: 5.5 MiB/s"),
        pytest.param(1.0, [10, 9], id="22 MiB/s: 20 + 18"),
    ],
)
def test_the_line_itself_is_overload(usage: float, expected: list[int]) -> None:
    """Acceptance case B2."""
    assert picked("overload", cluster(x=Broker(usage, TEN))) == [("x", n) for n in expected]


def test_a_sole_bundle_stays() -> None:
    """Acceptance case B2, the last part."""
    assert picked("overload", cluster(x=Broker(1.0, TEN[:1]))) == []


def test_the_others_are_not_asked() -> None:
    """Two brokers at 100 % both shed, though neither could take what the other loses."""
    view = cluster(x=Broker(1.0, TEN), y=Broker(1.0, TEN))
    assert picked("overload", view) == [("x", 10), ("x", 9), ("y", 10), ("y", 9)]
