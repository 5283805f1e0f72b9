"""Periodically removes the records of bundles that ended long ago, and sessions of old names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import structlog

from sinks.errors import SinkError
from sinks.exposition import Exposition
from sinks.redis.pruning import Pruner
from trimtab.metrics import job as metrics

log = structlog.get_logger()

PAUSE_SECONDS: Final = 3600.0
"""Pruning reads every record of the cluster: a third of a second of server time for 200,000."""


class Pruning:
    """Prunes the open clusters of one job; one thread calls it."""

    def __init__(
        self,
        pruner: Pruner,
        clusters: Callable[[], Iterable[str]],
        generation: Callable[[], int],
        shown: Exposition,
    ) -> None:
        self._pruner = pruner
        self._clusters = clusters
        self._generation = generation
        self._shown = shown

    def look(self) -> None:
        """Prune all clusters; failures wait for the next time, the heartbeat reports fencing."""
        for cluster in self._clusters():
            try:
                pruned = self._pruner.prune(cluster, self._generation())
                self._pruner.forget_sessions(cluster, self._generation())
            except SinkError as error:
                log.warning(
                    "records of deleted bundles could not be removed",
                    cluster=cluster,
                    cause=str(error),
                )
            else:
                self._shown.count(metrics.PRUNED, cluster, by=pruned)
