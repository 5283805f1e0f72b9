"""Brokers' service URLs in Redis: each agent writes its own, and every lookup reads them."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import redis

from sinks.errors import Damaged
from sinks.kafka.readable import MALFORMED
from sinks.redis.server.connections import translate_errors
from trimtab.wire.keys import urls_key
from trimtab.wire.lookup import ServiceUrls

KEPT_S: Final = 86_400
"""Agents write them again every hour: those of a broker that is gone disappear."""

_urls = msgspec.json.Decoder(ServiceUrls)


class UrlStore:
    """The URLs in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def write(self, cluster: str, broker: str, urls: ServiceUrls) -> None:
        """Replace a broker's URLs."""
        text = msgspec.json.encode(urls)
        with translate_errors(self._client):
            self._client.set(urls_key(cluster, broker), text, ex=KEPT_S)

    def read(self, cluster: str, broker: str) -> ServiceUrls | None:
        """A broker's URLs; None if it has none, or they cannot be read."""
        try:
            with translate_errors(self._client):
                # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
                text: Any = self._client.get(urls_key(cluster, broker))
            found = None if text is None else _urls.decode(text)
        except (Damaged, *MALFORMED):
            return None
        return None if found == ServiceUrls() else found
