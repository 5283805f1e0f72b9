"""Removes what would stay for ever: bundles that ended long ago, and sessions of old names.

Why an ended bundle's record may be removed. No epoch is used twice: a new bundle on a part of the
ring has a counter above all that covered that part before, as it continues its parents' counters
(`born` in writing.lua). A record that starts at counter 1 again has a later job's generation, as
only ends of earlier generations are removed. If a rebuild gets the bundle again, from a broker that
kept an old record of it, it finds the bundles that cover its part now with a higher epoch, and
deletes it again (`trimtab.store.rebuild`).

Why not at once: replays and the auditor read the journal of the last days.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import redis

from sinks.errors import Closed, Fenced
from sinks.kafka.readable import readable
from sinks.redis.scripts import forget_sessions_script, prune_script
from sinks.redis.server.connections import translate_errors
from sinks.redis.server.script import Script, run
from trimtab.ownership import State
from trimtab.wire import keys

KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""For this long the journal topic keeps every change."""

_SCANNED: Final = 1000
_PAGE: Final = 200
"""Records that a script run removes: it blocks the server for some milliseconds."""


class Pruner:
    """Prunes the records in one Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._without_lease: dict[str, dict[str, str]] = {}
        """Cluster to broker to session, of those without a lease at the last look."""

    def prune(self, cluster: str, generation: int, kept_ms: int = KEPT_MS) -> int:
        """Check every record; returns how many were removed.

        Raises StoreUnavailable, Misconfigured, Fenced and Closed.
        """
        ended = list(self._ended(cluster))
        return sum(
            self._remove(cluster, generation, kept_ms, ended[start : start + _PAGE])
            for start in range(0, len(ended), _PAGE)
        )

    def forget_sessions(self, cluster: str, generation: int) -> int:
        """Forget the sessions of names that had no lease at the last look either; returns how many.

        A name's last session matters only while its lease may seem to have ended: call this after
        more than the longest lease. Raises StoreUnavailable, Misconfigured, Fenced and Closed.
        """
        before = self._without_lease.get(cluster, {})
        now = self._without_lease[cluster] = self._sessions_without_lease(cluster)
        pairs = [(name, session) for name, session in now.items() if before.get(name) == session]
        names = [
            keys.open_key(cluster),
            keys.sessions_key(cluster),
            keys.lease_key(cluster, ""),
            keys.ownership_key(cluster),
            keys.bundles_key(cluster),
        ]
        forgotten = 0
        for start in range(0, len(pairs), _PAGE):
            page = chain.from_iterable(pairs[start : start + _PAGE])
            forgotten += self._run(
                cluster, generation, forget_sessions_script(), names, [str(generation), *page]
            )
        return forgotten

    def _sessions_without_lease(self, cluster: str) -> dict[str, str]:
        with translate_errors(self._client):
            texts = self._client.hscan_iter(keys.sessions_key(cluster), count=_SCANNED)
            sessions = {name.decode(): session.decode() for name, session in texts}
            with self._client.pipeline(transaction=False) as together:
                for name in sessions:
                    together.exists(keys.lease_key(cluster, name))
                alive = together.execute()
        return {
            name: session
            for (name, session), lives in zip(sessions.items(), alive, strict=True)
            if not lives
        }

    def _ended(self, cluster: str) -> Iterator[str]:
        """Ended bundles, read one page after another: the script checks each again."""
        with translate_errors(self._client):
            texts = self._client.hscan_iter(keys.ownership_key(cluster), count=_SCANNED)
            for text in texts:
                for bundle, record in readable([text]).records.items():
                    if record.state is State.DELETED:
                        yield bundle

    def _remove(self, cluster: str, generation: int, kept_ms: int, bundles: Sequence[str]) -> int:
        names = [
            keys.open_key(cluster),
            keys.ownership_key(cluster),
            keys.journal_key(cluster),
            keys.unjournalled_key(cluster),
            keys.bundles_key(cluster),
        ]
        arguments = [cluster, str(generation), str(kept_ms), *bundles]
        return self._run(cluster, generation, prune_script(), names, arguments)

    def _run(
        self, cluster: str, generation: int, script: Script, names: list[str], arguments: list[str]
    ) -> int:
        status, detail = run(self._client, script, names, arguments)
        if status == "fenced":
            raise Fenced(f"{cluster} is open to generation {detail}, ours is {generation}")
        if status == "closed":
            raise Closed(f"{cluster} is closed: {detail}")
        return int(detail)
