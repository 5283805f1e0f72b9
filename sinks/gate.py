"""Whether a cluster's records may be written: the job opens them, and rebuilds them before that.

A server that restarted, or another one in its place, may have lost its last writes. It is closed
by itself, for its data has another history than the one it was opened on: no record can be changed,
and brokers keep their leases only by saying what they saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

import msgspec
import redis

from sinks.connections import replaced, translated
from sinks.errors import Closed, Fenced, GenerationSpent, SinkError
from sinks.leases import Leases, history_of, literal
from sinks.readable import Readable, readable_assertion
from sinks.scripts import (
    BROKERS_SCRIPTS,
    NO_MASTER,
    hints_script,
    open_script,
    owned_script,
    restore_script,
    run,
)
from trimtab.ownership import LONGEST_LEASE_MS
from trimtab.wire import keys
from trimtab.wire.assertion import Assertion
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Record

CLOSED_FOR_MS: Final = LONGEST_LEASE_MS + 1_000
"""After so long every broker has renewed its lease on the closed store, and said what it saw, or
has stopped serving. The second is for its clock to run slower than the server's."""

_PAGE: Final = 500
"""Records a script restores: a few milliseconds in which the server serves nobody else."""

_ASSERTIONS: Final = 20
"""A call reads so many: one that names a thousand bundles has about 200 kB."""


class Closure(NamedTuple):
    """A cluster that must be rebuilt before it is opened."""

    history: str
    """Of the data: the master's ``master_replid``."""
    wait_ms: int
    """It may be opened so long from now at the earliest."""
    since: int
    """When it was closed, by the server's clock: another time, if it lost everything since."""


class Gate:
    """Those of one Redis. All methods raise StoreUnavailable and Misconfigured beside what they
    name."""

    def __init__(
        self,
        client: redis.Redis,
        longest_lease_ms: int = LONGEST_LEASE_MS,
        replicas: int | None = None,
    ) -> None:
        """``replicas``: how many must have acknowledged lately; None: half of the servers that are
        connected when it is opened, so that a majority knows of whatever was granted."""
        self._client = client
        self._longest_lease_ms = longest_lease_ms
        self._replicas = "" if replicas is None else str(replicas)
        self._opened_on: dict[tuple[str, int], str] = {}

    def open(
        self, cluster: str, generation: int, rebuilt_on: str = "", closed_for_ms: int = 0
    ) -> Closure | None:
        """Let ``generation`` write; None if it may. Opening twice is harmless.

        ``rebuilt_on`` is the history whose records were rebuilt, which must have been closed for
        ``closed_for_ms``. Raises Fenced if a higher generation was let in, and GenerationSpent if
        this one was, on data that is gone.
        """
        known = self._opened_on.get((cluster, generation), "")
        status, detail, *more = run(
            self._client,
            open_script(),
            [keys.open_key(cluster), keys.replicas_key(cluster)],
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
                # Brokers renew their leases also while it is closed.
                self._load_scripts()
                return Closure(detail, int(more[0]), int(more[1]))
            case "fenced":
                raise _fenced(cluster, generation, detail)
            case "replica":
                raise replaced(self._client, NO_MASTER[status])
            case _:
                raise GenerationSpent(f"generation {generation} was opened on data that is gone")

    def is_open(self, cluster: str) -> bool:
        """Whether records may be changed, and believed: some generation was let in on this data."""
        with translated(self._client), self._client.pipeline(transaction=False) as together:
            together.hmget(keys.open_key(cluster), "replid", "run_id")
            together.info("replication")
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            answers: Any = together.execute()
        (opened_on, by_older_job), server = answers
        return opened_on == history_of(server) and by_older_job is None

    def was_replicated(self, cluster: str) -> bool:
        """Whether the store remembers replicas: which of the servers is the master, and how many
        it must hear, is best asked once they follow it again."""
        names = keys.open_key(cluster), keys.replicas_key(cluster)
        with translated(self._client), self._client.pipeline(transaction=False) as together:
            together.hmget(names[0], "replicated", "replicas", "connected")
            together.hget(names[1], "online")
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            opened, online = together.execute()
        # What is no number was spoiled; brokers may write the second.
        return any(number not in (None, b"0") for number in (*opened, online))

    def restore(
        self, cluster: str, generation: int, records: Mapping[str, Record], unjournalled: Set[str]
    ) -> int:
        """Write what is newer than what stands here; how many records were.

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

    def note_owned(self, cluster: str, generation: int, bundles: Sequence[str]) -> None:
        """Note what brokers own, and which bundles there are, as the records of ``bundles`` say;
        raises Fenced."""
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

    def assertions(self, cluster: str, history: str) -> dict[str, Assertion]:
        """What can be read of what brokers said while this history was closed, by broker."""
        heard = self.heard(cluster, history).items()
        return {broker: Assertion(records=said.records) for broker, said in heard}

    def heard(self, cluster: str, history: str) -> dict[str, Readable]:
        """The same, with the names of the records that cannot be read."""
        with translated(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            server: Any = self._client.info("server")
        # Agents of older versions speak to the process, and know of no history.
        of_older_agents = self._heard(cluster, str(server["run_id"]).zfill(40))
        return of_older_agents | self._heard(cluster, history)

    def _heard(self, cluster: str, whom: str) -> dict[str, Readable]:
        prefix = keys.assertion_key(cluster, whom, "")
        heard: dict[str, Readable] = {}
        with translated(self._client):
            names = list(self._client.scan_iter(match=f"{literal(prefix)}*", count=1000))
            for start in range(0, len(names), _ASSERTIONS):
                page = names[start : start + _ASSERTIONS]
                # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
                texts: Any = self._client.mget(page)
                for name, text in zip(page, texts, strict=True):
                    if text is not None:
                        broker = name.decode(errors="replace").removeprefix(prefix)
                        heard[broker] = readable_assertion(text)
        return heard

    def outdated_agents(self, cluster: str) -> set[str]:
        """Brokers whose agents are of an older version: they keep what they serve, and obey
        nothing."""
        return Leases(self._client).outdated(cluster)

    def set_hints(self, cluster: str, generation: int, hints: Hints) -> None:
        """Tell lookups where bundles without an owner may go; raises Fenced and Closed."""
        status, detail = run(
            self._client,
            hints_script(),
            [keys.open_key(cluster), keys.hints_key(cluster), keys.placed_key(cluster)],
            [str(generation), msgspec.json.encode(hints).decode()],
        )
        if status == "fenced":
            raise _fenced(cluster, generation, detail)
        if status == "closed":
            raise Closed(f"{cluster} is closed: {detail}")

    def _load_scripts(self) -> None:
        with translated(self._client):
            for script in BROKERS_SCRIPTS:
                self._client.script_load(script().text)


def _fenced(cluster: str, generation: int, found: str) -> Fenced:
    text = f"{cluster} is open to generation {found}, ours is {generation}"
    return Fenced(text, int(found))


def _pages(records: Mapping[str, Record]) -> Iterator[list[tuple[str, Record]]]:
    entries = list(records.items())
    return (entries[start : start + _PAGE] for start in range(0, len(entries), _PAGE))
