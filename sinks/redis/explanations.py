"""What the last rounds told of bundles and brokers: written once a round, read by people."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
import redis

from sinks.errors import Closed, Fenced, Misconfigured
from sinks.redis.scripts import run, why_script
from sinks.redis.server.connections import translate_errors
from trimtab.wire import keys
from trimtab.wire.explanation import Explanation, StoredExplanations

_LONGEST_S: Final = 7 * 86_400
"""A cluster that holds no rounds any more leaves nothing behind for longer."""

_explanation = msgspec.json.Decoder(Explanation)


class Found(NamedTuple):
    """``explanation`` is None where the round, or any round, tells nothing of the subject."""

    explanation: Explanation | None
    rounds: tuple[int, ...]
    """In which the subject is explained, newest first."""
    kept: tuple[int, int] | None
    """The first and the last round of which anything is kept."""


class Explanations:
    """Those of one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def write(self, generation: int, told: StoredExplanations) -> None:
        """Keep a round's, and forget the oldest round's; twice is harmless.

        Raises Fenced, and Closed where the job has not opened the cluster: a key that somebody made
        up leaves nothing behind.
        """
        pairs = [part for name, text in told.subjects.items() for part in (name, _text(text))]
        status, detail = run(
            self._client,
            why_script(),
            [
                keys.open_key(told.cluster),
                keys.whys_key(told.cluster),
                keys.explained_key(told.cluster),
                keys.explanations_key(told.cluster, ""),
            ],
            [
                str(generation),
                str(told.round),
                str(told.at),
                str(told.keep),
                str(_LONGEST_S),
                *pairs,
            ],
        )
        if status == "fenced":
            text = f"{told.cluster} is open to generation {detail}, ours is {generation}"
            raise Fenced(text, int(detail))
        if status == "closed":
            raise Closed(f"{told.cluster} is closed: {detail}")

    def read(self, cluster: str, subject: str, number: int | None = None) -> Found:
        """What is told of a subject in a round, or in the newest that tells of it."""
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            with self._client.pipeline(transaction=False) as asked:
                asked.hget(keys.whys_key(cluster), subject)
                asked.zrange(keys.explained_key(cluster), 0, 0)
                asked.zrange(keys.explained_key(cluster), -1, -1)
                answers: Any = asked.execute()
            named, first, last = answers
            rounds = tuple(map(int, named.decode().split(","))) if named else ()
            kept = (int(first[0]), int(last[0])) if first and last else None
            if number is None and not rounds:
                return Found(None, rounds, kept)
            wanted = rounds[0] if number is None else number
            text: Any = self._client.hget(keys.explanations_key(cluster, wanted), subject)
        return Found(None if text is None else _decoded(text, wanted), rounds, kept)

    def round_until(self, cluster: str, at_ms: int) -> int | None:
        """The newest kept round that was held at that time (epoch ms) or before."""
        with translate_errors(self._client):
            found: Any = self._client.zrange(
                keys.explained_key(cluster), at_ms, 0, desc=True, byscore=True, offset=0, num=1
            )
        return int(found[0]) if found else None


def _decoded(text: bytes, number: int) -> Explanation:
    try:
        return _explanation.decode(text)
    except msgspec.MsgspecError as error:
        raise Misconfigured(
            f"what round {number} told was kept by another version of trimtab: ask that one, or "
            f"--replay ({error})"
        ) from error


def _text(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()
