"""Split where an operator says (Pulsar SpecifiedPositionsBundleSplitAlgorithm)."""

from __future__ import annotations

from trimtab.settings import SplitSettings
from trimtab.splitting.request import CannotSplit, SplitFlaw, SplitRequest


def divide(request: SplitRequest, settings: SplitSettings) -> list[int]:  # noqa: ARG001
    """The wanted positions that lie inside, sorted; none for fewer than two topics unless forced.

    Raises CannotSplit if no position is given.
    """
    if not request.wanted:
        raise CannotSplit(request.bundle, SplitFlaw.NO_POSITION)
    if len(request.positions) <= 1 and not request.forced:
        return []
    low, high = request.bundle
    return [position for position in sorted(request.wanted) if low < position < high]
