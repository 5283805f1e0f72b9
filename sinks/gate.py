"""Whether a cluster's records may be written: the job opens them, and rebuilds them before that.

A server that restarted, or another one in its place, may have lost its last writes. It is closed by
itself, for it has another run_id than the one it was opened on: nobody can change a record, and
brokers keep their leases only by saying what they saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, Final, NamedTuple

import msgspec
import redis

from sinks.connections import translated
from sinks.errors import Fenced, GenerationSpent, SinkError
from sinks.leases import literal
from sinks.scripts import BROKERS_SCRIPTS, hints_script, open_script, restore_script, run
from trimtab.wire import keys
from trimtab.wire.assertion import Assertion
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Record

LONGEST_LEASE_MS: Final = 10_000
"""What a broker may ask for. Longer: a dead broker's bundles wait; shorter: a pause costs some."""

CLOSED_FOR_MS: Final = LONGEST_LEASE_MS + 1_000
"""After so long every broker has renewed its lease on the closed store, and said what it saw, or
has stopped serving. The second is for its clock to run slower than the server's."""

_PAGE: Final = 500
"""Records a script restores: a few milliseconds in which the server serves nobody else."""

_assertion = msgspec.json.Decoder(Assertion)


class Closure(NamedTuple):
    """A cluster that must be rebuilt before it is opened."""

    run: str
    """The server's ``run_id``."""
    wait_ms: int
    """It may be opened so long from now at the earliest."""


class Gate:
    """Those of one Redis. All methods raise StoreUnavailable and Misconfigured beside what they
    name."""

    def __init__(self, client: redis.Redis, longest_lease_ms: int = LONGEST_LEASE_MS) -> None:
        self._client = client
        self._longest_lease_ms = longest_lease_ms
        self._opened_on: dict[tuple[str, int], str] = {}

    def open(
        self, cluster: str, generation: int, rebuilt_on: str = "", closed_for_ms: int = 0
    ) -> Closure | None:
        """Let ``generation`` write; None if it may. Opening twice is harmless.

        ``rebuilt_on`` is the run whose records were rebuilt, and which must have been closed for
        ``closed_for_ms``. Raises Fenced if a higher generation was let in, and GenerationSpent if
        this one was, on another run of the server.
        """
        known_run = self._opened_on.get((cluster, generation), "")
        status, detail, *more = run(
            self._client,
            open_script(),
            [keys.open_key(cluster)],
            [
                str(generation),
                known_run,
                str(self._longest_lease_ms),
                rebuilt_on,
                str(closed_for_ms),
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
                return Closure(detail, int(more[0]))
            case "fenced":
                raise Fenced(f"{cluster} is open to generation {detail}, ours is {generation}")
            case _:
                raise GenerationSpent(f"generation {generation} was opened on a lost run of Redis")

    def is_open(self, cluster: str) -> bool:
        """Whether records may be changed, and believed: some generation was let in on this run."""
        with translated(self._client), self._client.pipeline(transaction=False) as together:
            together.hget(keys.open_key(cluster), "run_id")
            together.info("server")
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            answers: Any = together.execute()
        opened_on, server = answers
        return opened_on is not None and opened_on.decode() == server["run_id"]

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
                ],
                [cluster, str(generation), msgspec.json.encode(entries).decode()],
            )
            match status:
                case "restored":
                    restored += int(detail)
                case "fenced":
                    raise Fenced(f"{cluster} is open to generation {detail}, ours is {generation}")
                case _:
                    raise SinkError(f"{cluster} cannot be restored: {detail}")
        return restored

    def assertions(self, cluster: str, server_run: str) -> dict[str, Assertion]:
        """What brokers said to this run of the server, by broker."""
        prefix = keys.assertion_key(cluster, server_run, "")
        with translated(self._client):
            names = list(self._client.scan_iter(match=f"{literal(prefix)}*", count=1000))
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            texts: Any = self._client.mget(names) if names else []
        return {
            name.decode().removeprefix(prefix): _assertion.decode(text)
            for name, text in zip(names, texts, strict=True)
            if text is not None
        }

    def set_hints(self, cluster: str, generation: int, hints: Hints) -> None:
        """Tell lookups where bundles without an owner may go; raises Fenced."""
        status, detail = run(
            self._client,
            hints_script(),
            [keys.open_key(cluster), keys.hints_key(cluster), keys.placed_key(cluster)],
            [str(generation), msgspec.json.encode(hints).decode()],
        )
        if status == "fenced":
            raise Fenced(f"{cluster} is open to generation {detail}, ours is {generation}")

    def _load_scripts(self) -> None:
        with translated(self._client):
            for script in BROKERS_SCRIPTS:
                self._client.script_load(script().text)


def _pages(records: Mapping[str, Record]) -> Iterator[list[tuple[str, Record]]]:
    entries = list(records.items())
    return (entries[start : start + _PAGE] for start in range(0, len(entries), _PAGE))
