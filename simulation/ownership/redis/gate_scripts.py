"""Opening and rebuilding the simulated server, as open.lua and restore.lua do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from simulation.ownership.redis.contents import Contents, Opening
from simulation.ownership.redis.process import MemoryProcess, majority_of, near_of
from sinks.errors import GenerationSpent, Isolated, SinkError
from sinks.redis.cluster_gate import Closure
from trimtab.ownership import (
    REPLICA_WAIT_MS,
    Event,
)
from trimtab.wire.ownership import Change, Record


class GateScripts(MemoryProcess):
    """The scripts that open a cluster, and those that run while it is closed."""

    def open(
        self,
        cluster: str,
        generation: int,
        known: str,
        rebuilt_on: str = "",
        closed_for_ms: int = 0,
    ) -> Closure | None:
        """Like `ClusterGate.open`; ``known``: the history this generation was opened on, or ""."""
        here, now = self._changing(cluster), self.now_ms()
        opening, is_open = here.opening, self.is_open(cluster)
        self._require_not_fenced(here, generation)
        lost = not is_open or opening.generation != generation
        elsewhere = opening.generation == generation and opening.opened_on and not is_open
        if (known and (known != self.history or lost)) or elsewhere:
            if opening.opened_on:
                self._opening(cluster, opening._replace(opened_on=""))
            raise GenerationSpent(f"generation {generation} was opened on data that is gone")
        self.knows_scripts = True
        is_of_here = opening.opened_on == self.history
        noted = here.noted_replicas(self.history)
        least = max(majority_of(len(self.replication().replicas)), majority_of(noted.online))
        if is_of_here or opening.rebuild_on == self.history:
            least = max(least, opening.replicas)
        replicated = opening.replicated or opening.replicas > 0 or noted.ever > 0
        if not is_open:
            left_behind = closed_for_ms > 0 and (here.is_empty or replicated)
            since = self._closed_since(opening, REPLICA_WAIT_MS if left_behind else 0)
            remaining = max(0, since + closed_for_ms - now)
            too_few = near_of(self.replication().replicas) < least
            if too_few or rebuilt_on != self.history or remaining > 0 or not here.marks:
                self._put(cluster, "marks", "", True)
                self._opening(
                    cluster,
                    opening._replace(
                        generation=generation,
                        opened_on="",
                        rebuild_on=self.history,
                        since=0 if too_few else since,
                        replicas=least,
                        replicated=replicated or least > 0,
                    ),
                )
                if too_few:
                    raise Isolated("too few replicas follow it")
                return Closure(self.history, remaining, since)
        self._opening(
            cluster,
            Opening(generation, self.history, replicas=least, replicated=replicated or least > 0),
        )
        if least > 0:
            self._are_in_touch(cluster, least)
        return None

    def _closed_since(self, opening: Opening, wait_ms: int) -> int:
        since = opening.since if opening.rebuild_on == self.history else 0
        now = self.now_ms()
        return min(since, now + REPLICA_WAIT_MS) or now + wait_ms

    def restore(
        self,
        cluster: str,
        generation: int,
        records: Mapping[str, Record],
        unjournalled: Set[str],
    ) -> int:
        """Like `ClusterGate.restore`."""
        here = self._rebuilding(cluster, generation)
        newer = {
            bundle: record
            for bundle, record in records.items()
            if bundle not in here.records or record.epoch > here.records[bundle].epoch
        }
        for bundle, record in newer.items():
            change = Change(cluster=cluster, bundle=bundle, event=Event.RESTORE, record=record)
            self._write(change, journalled=bundle in unjournalled)
        return len(newer)

    def note_owned(self, cluster: str, generation: int, bundles: Iterable[str]) -> None:
        """Like `ClusterGate.note_owned`."""
        here = self._rebuilding(cluster, generation)
        owned: dict[str, set[str]] = {}
        for bundle in bundles:
            record = here.records.get(bundle)
            if record is not None and record.owner is not None:
                owned.setdefault(record.owner, set()).add(bundle)
        for broker, theirs in owned.items():
            known = here.owned.get(broker, frozenset())
            self._put(cluster, "owned", broker, known | theirs)

    def _rebuilding(self, cluster: str, generation: int) -> Contents:
        here = self._changing(cluster)
        self._require_not_fenced(here, generation)
        closed = here.opening.generation == generation and not here.opening.opened_on
        if not closed or here.opening.rebuild_on != self.history:
            raise SinkError("it is not being rebuilt")
        return here

    def _opening(self, cluster: str, opening: Opening) -> None:
        self._put(cluster, "openings", "", opening)
