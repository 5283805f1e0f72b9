"""Opens a cluster's records to this job; rebuilds them if the store may have lost some.

ask the gate; open: done
not open: no record can be changed now
  wait until every broker has reported what it saw, or has stopped serving
  claim a generation above every record's if this job's is not: Kafka has lost claims
  claim one too if an earlier rebuild has made records of this generation, and was interrupted
  restore the records with the highest epochs, from the journal, its topic and the brokers
  open; no job has used the generation before
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from sinks.errors import (
    Closed,
    Fenced,
    GenerationSpent,
    Isolated,
    Misconfigured,
    SinkError,
    StoreUnavailable,
)
from sinks.exposition import Exposition
from sinks.redis.cluster_gate import CLOSED_FOR_MS, Closure, ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from streaming.leader.leadership import Leadership
from streaming.leader.lost_records import Journal, LostRecords
from trimtab.doubt import Doubt
from trimtab.metrics import job as metrics
from trimtab.store.rebuild import Rebuilt
from trimtab.wire.hints import Hints

log = structlog.get_logger()

_LOOK_SECONDS: Final = 0.5

_NAMED: Final = 20
"""Most brokers named in one log line."""


class StoreOpener:
    """Opens clusters for one job; one thread calls it."""

    def __init__(  # noqa: PLR0913 - its stores, its leadership and its settings
        self,
        gate: ClusterGate,
        store: OwnershipStore,
        journal: Journal,
        leadership: Leadership,
        shown: Exposition,
        closed_for_ms: int = CLOSED_FOR_MS,
        *,
        waits: Callable[[], object] = lambda: None,
        ended: threading.Event | None = None,
        doubted: Callable[[str, Doubt], object] = lambda *_: None,
    ) -> None:
        """``waits``: called again and again while a cluster is closed, for the watchdog.

        ``ended``: set when the job shuts down. ``doubted``: called when the trust in a cluster's
        records changes.
        """
        self._gate = gate
        self._lost = LostRecords(gate.sources, store, journal, shown)
        self._leadership = leadership
        self._shown = shown
        self._closed_for_ms = closed_for_ms
        self._waits = waits
        self._closed_until: dict[tuple[str, str, int], float] = {}
        """Cluster, history and closing time to when it may open, by this machine's clock."""
        self._invented: set[tuple[str, int]] = set()
        """Cluster and generation in which a rebuild has made records of its own."""
        self.clusters: frozenset[str] = frozenset()
        """The clusters opened so far."""
        self._ended = ended or threading.Event()
        self._doubted = doubted

    @property
    def generation(self) -> int:
        return self._leadership.generation

    def hint(self, cluster: str, hints: Hints) -> None:
        """Store hints for lookups about where bundles may go; raises the errors of `open`."""
        while True:
            self.open(cluster)
            # It may have closed since.
            with suppress(Closed, Fenced):
                return self._gate.set_hints(cluster, self.generation, hints)

    def look(self, cluster: str) -> None:
        """Close the cluster if it must be rebuilt, without waiting; raises the errors of `open`.

        All clusters are checked before the first is opened. One after another, a server restart
        would cost a lease's time for each, and the last cluster's brokers would wait for all.
        """
        self._as_newest(partial(self._ask, cluster))

    def look_ahead(self, reporting: Callable[[], Iterable[str]]) -> None:
        """Check all reporting clusters before the query starts: those that must be rebuilt are then
        closed before its first batch. That batch handles any error met here.
        """
        try:
            clusters = sorted(reporting())
        except SinkError as error:
            log.warning("clusters are checked later", cause=str(error))
            return
        for cluster in clusters:
            try:
                if not (self._gate.is_open(cluster) or self._gate.was_replicated(cluster)):
                    self.look(cluster)
            except SinkError as error:
                log.warning("a cluster is checked later", cluster=cluster, cause=str(error))

    def open(self, cluster: str) -> None:
        """Return once this job may write; raises Fenced, StoreUnavailable and KafkaUnavailable."""
        self._as_newest(partial(self._open, cluster))
        if cluster not in self.clusters:
            self.clusters |= {cluster}
            log.info("ownership store is open", cluster=cluster)
            self._name_outdated(cluster)

    def _as_newest(self, action: Callable[[], object]) -> None:
        """Run the action; if the generation is spent or fenced, again with one never used."""
        try:
            action()
        except (GenerationSpent, Fenced) as error:
            if isinstance(error, Fenced):
                self._shown.count(metrics.FENCED, "redis")
            # Spent: brokers may have seen epochs of this generation that the server has forgotten.
            # Fenced: a newer job has claimed, which Kafka then knows, or Kafka has lost claims.
            self._leadership.renew(error.generation if isinstance(error, Fenced) else 0)
            log.warning("new generation", cause=str(error), generation=self._leadership.generation)
            action()

    def _ask(self, cluster: str) -> Closure | None:
        """Open the cluster if allowed; otherwise it is closed from now on."""
        try:
            closure = self._gate.open(cluster, self.generation, "", self._closed_for_ms)
        except Isolated:
            # Closed, and to be rebuilt once enough replicas follow.
            self._doubted(cluster, Doubt.UNSTABLE)
            raise
        if closure is None:
            self._forget(cluster)
        else:
            self._over(cluster, closure)
        return closure

    def _over(self, cluster: str, closure: Closure) -> float:
        """When it may open by this machine's clock, counted from the first check of it."""
        wait_s = max(closure.wait_ms, self._closed_for_ms) / 1000
        # One deadline for the whole job, even if it is interrupted and asks again. A server that is
        # emptied keeps its history, and closes again.
        key = cluster, closure.history, closure.since
        return self._closed_until.setdefault(key, time.monotonic() + wait_s)

    def _forget(self, cluster: str) -> None:
        self._closed_until = {
            of: until for of, until in self._closed_until.items() if of[0] != cluster
        }

    def _name_outdated(self, cluster: str) -> None:
        outdated = sorted(self._gate.outdated_agents(cluster))
        if outdated:
            log.warning(
                "agents of an older version keep their bundles and are given none; upgrade them",
                cluster=cluster,
                brokers=outdated[:_NAMED],
                more=max(0, len(outdated) - _NAMED),
            )

    def _open(self, cluster: str) -> None:
        closure = self._ask(cluster)
        if closure is None:
            return
        # A store without records too: it cannot know what it has lost.
        log.warning("rebuilding ownership", cluster=cluster, seconds=closure.wait_ms / 1000)
        self._doubted(cluster, Doubt.UNSTABLE)
        with self._shown.timed(metrics.REBUILD_SECONDS):
            while closure is not None:
                self._wait(cluster, closure)
                lacking, sound = self._lost.find(cluster, closure, self.generation)
                if lacking.newest_generation >= self.generation:
                    self._outgrow(cluster, lacking.newest_generation)
                    closure = self._ask(cluster)
                    continue
                if (cluster, self.generation) in self._invented:
                    # That rebuild was interrupted. What it wrote may come back, and what follows
                    # would have the same epochs.
                    self._leadership.renew()
                    closure = self._ask(cluster)
                    continue
                if lacking.invents(self.generation):
                    self._invented.add((cluster, self.generation))
                self._gate.restore(cluster, self.generation, lacking.records, lacking.unjournalled)
                names = sorted(sound | lacking.records.keys())
                self._gate.note_owned(cluster, self.generation, names)
                self._gate.note_unjournalled(cluster, sorted(lacking.behind))
                closure = self._gate.open(
                    cluster, self.generation, closure.history, self._closed_for_ms
                )
            self._forget(cluster)
        self._report(cluster, lacking)

    def _wait(self, cluster: str, closure: Closure) -> None:
        """Wait until the history has been closed long enough by the server's clock and by this
        machine's: the server's may jump meanwhile."""
        seen: Closure | None = closure
        while seen is not None and seen.history == closure.history:
            seen = self._gate.open(cluster, self._leadership.generation, "", self._closed_for_ms)
            if seen is None:
                return
            left = max(self._over(cluster, seen) - time.monotonic(), seen.wait_ms / 1000)
            if left <= 0.0:
                return
            self._waits()
            if self._ended.wait(min(left, _LOOK_SECONDS)):
                raise StoreUnavailable("the job ends before the ownership store is rebuilt")

    def _outgrow(self, cluster: str, newest: int) -> None:
        """Claim a generation above a record's; otherwise no job could move its bundle."""
        log.warning(
            "records have generations that Kafka does not know: trimtab.generations was recreated",
            cluster=cluster,
            newest=newest,
            generation=self.generation,
        )
        self._leadership.renew(above=newest)
        if self.generation <= newest:
            raise Misconfigured(
                f"{cluster} has records of generation {newest}, and trimtab.generations gave "
                f"{self.generation}: claim again until it is higher"
            )

    def _report(self, cluster: str, lacking: Rebuilt) -> None:
        told = len(lacking.unjournalled)
        journalled = len(lacking.records) - told
        self._shown.count(metrics.RESTORED, cluster, "journal", by=journalled)
        self._shown.count(metrics.RESTORED, cluster, "brokers", by=told)
        log.warning(
            "ownership is rebuilt", cluster=cluster, from_journal=journalled, from_brokers=told
        )
        self._doubted(cluster, Doubt.STABLE)
