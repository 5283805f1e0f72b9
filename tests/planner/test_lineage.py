"""A bundle that was divided or merged is not waited for: what it carried is in others."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.lineage import drop_ancestors
from trimtab.names import identities

WHOLE = "t/n/0x00000000_0x40000000"
LOWER, UPPER = "t/n/0x00000000_0x20000000", "t/n/0x20000000_0x40000000"
PARTS = [f"t/n/0x{at}0000000_0x{at + 1}0000000" for at in range(4)]
OTHER = "t/n/0x40000000_0x80000000"
ELSEWHERE = "t/m/0x00000000_0x20000000"


def estimates(names: list[str]) -> Estimates:
    keys = np.sort(identities(names))
    samples = Samples(keys, np.ones(len(names)), np.ones(len(names), np.int64))
    return follow_samples(Estimates(), samples, 1800.0, 5.0)


def kept(before: list[str], now: list[str]) -> set[str]:
    keys = identities(now)
    order = np.argsort(keys)
    left = drop_ancestors(estimates(before), now, keys[order], order)
    return {name for name in before if identities([name])[0] in left.keys}


@pytest.mark.parametrize(
    ("before", "now", "left"),
    [
        pytest.param([WHOLE, OTHER], [LOWER, UPPER, OTHER], {OTHER}, id="in two"),
        pytest.param([WHOLE, OTHER], [*PARTS, OTHER], {OTHER}, id="in four"),
        pytest.param([LOWER, UPPER, OTHER], [WHOLE, OTHER], {OTHER}, id="merged"),
        pytest.param([WHOLE, OTHER], [OTHER], {WHOLE, OTHER}, id="on its way"),
        pytest.param([WHOLE, OTHER], [LOWER, OTHER], {WHOLE, OTHER}, id="one half is seen"),
        pytest.param([WHOLE], [ELSEWHERE, UPPER], {WHOLE}, id="of two namespaces"),
        pytest.param([], [LOWER, UPPER], set(), id="nothing was known"),
    ],
)
def test_ancestors(before: list[str], now: list[str], left: set[str]) -> None:
    assert kept(before, now) == left
