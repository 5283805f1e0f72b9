"""The job's newest hints where lookups may place unowned bundles, and the count placed since.

Both keys are written again with the next hints: what somebody else has spoiled heals by then.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import redis
import structlog

from sinks.errors import Damaged
from sinks.kafka.readable import MALFORMED
from sinks.redis.server.connections import address, translate_errors
from trimtab.wire.hints import Hints
from trimtab.wire.keys import hints_key, placed_key

log = structlog.get_logger()

_DIGITS: Final = 10
"""A count with so many is none."""

_hints = msgspec.json.Decoder(Hints)


class PlacementHints:
    """The hints in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._told = ""

    def read(self, cluster: str) -> Hints | None:
        """The newest hints; None until the job has run a round. Raises Damaged if they cannot be
        read."""
        key = hints_key(cluster)
        try:
            with translate_errors(self._client):
                # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
                text: Any = self._client.get(key)
            return None if text is None else _hints.decode(text)
        except (Damaged, *MALFORMED) as error:
            raise Damaged(
                f"Redis at {address(self._client)}: {key} cannot be read ({error}): the job's next "
                "round writes it again; see who else may write to it"
            ) from error

    def placed(self, cluster: str) -> int:
        """How many bundles were placed on brokers by the newest hints; counts that cannot be read
        are left out, as the scripts do."""
        try:
            with translate_errors(self._client):
                # Any: as above.
                counts: Any = self._client.hvals(placed_key(cluster))
        except Damaged as error:
            self._tell(cluster, str(error))
            return 0
        readable = [int(count) for count in counts if count.isdigit() and len(count) < _DIGITS]
        spoiled = len(counts) - len(readable)
        self._tell(cluster, f"{spoiled} of its counts are no numbers" if spoiled else "")
        return sum(readable)

    def _tell(self, cluster: str, cause: str) -> None:
        # Lookups read it many times a second.
        if cause and cause != self._told:
            log.warning(
                "placed bundles are not counted until the job's next round writes the key again",
                key=placed_key(cluster),
                cause=cause,
            )
        self._told = cause
