"""Removes bundles that ended long ago: their records would stay in Redis, Kafka and Spark for ever.

Why an ended bundle's record may be removed. No epoch is used twice: a new bundle on a part of the
ring has a counter above all that covered that part before, as it continues its parents' counters
(`born` in transition.lua). A record that starts at counter 1 again has a later job's generation, as
only ends of earlier generations are removed. If a rebuild gets the bundle again, from a broker that
kept an old record of it, it finds the bundles that cover its part now with a higher epoch, and
deletes it again (`trimtab.store.rebuild`).

Why not at once: replays and the auditor read the journal of the last days.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import redis

from sinks.errors import Closed, Fenced
from sinks.kafka.readable import readable
from sinks.redis.scripts import prune_script, run
from sinks.redis.server.connections import translate_errors
from trimtab.ownership import State
from trimtab.wire import keys

KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""As long as the journal topic keeps every change."""

_SCANNED: Final = 1000
_PAGE: Final = 200
"""Records that a script run removes: it blocks the server for some milliseconds."""


class Pruner:
    """Prunes the records in one Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def prune(self, cluster: str, generation: int, kept_ms: int = KEPT_MS) -> int:
        """Check every record; returns how many were removed.

        Raises StoreUnavailable, Misconfigured, Fenced and Closed.
        """
        ended = list(self._ended(cluster))
        return sum(
            self._remove(cluster, generation, kept_ms, ended[start : start + _PAGE])
            for start in range(0, len(ended), _PAGE)
        )

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
        ]
        arguments = [cluster, str(generation), str(kept_ms), *bundles]
        status, detail = run(self._client, prune_script(), names, arguments)
        if status == "fenced":
            raise Fenced(f"{cluster} is open to generation {detail}, ours is {generation}")
        if status == "closed":
            raise Closed(f"{cluster} is closed: {detail}")
        return int(detail)
