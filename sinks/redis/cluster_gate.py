"""Controls whether a cluster's records may be written: the job rebuilds them, then opens them.

A server that restarted, or was replaced, may have lost its last writes. It is closed automatically,
as its data has another history than the one it was opened on: no record can be changed, and brokers
keep their leases only by reporting what they saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

import msgspec
import redis

from sinks.errors import Closed, Evicting, Fenced, GenerationSpent, SinkError
from sinks.redis.hints import write_hints
from sinks.redis.leasing.leases import Leases
from sinks.redis.rebuild_sources import RebuildSources
from sinks.redis.scripts import (
    BROKERS_SCRIPTS,
    hints_script,
    open_script,
    owned_script,
    restore_script,
)
from sinks.redis.server.connections import address, translate_errors
from sinks.redis.server.script import no_master, run
from sinks.redis.server.survey import evicting, history_of
from trimtab.ownership import LONGEST_LEASE_MS
from trimtab.wire import keys
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Record

CLOSED_FOR_MS: Final = LONGEST_LEASE_MS + 1_000
"""By then every broker has renewed its lease on the closed store and reported what it saw, or has
stopped serving. The extra second allows for a broker's clock that is slower than the server's."""

_PAGE: Final = 500
"""Records that a script run restores: it blocks the server for a few milliseconds."""


class Closure(NamedTuple):
    """A cluster that must be rebuilt before it is opened."""

    history: str
    """The data's history: the master's ``master_replid``."""
    wait_ms: int
    """Time from now until it may be opened at the earliest."""
    since: int
    """When it was closed, by the server's clock; changes if the server loses everything."""


class ClusterGate:
    """Opens the clusters of one Redis for writing. All methods also raise StoreUnavailable and
    Misconfigured."""

    def __init__(
        self,
        client: redis.Redis,
        longest_lease_ms: int = LONGEST_LEASE_MS,
        replicas: int | None = None,
    ) -> None:
        """``replicas``: how many must have acknowledged lately; None: half of the servers connected
        when it is opened, so that a majority knows everything that was granted."""
        self._client = client
        self.sources = RebuildSources(client)
        self._longest_lease_ms = longest_lease_ms
        self._replicas = "" if replicas is None else str(replicas)
        self._opened_on: dict[tuple[str, int], str] = {}

    def open(
        self, cluster: str, generation: int, rebuilt_on: str = "", closed_for_ms: int = 0
    ) -> Closure | None:
        """Let ``generation`` write; None if it now may. Opening twice is harmless.

        ``rebuilt_on`` is the history whose records were rebuilt, which must have been closed for
        ``closed_for_ms``. Raises Fenced if a higher generation opened it, GenerationSpent if this
        one did, on data that is gone, Evicting, and Isolated: it is closed, and the time counts
        once enough replicas have acknowledged.
        """
        known = self._opened_on.get((cluster, generation), "")
        status, detail, *more = run(
            self._client,
            open_script(),
            [
                keys.open_key(cluster),
                keys.replicas_key(cluster),
                keys.ownership_key(cluster),
                keys.bundles_key(cluster),
            ],
            [
                str(generation),
                known,
                str(self._longest_lease_ms),
                rebuilt_on,
                str(closed_for_ms),
                self._replicas,
            ],
        )
        match status:
            case "opened":
                self._opened_on[cluster, generation] = detail
                self._load_scripts()
                return None
            case "rebuild":
                # Brokers renew their leases while it is closed too.
                self._load_scripts()
                return Closure(detail, int(more[0]), int(more[1]))
            case "fenced":
                raise _fenced(cluster, generation, detail)
            case "replica" | "isolated":
                raise no_master(self._client, status, detail)
            case "evicts":
                raise Evicting(f"Redis at {address(self._client)} {evicting(detail)}")
            case _:
                raise GenerationSpent(f"generation {generation} was opened on data that is gone")

    def is_open(self, cluster: str) -> bool:
        """Whether records may be changed, and trusted: a generation has opened this data, and
        neither the records nor their index were deleted since."""
        with translate_errors(self._client), self._client.pipeline(transaction=False) as together:
            together.hmget(keys.open_key(cluster), "replid", "run_id")
            together.hget(keys.ownership_key(cluster), keys.MARK)
            together.zrangebylex(keys.bundles_key(cluster), f"[{keys.MARK}", f"[{keys.MARK}")
            together.info("replication")
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            answers: Any = together.execute()
        (opened_on, by_older_job), records, index, server = answers
        is_marked = records is not None and bool(index)
        return opened_on == history_of(server) and by_older_job is None and is_marked

    def was_replicated(self, cluster: str) -> bool:
        """Whether the store remembers replicas: it is best to find the master, and how many must
        acknowledge, once they follow it again."""
        names = keys.open_key(cluster), keys.replicas_key(cluster)
        with translate_errors(self._client), self._client.pipeline(transaction=False) as together:
            together.hmget(names[0], "replicated", "replicas", "connected")
            together.hget(names[1], "online")
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            opened, online = together.execute()
        # What is no number was spoiled; brokers may write the second.
        return any(number not in (None, b"0") for number in (*opened, online))

    def restore(
        self, cluster: str, generation: int, records: Mapping[str, Record], unjournalled: Set[str]
    ) -> int:
        """Write the records that are newer than the stored ones; returns how many.

        ``unjournalled`` names the bundles whose record the journal topic lacks. Raises Fenced.
        """
        restored = 0
        for page in _pages(records):
            entries = [
                (bundle, msgspec.json.encode(record).decode(), bundle in unjournalled)
                for bundle, record in page
            ]
            status, detail = run(
                self._client,
                restore_script(),
                [
                    keys.open_key(cluster),
                    keys.ownership_key(cluster),
                    keys.journal_key(cluster),
                    keys.bundles_key(cluster),
                    keys.owned_key(cluster, ""),
                    keys.unjournalled_key(cluster),
                ],
                [cluster, str(generation), msgspec.json.encode(entries).decode()],
            )
            match status:
                case "restored":
                    restored += int(detail)
                case "fenced":
                    raise _fenced(cluster, generation, detail)
                case _:
                    raise SinkError(f"{cluster} cannot be restored: {detail}")
        return restored

    def note_unjournalled(self, cluster: str, bundles: Sequence[str]) -> None:
        """Have the relay put the newest records of these bundles into the journal."""
        with translate_errors(self._client):
            for start in range(0, len(bundles), _PAGE):
                page = bundles[start : start + _PAGE]
                self._client.sadd(keys.unjournalled_key(cluster), *page)

    def note_owned(self, cluster: str, generation: int, bundles: Sequence[str]) -> None:
        """Index what brokers own, and which bundles exist, from the records of ``bundles``; raises
        Fenced."""
        names = [
            keys.open_key(cluster),
            keys.ownership_key(cluster),
            keys.bundles_key(cluster),
            keys.owned_key(cluster, ""),
        ]
        for start in range(0, len(bundles), _PAGE):
            arguments = [str(generation), *bundles[start : start + _PAGE]]
            status, detail = run(self._client, owned_script(), names, arguments)
            if status == "fenced":
                raise _fenced(cluster, generation, detail)
            if status == "refused":
                raise SinkError(f"{cluster} cannot be restored: {detail}")

    def outdated_agents(self, cluster: str) -> set[str]:
        """Brokers with agents of an older version: they keep their bundles, and obey no command."""
        return Leases(self._client).outdated(cluster)

    def set_hints(self, cluster: str, generation: int, hints: Hints) -> None:
        """Store hints for lookups about where unowned bundles may go; raises Fenced and Closed."""
        status, detail = run(
            self._client,
            hints_script(),
            [
                keys.open_key(cluster),
                keys.hints_key(cluster),
                keys.placed_key(cluster),
                keys.tallies_key(cluster),
                keys.groups_key(cluster),
            ],
            [str(generation), *write_hints(hints)],
        )
        if status == "fenced":
            raise _fenced(cluster, generation, detail)
        if status == "closed":
            raise Closed(f"{cluster} is closed: {detail}")

    def _load_scripts(self) -> None:
        with translate_errors(self._client):
            for script in BROKERS_SCRIPTS:
                self._client.script_load(script().text)


def _fenced(cluster: str, generation: int, found: str) -> Fenced:
    text = f"{cluster} is open to generation {found}, ours is {generation}"
    return Fenced(text, int(found))


def _pages(records: Mapping[str, Record]) -> Iterator[list[tuple[str, Record]]]:
    entries = list(records.items())
    return (entries[start : start + _PAGE] for start in range(0, len(entries), _PAGE))
