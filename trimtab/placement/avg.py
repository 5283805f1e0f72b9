"""Place where AvgShedder's last plan said, otherwise anywhere (Pulsar AvgShedder as placement).

Within a round the plan travels as `Shed.destination`; this answers for a bundle that is looked up
before its broker has taken it.
"""

from __future__ import annotations

import numpy as np

from trimtab.placement.request import Request
from trimtab.settings import Settings
from trimtab.shedding.avg import AvgHistory
from trimtab.view import Ints


def place(
    request: Request,
    candidates: Ints,
    history: AvgHistory,
    settings: Settings,  # noqa: ARG001 - the contract of a placer
) -> tuple[Ints, AvgHistory]:
    """The planned broker if it is a candidate, else all candidates."""
    target = history.targets.get(request.bundle)
    if target is not None:
        names = request.view.brokers.names
        for row in candidates.tolist():
            if names[row] == target:
                return np.array([row]), history
    return np.sort(candidates), history
