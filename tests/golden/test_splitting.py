"""Where a bundle is divided, on cases that can be worked out by hand (Pulsar's own numbers)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model import FULL_RANGE_END, HashRange
from trimtab.ownership import MOST_CHILDREN
from trimtab.settings import SplitSettings
from trimtab.splitting import DIVIDERS
from trimtab.splitting.request import CannotSplit, SplitRequest, children

WHOLE = HashRange(0, FULL_RANGE_END)
MIB = 1048576.0


def bundle(
    *topics: int,
    of: HashRange = WHOLE,
    rates: dict[int, float] | None = None,
    sizes: dict[int, float] | None = None,
    wanted: tuple[int, ...] | None = None,
    forced: bool = False,
) -> SplitRequest:
    """A bundle with topics at these positions, all traffic incoming."""
    where = [*topics, *(rates or {}), *(sizes or {})]
    traffic = np.zeros((4, len(where)))
    traffic[0] = [(rates or {}).get(at, 0.0) for at in where]
    traffic[2] = [(sizes or {}).get(at, 0.0) for at in where]
    return SplitRequest(of, np.array(where, dtype=np.int64), traffic, wanted, forced)


@pytest.mark.parametrize(
    ("topics", "boundary"),
    [
        pytest.param((10, 20), [15], id="two"),
        pytest.param((10, 20, 30), [15], id="of an odd number the lower half is smaller"),
        pytest.param((1, 5, 9, 100), [7], id="four"),
        pytest.param((3, 4), [3], id="neighbours: the lower one goes up"),
        pytest.param((7, 7, 7), [7], id="all at one position"),
        pytest.param((0, FULL_RANGE_END), [2147483647], id="both ends"),
        pytest.param((5,), [], id="one topic"),
        pytest.param((), [], id="none"),
    ],
)
def test_topic_count(topics: tuple[int, ...], boundary: list[int]) -> None:
    """Acceptance case A9."""
    divide = DIVIDERS["topic_count_equally_divide"]
    assert divide(bundle(*reversed(topics)), SplitSettings()) == boundary


@pytest.mark.parametrize(
    ("low", "high", "boundary"),
    [
        (0, 0xFFFFFFFF, 0x7FFFFFFF),
        (0, 0x7FFFFFFF, 0x3FFFFFFF),
        (0x40000000, 0x80000000, 0x60000000),
        (0xC0000000, 0xFFFFFFFF, 0xDFFFFFFF),
        (0, 0x0FFFFFFF, 0x07FFFFFF),
        (10, 0xFFFFFFFF, 2147483652),
        (4, 7, 5),
        (0, 2, 1),
    ],
)
def test_range(low: int, high: int, boundary: int) -> None:
    """Acceptance case A8."""
    parent = HashRange(low, high)
    found = DIVIDERS["range_equally_divide"](bundle(of=parent), SplitSettings())
    assert found == [boundary]
    assert children(parent, found) == [(low, boundary), (boundary, high)]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0xFFFFFFFE, 0xFFFFFFFF)])
def test_a_single_position_is_not_divided(low: int, high: int) -> None:
    """Acceptance case A8, the last part."""
    parent = HashRange(low, high)
    found = DIVIDERS["range_equally_divide"](bundle(of=parent), SplitSettings())
    with pytest.raises(CannotSplit, match="too small"):
        children(parent, found)


@pytest.mark.parametrize(
    ("wanted", "topics", "forced", "boundaries"),
    [
        pytest.param(
            (1100, 1000, -1, 0, 1, 100, 800, 500, 200),
            (2, 3),
            False,
            [100, 200, 500, 800],
            id="those inside, sorted",
        ),
        pytest.param((1, 2), (), True, [2], id="forced: however few topics"),
        pytest.param((1, 2), (5,), False, [], id="one topic is not divided"),
        pytest.param((1, 1000), (2, 3), False, [], id="the edges are not inside"),
    ],
)
def test_specified(
    wanted: tuple[int, ...], topics: tuple[int, ...], forced: bool, boundaries: list[int]
) -> None:
    """Acceptance case A10."""
    request = bundle(*topics, of=HashRange(1, 1000), wanted=wanted, forced=forced)
    assert DIVIDERS["specified_positions_divide"](request, SplitSettings()) == boundaries


@pytest.mark.parametrize("wanted", [None, ()])
def test_specified_wants_a_position(wanted: tuple[int, ...] | None) -> None:
    with pytest.raises(CannotSplit, match="0x00000000_0xffffffff: no position is given"):
        DIVIDERS["specified_positions_divide"](bundle(2, 3, wanted=wanted), SplitSettings())


@pytest.mark.parametrize(
    ("rates", "boundaries"),
    [
        pytest.param({100: 500, 200: 500, 300: 500, 400: 500}, [251], id="two and two"),
        pytest.param({100: 500, 200: 599}, [], id="1099 are below 1000 + 10 %"),
        pytest.param({100: 500, 200: 600}, [151], id="1100 are not"),
        pytest.param({100: 2000, 200: 0.5}, [151], id="one topic alone is too much"),
        pytest.param({100: 400, 101: 400, 102: 400}, [102], id="neighbours"),
        pytest.param({100: 600, 200: 400, 300: 200}, [251], id="exactly 1000 do not cut"),
        pytest.param({100: 2000}, [], id="one topic cannot be divided"),
    ],
)
def test_messages(rates: dict[int, float], boundaries: list[int]) -> None:
    """Acceptance case A11: at most 1000 messages/s."""
    divide = DIVIDERS["flow_or_qps_equally_divide"]
    assert divide(bundle(rates=rates), SplitSettings(max_rate=1000)) == boundaries


def test_bytes_cut_more_than_once() -> None:
    """Acceptance case A12: three of 60 MiB/s where 100 are allowed.

    Pulsar's modular manager makes three bundles of it; its extensible one, which wants exactly one
    boundary, counts a failure and asks again (docs/pulsar-differences.md).
    """
    sizes = {10: 60 * MIB, 20: 60 * MIB, 31: 60 * MIB}
    found = DIVIDERS["flow_or_qps_equally_divide"](
        bundle(sizes=sizes), SplitSettings(max_throughput=100 * MIB)
    )
    assert found == [16, 26]
    assert children(HashRange(0, 40), found) == [(0, 16), (16, 26), (26, 40)]


@pytest.mark.parametrize(
    ("of", "boundaries", "why"),
    [
        pytest.param((5, 6), (5,), "too small", id="no inside"),
        pytest.param((5, 9), (5,), "does not lie inside", id="the lower edge"),
        pytest.param((5, 9), (9,), "does not lie inside", id="the upper edge"),
        pytest.param((5, 9), (7, 7), "an empty child", id="twice the same"),
        pytest.param(
            (0, 9_000), tuple(range(1, MOST_CHILDREN + 1)), "more children", id="one too many"
        ),
    ],
)
def test_boundaries_that_make_no_bundles(
    of: tuple[int, int], boundaries: tuple[int, ...], why: str
) -> None:
    with pytest.raises(CannotSplit, match=why):
        children(HashRange(*of), boundaries)


@given(st.sets(st.integers(1, 998), max_size=20))
def test_children_tile_their_parent(boundaries: set[int]) -> None:
    parts = children(HashRange(0, 999), boundaries)
    assert [part.low for part in parts] == [0, *sorted(boundaries)]
    assert [part.high for part in parts] == [*sorted(boundaries), 999]


def test_of_topics_at_one_position_the_last_one_counts() -> None:
    """5 + 700 + 700 pass 1000 at the third; were 5 counted for both, they would not."""
    traffic = np.zeros((4, 3))
    traffic[0] = [5, 700, 700]
    request = SplitRequest(WHOLE, np.array([0, 0, 100]), traffic)
    divide = DIVIDERS["flow_or_qps_equally_divide"]
    assert divide(request, SplitSettings(max_rate=1000)) == [1, 51]
