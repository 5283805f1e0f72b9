"""Tells of records that the job does not believe: forged, damaged, or of another release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog

from streaming.metrics.exposition import Exposition
from trimtab import metrics

log = structlog.get_logger()

UNREADABLE: Final = "it cannot be read"

_TOLD: Final = 5
"""Of the records of a source that are ignored, a warning names so many."""


def tell_ignored(
    shown: Exposition, cluster: str, kind: str, source: str, doubted: Mapping[str, str]
) -> None:
    """Count and name records that are ignored; ``doubted`` is bundle to why, ``kind`` a label."""
    if doubted:
        shown.count(metrics.DISBELIEVED, cluster, kind, by=len(doubted))
        told = [f"{bundle}: {why}" for bundle, why in sorted(doubted.items())[:_TOLD]]
        log.warning(
            "records ignored", cluster=cluster, source=source, number=len(doubted), first=told
        )
