"""Split so that both children have equally many topics (Pulsar TopicCountEquallyDivide...).

a, b = the positions before and after the middle of the sorted topics
boundary = half way from a to b; if b = a + 1 it is a itself, which then is in the upper child
"""

from __future__ import annotations

import numpy as np

from trimtab.settings import SplitSettings
from trimtab.splitting.request import SplitRequest


def divide(request: SplitRequest, settings: SplitSettings) -> list[int]:  # noqa: ARG001
    """One boundary, or none for fewer than two topics."""
    ordered = np.sort(request.positions)
    half = len(ordered) // 2
    if half == 0:
        return []
    before, after = int(ordered[half - 1]), int(ordered[half])
    return [before + (after - before) // 2]
