"""The outcomes of operators' intents: each is a key of its own for a day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import redis

from sinks.errors import Damaged
from sinks.kafka.readable import MALFORMED
from sinks.redis.server.connections import translate_errors
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.keys import outcome_key

KEPT_S: Final = 86_400
"""Shorter: a person who looks the next morning finds nothing; longer: more memory. trimtab.rounds
has them for as long as its retention says."""

_outcome = msgspec.json.Decoder(IntentOutcome)


class Outcomes:
    """The outcomes in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def write(self, outcomes: Iterable[IntentOutcome]) -> None:
        """Store each in place of an earlier one of the same intent."""
        with translate_errors(self._client), self._client.pipeline(transaction=False) as asked:
            for each in outcomes:
                asked.set(outcome_key(each.cluster, each.id), msgspec.json.encode(each), ex=KEPT_S)
            asked.execute()

    def read(self, cluster: str, intent: str) -> IntentOutcome | None:
        """The outcome of an intent; None if no job has read it yet, or more than a day ago. Raises
        Damaged if it cannot be read."""
        key = outcome_key(cluster, intent)
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            text: Any = self._client.get(key)
        try:
            return None if text is None else _outcome.decode(text)
        except MALFORMED as error:
            raise Damaged(f"{key} cannot be read: {error}; another version wrote it") from error
