"""Attempts of a batch on one cluster's part of Redis: others go on when it is beyond repair.

An absent Redis is waited for, with the whole batch. A cluster whose data is damaged, whose keys
might be evicted, or that lacks its replicas for long is left out of the batch instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeVar

import structlog

from sinks.errors import Damaged, Evicting, Isolated, Unavailable
from streaming.sink_retry import SinkRetry
from trimtab.metrics import job as metrics

log = structlog.get_logger()

T = TypeVar("T")

ISOLATED_ATTEMPTS: Final = 12
"""A cluster that still lacks its replicas after so many attempts, some ten seconds, is left out of
the batch: fewer: a short partition costs its moves; more: all clusters wait for one."""


class ClusterAttempts:
    """Of one query; remembers what failed, so that a cause is logged once.

    ``done`` names the action in the log: opened, changed.
    """

    def __init__(self, retry: SinkRetry) -> None:
        self._retry = retry
        self._damaged: dict[tuple[str, str], str] = {}
        """Cluster and the action that failed for it, to the cause."""
        self._isolated = Counter[tuple[str, str]]()
        """How often in a row a cluster lacked its replicas, by the action."""

    def unless_damaged(self, cluster: str, done: str, action: Callable[[], T], otherwise: T) -> T:
        """Act; return ``otherwise`` if the cluster's data is damaged or keys might be evicted.

        Later rounds try again, as somebody may have repaired it.
        """
        try:
            result = action()
        except (Damaged, Evicting) as error:
            self._retry.shown.count(metrics.SKIPPED_CLUSTERS, cluster)
            if self._damaged.get((cluster, done)) != str(error):
                log.warning(f"a cluster is not {done}", cluster=cluster, cause=str(error))
            self._damaged[cluster, done] = str(error)
            return otherwise
        self._damaged.pop((cluster, done), None)
        return result

    def attempt(self, cluster: str, done: str, action: Callable[[], T]) -> T:
        """Try until Redis takes it; raises Damaged once the cluster lacked replicas too often:
        others may count on fewer."""

        def once() -> T:
            try:
                result = action()
            except Isolated as error:
                self._isolated[cluster, done] += 1
                if self._isolated[cluster, done] < ISOLATED_ATTEMPTS:
                    raise
                raise Damaged(
                    f"{error}. If replicas were taken away for good: set redis_replicas and start "
                    "the job again"
                ) from error
            self._isolated.pop((cluster, done), None)
            return result

        return self._retry.attempt("redis", Unavailable, once)
