"""Opening a cluster's records to this job, rebuilt where the store may have lost some of them.

ask the gate; open: done
not open: nobody can change a record now
  wait until every broker has said what it saw, or has stopped serving
  claim a generation above every record's, where this job's is not: Kafka has forgotten claims
  restore the records with the highest epochs, of the journal topic and of the brokers
  open; the generation is one that nobody has used yet
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from sinks.errors import Closed, Fenced, GenerationSpent, Misconfigured, SinkError, StoreUnavailable
from sinks.kafka.readable import Readable
from sinks.redis.cluster_gate import CLOSED_FOR_MS, Closure, ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from streaming.ignored_records import UNREADABLE, tell_ignored
from streaming.leader.leadership import Leadership
from streaming.metrics.exposition import Exposition
from trimtab import metrics
from trimtab.doubt import Doubt
from trimtab.store.rebuild import Rebuilt, doubtful, rebuild_records
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Record

log = structlog.get_logger()

Journal = Callable[[str], Mapping[str, Record]]
"""The newest journalled records of a cluster."""

_LOOK_SECONDS: Final = 0.5

_NAMED: Final = 20
"""Brokers in a line of the log."""


class StoreOpener:
    """Opens clusters for one job; one thread calls it."""

    def __init__(  # noqa: PLR0913 - what it opens with, and as whom
        self,
        gate: ClusterGate,
        store: OwnershipStore,
        journal: Journal,
        tenure: Leadership,
        shown: Exposition,
        closed_for_ms: int = CLOSED_FOR_MS,
        waits: Callable[[], object] = lambda: None,
    ) -> None:
        """``waits``: told again and again while a cluster is closed, which is no standstill."""
        self._gate = gate
        self._store = store
        self._journal = journal
        self._tenure = tenure
        self._shown = shown
        self._closed_for_ms = closed_for_ms
        self._waits = waits
        self._closed_until: dict[tuple[str, str, int], float] = {}
        """By this machine's clock, for each cluster, history and time since which it is closed."""
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
        while True:
            self.open(cluster)
            # It may have closed since.
            with suppress(Closed, Fenced):
                return self._gate.set_hints(cluster, self.generation, hints)

    def look(self, cluster: str) -> None:
        """Close it if it must be rebuilt, and wait for nothing; raises what `open` does.

        Of several clusters all are looked at before the first is opened: one after another, a
        server that restarts would cost a lease's time for each, and the last one's brokers would
        wait for all.
        """
        self._as_newest(partial(self._ask, cluster))

    def look_ahead(self, reporting: Callable[[], Iterable[str]]) -> None:
        """The same for all clusters that report, before the query starts: what must be closed for a
        while is closed by the time of its first batch. That batch meets whatever goes wrong here.
        """
        try:
            clusters = sorted(reporting())
        except SinkError as error:
            log.warning("clusters are looked at later", cause=str(error))
            return
        for cluster in clusters:
            try:
                if not (self._gate.is_open(cluster) or self._gate.was_replicated(cluster)):
                    self.look(cluster)
            except SinkError as error:
                log.warning("a cluster is looked at later", cluster=cluster, cause=str(error))

    def open(self, cluster: str) -> None:
        """Return once this job may write; raises Fenced, StoreUnavailable and KafkaUnavailable."""
        self._as_newest(partial(self._open, cluster))
        if cluster not in self.clusters:
            self.clusters |= {cluster}
            log.info("ownership store is open", cluster=cluster)
            self._name_outdated(cluster)

    def _as_newest(self, action: Callable[[], object]) -> None:
        """Do it, if need be once more with a generation that nobody has used yet."""
        try:
            action()
        except (GenerationSpent, Fenced) as error:
            # Spent: brokers may have seen epochs of this generation that the server has forgotten.
            # Fenced: a newer job has claimed, as Kafka knows then, or Kafka has lost claims.
            self._tenure.renew(error.generation if isinstance(error, Fenced) else 0)
            log.warning("new generation", cause=str(error), generation=self._tenure.generation)
            action()

    def _ask(self, cluster: str) -> Closure | None:
        """Open it if it may be; else it is closed from now on."""
        closure = self._gate.open(cluster, self.generation, "", self._closed_for_ms)
        if closure is None:
            self._forget(cluster)
        else:
            self._over(cluster, closure)
        return closure

    def _over(self, cluster: str, closure: Closure) -> float:
        """When it may be opened by this machine's clock, counted from the first look at it."""
        wait_s = max(closure.wait_ms, self._closed_for_ms) / 1000
        # Of this job as a whole, however often it is interrupted and asks again. A server that is
        # emptied keeps its history, and is closed anew.
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
        # Also a store without a record, for it cannot know what it has forgotten.
        log.warning("rebuilding ownership", cluster=cluster, seconds=closure.wait_ms / 1000)
        self.doubted(cluster, Doubt.UNSTABLE)
        with self._shown.timed(metrics.REBUILD_SECONDS):
            while closure is not None:
                self._wait(cluster, closure)
                stored = self._store.readable_records(cluster)
                lacking = self._lacking(cluster, closure, stored)
                if lacking.newest_generation >= self.generation:
                    self._outgrow(cluster, lacking.newest_generation)
                    closure = self._ask(cluster)
                    continue
                self._gate.restore(cluster, self.generation, lacking.records, lacking.unjournalled)
                sound = stored.records.keys() - doubtful(stored.records, self.generation).keys()
                names = sorted(sound | lacking.records.keys())
                self._gate.note_owned(cluster, self.generation, names)
                closure = self._gate.open(
                    cluster, self.generation, closure.history, self._closed_for_ms
                )
            self._forget(cluster)
        self._report(cluster, lacking)

    def _wait(self, cluster: str, closure: Closure) -> None:
        """Until the history has been closed for long enough, by the server's clock and by this
        machine's: the server's may jump meanwhile."""
        seen: Closure | None = closure
        while seen is not None and seen.history == closure.history:
            seen = self._gate.open(cluster, self._tenure.generation, "", self._closed_for_ms)
            if seen is None:
                return
            left = max(self._over(cluster, seen) - time.monotonic(), seen.wait_ms / 1000)
            if left <= 0.0:
                return
            self._waits()
            if self.ended.wait(min(left, _LOOK_SECONDS)):
                raise StoreUnavailable("the job ends before the ownership store is rebuilt")

    def _lacking(self, cluster: str, closure: Closure, stored: Readable) -> Rebuilt:
        said = self._gate.heard(cluster, closure.history)
        # Only now: what a relay had in hand when the server died has reached Kafka meanwhile.
        journalled = self._journal(cluster)
        self._warn(cluster, "store", "the store", stored)
        self._warn(cluster, "journal", "the journal topic", Readable(dict(journalled)))
        for broker, heard in said.items():
            self._warn(cluster, "brokers", broker, heard)
        return rebuild_records(
            stored.records,
            journalled,
            [heard.records for heard in said.values()],
            self.generation,
            stored.unreadable,
        )

    def _warn(self, cluster: str, kind: str, source: str, read: Readable) -> None:
        """Tell what of a source does not count: it may be forged, or of another release."""
        doubted = doubtful(read.records, self.generation)
        doubted |= dict.fromkeys(read.unreadable, UNREADABLE)
        tell_ignored(self._shown, cluster, kind, source, doubted)

    def _outgrow(self, cluster: str, newest: int) -> None:
        """Claim a generation above that of a record, whose bundle nobody could move otherwise."""
        log.warning(
            "records have generations that Kafka does not know: trimtab.generations was made anew",
            cluster=cluster,
            newest=newest,
            generation=self.generation,
        )
        self._tenure.renew(above=newest)
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
        log.warning("rebuilt", cluster=cluster, from_journal=journalled, from_brokers=told)
        self.doubted(cluster, Doubt.STABLE)


def _untold(_cluster: str, _level: Doubt) -> None:
    """Nobody wants to know."""
