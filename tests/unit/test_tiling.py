"""Records must cover a namespace's ring exactly once."""

from __future__ import annotations

import pytest

from tests.support.reports import bundle
from trimtab.tiling import flaws

QUARTERS = [bundle(i) for i in range(4)]


@pytest.mark.parametrize(
    ("bundles", "found"),
    [
        pytest.param(QUARTERS, [], id="four quarters"),
        pytest.param(QUARTERS[::-1], [], id="in any order"),
        pytest.param([bundle(0, 1)], [], id="one bundle"),
        pytest.param([], ["nothing covers 0x00000000_0xffffffff"], id="no bundle"),
        pytest.param(
            [QUARTERS[0], QUARTERS[2], QUARTERS[3]],
            [f"nothing covers 0x40000000_0x80000000 before {QUARTERS[2]}"],
            id="a hole",
        ),
        pytest.param(QUARTERS[:3], ["nothing covers 0xc0000000_0xffffffff"], id="no end"),
        pytest.param(
            [bundle(0, 2), bundle(1, 4), bundle(1, 2)],
            [f"{bundle(1, 4)} overlaps {bundle(0, 2)}"],
            id="an overlap",
        ),
        pytest.param(
            [bundle(0, 2), bundle(1, 4)],
            [
                f"{bundle(1, 4)} overlaps {bundle(0, 2)}",
                "nothing covers 0x80000000_0xffffffff",
            ],
            id="both, each told",
        ),
    ],
)
def test_every_flaw_is_told(bundles: list[str], found: list[str]) -> None:
    assert flaws(bundles) == found
