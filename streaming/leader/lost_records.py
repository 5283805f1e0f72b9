"""Finds what a closed store may have lost: from the journal, its topic and brokers' reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from sinks.exposition import Exposition
from sinks.kafka.readable import Readable
from sinks.redis.cluster_gate import Closure
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.rebuild_sources import RebuildSources
from streaming.metrics.ignored_records import UNREADABLE, tell_ignored
from trimtab.store.rebuild import Rebuilt, doubtful, newest_of, rebuild_records
from trimtab.wire.ownership import Record

Journal = Callable[[str], Mapping[str, Record]]
"""Reads the newest journalled records of a cluster."""


class LostRecords:
    """Reads the sources of a cluster's records, each at the moment at which it is complete."""

    def __init__(
        self, sources: RebuildSources, store: OwnershipStore, journal: Journal, shown: Exposition
    ) -> None:
        self._sources = sources
        self._store = store
        self._journal = journal
        self._shown = shown

    def find(
        self, cluster: str, closure: Closure, generation: int
    ) -> tuple[Rebuilt, AbstractSet[str]]:
        """What a closed cluster's store lacks, and the bundles whose stored records are sound."""
        stored = self._store.readable_records(cluster)
        said = self._sources.heard(cluster, closure.history)
        # Before the topic is read: what an empty journal held is in it by then, or was deleted.
        emptied = self._sources.journal_is_empty(cluster)
        # Of changes whose records were deleted, and that the relay has not carried yet.
        unrelayed = self._sources.unrelayed(cluster, generation)
        # Only now: the entries that a relay held when the server died have reached Kafka meanwhile.
        journalled = newest_of(self._journal(cluster), unrelayed)
        self._warn(cluster, generation, "store", "the store", stored)
        self._warn(cluster, generation, "journal", "the journal topic", Readable(dict(journalled)))
        for broker, heard in said.items():
            self._warn(cluster, generation, "brokers", broker, heard)
        lacking = rebuild_records(
            stored.records,
            journalled,
            [heard.records for heard in said.values()],
            generation,
            stored.unreadable,
        )
        sound = stored.records.keys() - doubtful(stored.records, generation).keys()
        return lacking if emptied else replace(lacking, behind=frozenset()), sound

    def _warn(self, cluster: str, generation: int, kind: str, source: str, read: Readable) -> None:
        """Report a source's ignored records: they may be forged, or from another release."""
        doubted = doubtful(read.records, generation)
        doubted |= dict.fromkeys(read.unreadable, UNREADABLE)
        tell_ignored(self._shown, cluster, kind, source, doubted)
