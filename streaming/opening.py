"""Opening a cluster's records to this job, rebuilt where the store may have lost some of them.

ask the gate; open: done
not open: nobody can change a record now
  wait until every broker has said what it saw, or has stopped serving
  restore the records with the highest epochs, of the journal topic and of the brokers
  open; the generation is one that nobody has used yet
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from sinks.errors import GenerationSpent, StoreUnavailable
from sinks.gate import CLOSED_FOR_MS, Closure, Gate
from sinks.ownership_store import OwnershipStore
from streaming.exposition import Exposition
from streaming.tenure import Tenure
from trimtab import metrics
from trimtab.doubt import Doubt
from trimtab.rebuild import Rebuilt, rebuilt
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Record

log = structlog.get_logger()

Journal = Callable[[str], Mapping[str, Record]]
"""The newest journalled records of a cluster."""

_LOOK_SECONDS: Final = 0.5


class Opener:
    """Opens clusters for one job; one thread calls it."""

    def __init__(  # noqa: PLR0913 - what it opens with, and as whom
        self,
        gate: Gate,
        store: OwnershipStore,
        journal: Journal,
        tenure: Tenure,
        shown: Exposition,
        closed_for_ms: int = CLOSED_FOR_MS,
    ) -> None:
        self._gate = gate
        self._store = store
        self._journal = journal
        self._tenure = tenure
        self._shown = shown
        self._closed_for_ms = closed_for_ms
        self.clusters: frozenset[str] = frozenset()
        """Those opened so far."""
        self.ended = threading.Event()
        self.doubted: Callable[[str, Doubt], object] = _untold
        """Told how far a cluster's records can be trusted when that changes."""

    @property
    def generation(self) -> int:
        return self._tenure.generation

    def hint(self, cluster: str, hints: Hints) -> None:
        """Tell lookups where bundles may go; raises what `open` does."""
        self.open(cluster)
        self._gate.set_hints(cluster, self.generation, hints)

    def open(self, cluster: str) -> None:
        """Return once this job may write; raises Fenced, StoreUnavailable and KafkaUnavailable."""
        try:
            self._open(cluster)
        except GenerationSpent as error:
            # Brokers may have seen epochs of this generation that the server has forgotten.
            self._tenure.renew()
            log.warning("new generation", cause=str(error), generation=self._tenure.generation)
            self._open(cluster)
        if cluster not in self.clusters:
            self.clusters |= {cluster}
            log.info("ownership store is open", cluster=cluster)

    def _open(self, cluster: str) -> None:
        generation = self._tenure.generation
        closure = self._gate.open(cluster, generation)
        if closure is None:
            return
        # Where nothing was ever owned, there is nobody to wait for.
        fresh = not self._store.records(cluster) and not self._journal(cluster)
        closed_for_ms = 0 if fresh else self._closed_for_ms
        if not fresh:
            log.warning("rebuilding ownership", cluster=cluster, seconds=closed_for_ms / 1000)
            self.doubted(cluster, Doubt.UNSTABLE)
        with self._shown.timed(metrics.REBUILD_SECONDS):
            while closure is not None:
                self._wait(cluster, closure, closed_for_ms)
                lacking = self._lacking(cluster, closure)
                self._gate.restore(cluster, generation, lacking.records, lacking.unjournalled)
                closure = self._gate.open(cluster, generation, closure.run, closed_for_ms)
        if not fresh:
            self._report(cluster, lacking)

    def _wait(self, cluster: str, closure: Closure, closed_for_ms: int) -> None:
        """Until the closed run has been closed for so long."""
        seen: Closure | None = closure
        while seen is not None and seen.run == closure.run:
            seen = self._gate.open(cluster, self._tenure.generation, "", closed_for_ms)
            if seen is None or seen.wait_ms == 0:
                return
            if self.ended.wait(min(seen.wait_ms / 1000, _LOOK_SECONDS)):
                raise StoreUnavailable("the job ends before the ownership store is rebuilt")

    def _lacking(self, cluster: str, closure: Closure) -> Rebuilt:
        said = self._gate.assertions(cluster, closure.run).values()
        return rebuilt(
            self._store.records(cluster),
            # Only now: what a relay had in hand when the server died has reached Kafka meanwhile.
            self._journal(cluster),
            [assertion.records for assertion in said],
            self.generation,
        )

    def _report(self, cluster: str, lacking: Rebuilt) -> None:
        told = len(lacking.unjournalled)
        journalled = len(lacking.records) - told
        self._shown.count(metrics.RESTORED, cluster, "journal", by=journalled)
        self._shown.count(metrics.RESTORED, cluster, "brokers", by=told)
        log.warning("rebuilt", cluster=cluster, from_journal=journalled, from_brokers=told)
        self.doubted(cluster, Doubt.STABLE)


def _untold(_cluster: str, _level: Doubt) -> None:
    """Nobody wants to know."""
