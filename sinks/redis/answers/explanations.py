"""The last rounds' explanations of bundles and brokers: written once a round, read by people."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
import redis

from sinks.errors import Closed, Fenced, Misconfigured
from sinks.redis.scripts import why_script
from sinks.redis.server.connections import translate_errors
from sinks.redis.server.script import run
from trimtab.wire import keys
from trimtab.wire.explanation import Explanation, StoredExplanations

_LONGEST_S: Final = 7 * 86_400
"""Longest time that explanations are kept after a cluster's last round."""

_PAGE: Final = 1000

_explanation = msgspec.json.Decoder(Explanation)


class Found(NamedTuple):
    """``explanation`` is None if the round, or every round, explains nothing about the subject."""

    explanation: Explanation | None
    rounds: tuple[int, ...]
    """The rounds that explain the subject, newest first."""
    kept: tuple[int, int] | None
    """The first and the last round with stored explanations."""


class Explanations:
    """The explanations in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def write(self, generation: int, stored: StoredExplanations) -> None:
        """Store a round's explanations, and drop the oldest round's; repeating it is harmless.

        Raises Fenced, and Closed if the job has not opened the cluster: an invented cluster name
        stores nothing.
        """
        pairs = [part for name, text in stored.subjects.items() for part in (name, _text(text))]
        status, detail = run(
            self._client,
            why_script(),
            [
                keys.open_key(stored.cluster),
                keys.whys_key(stored.cluster),
                keys.explained_key(stored.cluster),
                keys.explanations_key(stored.cluster, ""),
            ],
            [
                str(generation),
                str(stored.round),
                str(stored.at),
                str(stored.keep),
                str(_LONGEST_S),
                *pairs,
            ],
        )
        if status == "fenced":
            text = f"{stored.cluster} is open to generation {detail}, ours is {generation}"
            raise Fenced(text, int(detail))
        if status == "closed":
            raise Closed(f"{stored.cluster} is closed: {detail}")

    def read(self, cluster: str, subject: str, number: int | None = None) -> Found:
        """A subject's explanation in a round, or in the newest round that explains it."""
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

    def subjects(self, cluster: str) -> list[str]:
        """Everything that stored rounds explain, sorted."""
        with translate_errors(self._client):
            found = self._client.hscan_iter(keys.whys_key(cluster), count=_PAGE)
            return sorted({name.decode() for name, _ in found})

    def round_until(self, cluster: str, at_ms: int) -> int | None:
        """The newest stored round at that time (epoch ms) or before."""
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
            f"round {number} was explained by another version of trimtab: ask that one, or "
            f"--replay ({error})"
        ) from error


def _text(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()
