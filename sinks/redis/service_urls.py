"""Brokers' service URLs in Redis: each agent writes its own, and every lookup reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
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

_PAGE: Final = 1000
"""Brokers that are read in one request: it blocks the server for less than a millisecond."""

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

    def read_all(self, cluster: str, brokers: Sequence[str]) -> Iterator[ServiceUrls]:
        """The URLs of those brokers that have some, in pages."""
        for start in range(0, len(brokers), _PAGE):
            keys = [urls_key(cluster, broker) for broker in brokers[start : start + _PAGE]]
            with translate_errors(self._client):
                # Any: as below.
                texts: Any = self._client.mget(keys)
            for text in filter(None, texts):
                with suppress(*MALFORMED):
                    yield _urls.decode(text)

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
