"""Brokers' service URLs, each read once a minute, so that a lookup need not read them."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from agent.ports import UrlBook
from sinks.errors import Misconfigured, Unavailable
from trimtab.wire.lookup import ServiceUrls

URLS_FOR_S: Final = 60.0
"""How long URLs are reused. Longer: clients get those of before a broker's restart; shorter: more
reading."""

MOST_BROKERS: Final = 20_000
"""Most brokers whose URLs are cached, some 20 MB. The oldest read is dropped."""


class Directory:
    """The URLs of one cluster's brokers; any number of threads may use it."""

    def __init__(self, cluster: str, urls: UrlBook, clock: Callable[[], float]) -> None:
        self._cluster, self._urls, self._clock = cluster, urls, clock
        self._known: dict[str, tuple[float, ServiceUrls | None]] = {}

    def urls_of(self, broker: str) -> ServiceUrls | None:
        """Where a broker listens; None if it does not say."""
        # No lock: two threads that read the same at once do no harm.
        until, urls = self._known.get(broker, (-math.inf, None))
        now = self._clock()
        if now >= until:
            # An answer without URLs, or with older ones, is better than none.
            with suppress(Unavailable, Misconfigured):
                urls = self._urls.read(self._cluster, broker)
            self._known.pop(broker, None)
            self._known[broker] = now + URLS_FOR_S, urls
            if len(self._known) > MOST_BROKERS:
                self._known.pop(next(iter(self._known)), None)
        return urls
