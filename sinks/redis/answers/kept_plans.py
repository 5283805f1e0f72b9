"""Kept plans: each is a key of its own for a day, and an index lists them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import redis

from sinks.errors import Damaged
from sinks.kafka.readable import MALFORMED
from sinks.redis.answers.outcomes import KEPT_S
from sinks.redis.server.connections import translate_errors
from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.wire.keys import plan_key, plans_key

MOST: Final = 200
"""The newest plans that are listed."""

_plan = msgspec.json.Decoder(KeptPlan)


class KeptPlans:
    """The plans in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def write(self, plans: Iterable[KeptPlan], now_ms: int) -> None:
        """Store each in place of an earlier state of it."""
        with translate_errors(self._client), self._client.pipeline(transaction=False) as asked:
            for each in plans:
                index = plans_key(each.cluster)
                asked.set(plan_key(each.cluster, each.id), msgspec.json.encode(each), ex=KEPT_S)
                # By the last change: one that is changed stays as long as its key.
                asked.zadd(index, {each.id: now_ms})
                asked.zremrangebyscore(index, 0, now_ms - 1000 * KEPT_S)
                asked.expire(index, KEPT_S)
            asked.execute()

    def read(self, cluster: str, plan: str) -> KeptPlan | None:
        """A plan; None if there was none of that id in the last day. Raises Damaged if it cannot
        be read."""
        key = plan_key(cluster, plan)
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            text: Any = self._client.get(key)
        return None if text is None else _decode(key, text)

    def list(self, cluster: str) -> list[KeptPlan]:
        """The newest plans, the last made first."""
        with translate_errors(self._client):
            named: Any = self._client.zrange(plans_key(cluster), -MOST, -1)
            keys = [plan_key(cluster, each.decode()) for each in named]
            texts: Any = self._client.mget(keys) if keys else []
        pairs = zip(keys, texts, strict=True)
        plans = [_decode(key, text) for key, text in pairs if text is not None]
        return sorted(plans, key=lambda plan: (plan.at, plan.id), reverse=True)


def _decode(key: str, text: bytes) -> KeptPlan:
    try:
        return _plan.decode(text)
    except MALFORMED as error:
        raise Damaged(f"{key} cannot be read: {error}; another version wrote it") from error
