"""Looks from time to time whether Redis keeps what it acknowledges."""

from __future__ import annotations

import math
from typing import Final

import structlog
from redis import Redis

from sinks.errors import Misconfigured, SinkError
from sinks.exposition import Exposition
from sinks.redis.server.survey import is_durable
from trimtab.metrics import job as metrics

log = structlog.get_logger()

PAUSE_SECONDS: Final = 15.0
"""Between two looks: one INFO of the server."""


class Durability:
    """One thread calls ``look``; an absent Redis is the other threads' concern."""

    def __init__(self, client: Redis, shown: Exposition) -> None:
        self._client = client
        self._shown = shown
        self._told = False
        # Not known before the first look.
        shown.set(metrics.DURABLE, math.nan)

    def look(self) -> None:
        """Show whether Redis is durable; its user may lack the right to ask, which is told once."""
        try:
            self._shown.set(metrics.DURABLE, is_durable(self._client))
        except Misconfigured as error:
            if not self._told:
                log.warning("Redis does not say whether it is durable", cause=str(error))
            self._told = True
        except SinkError:
            pass
