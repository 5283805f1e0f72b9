"""Reports records that the job ignores: forged, damaged, or from another release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog

from sinks.exposition import Exposition
from trimtab.metrics import job as metrics

log = structlog.get_logger()

UNREADABLE: Final = "it cannot be read"

_TOLD: Final = 5
"""Ignored records of a source that one warning names."""


def tell_ignored(
    shown: Exposition, cluster: str, kind: str, source: str, doubted: Mapping[str, str]
) -> None:
    """Count and log ignored records; ``doubted`` maps bundle to cause, ``kind`` is a label."""
    if doubted:
        shown.count(metrics.IGNORED_RECORDS, cluster, kind, by=len(doubted))
        told = [f"{bundle}: {why}" for bundle, why in sorted(doubted.items())[:_TOLD]]
        log.warning(
            "records ignored", cluster=cluster, source=source, number=len(doubted), first=told
        )
