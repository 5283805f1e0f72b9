"""Split a bundle's range in the middle (Pulsar RangeEquallyDivideBundleSplitAlgorithm)."""

from __future__ import annotations

from trimtab.settings import SplitSettings
from trimtab.splitting.request import SplitRequest


def divide(request: SplitRequest, settings: SplitSettings) -> list[int]:  # noqa: ARG001
    """One boundary, regardless of topics."""
    low, high = request.bundle
    return [low + (high - low) // 2]
