"""The job's newest hints where lookups may place unowned bundles, and the count placed since."""

from __future__ import annotations

from typing import Any

import msgspec
import redis

from sinks.redis.server.connections import translate_errors
from trimtab.wire.hints import Hints
from trimtab.wire.keys import hints_key, placed_key

_hints = msgspec.json.Decoder(Hints)


class PlacementHints:
    """The hints in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def read(self, cluster: str) -> Hints | None:
        """The newest hints; None until the job has run a round."""
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            text: Any = self._client.get(hints_key(cluster))
        return None if text is None else _hints.decode(text)

    def placed(self, cluster: str) -> int:
        """How many bundles were placed on brokers by the newest hints."""
        with translate_errors(self._client):
            counts: Any = self._client.hvals(placed_key(cluster))
        return sum(map(int, counts))
