"""Place on the broker with the least message rate in the long run.

Pulsar LeastLongTermMessageRate:

score = infinite                                   if usage > overloaded_threshold
        arriving + settled long-term message rate  otherwise
best  = every candidate with the least score (all of them if all are overloaded)
"""

from __future__ import annotations

import numpy as np

from trimtab.load import usage
from trimtab.placement.request import Request
from trimtab.settings import Settings
from trimtab.view import Ints


def place(
    request: Request, candidates: Ints, history: None, settings: Settings
) -> tuple[Ints, None]:
    """The candidates with the least long-term rate."""
    loads = usage(request.view.brokers.resources[:, candidates], settings.weights)
    rate = request.projection.arriving[candidates] + request.projection.settled[candidates]
    score = np.where(loads > settings.round.overloaded_threshold, np.inf, rate)
    return np.sort(candidates[score == score.min()]), history
