"""Topics that migrate, in Redis: their records, which only their bundle's owner changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
import redis
from redis.exceptions import NoScriptError

from sinks.errors import Closed
from sinks.kafka.readable import MALFORMED
from sinks.redis.migrations import read_migrations
from sinks.redis.scripts import topics_script
from sinks.redis.server.connections import translate_errors
from sinks.redis.server.script import NO_MASTER, no_master, run_loaded
from trimtab.migration.migration import Migration
from trimtab.model import FULL_RANGE_END, parse_bundle
from trimtab.wire.keys import open_key, places_key, topics_key
from trimtab.wire.topics import TopicCall, TopicChange, TopicOutcome, TopicRecord

PAGE: Final = 100
"""Changes in one run of the script: it blocks the server for a few milliseconds."""
_READ: Final = 1000
"""Records read in a step."""

_record = msgspec.json.Decoder(TopicRecord)
_text = msgspec.json.Decoder(str)


class _Said(msgspec.Struct):
    topic: str
    reason: Any = None
    record: str | None = None


_said = msgspec.json.Decoder(list[_Said])


class TopicStore:
    """The topics in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def migrations(self, cluster: str) -> dict[str, Migration]:
        """All readable migrations of a cluster, by id."""
        return read_migrations(self._client, cluster)

    def topics_in(self, cluster: str, bundle: str) -> Iterator[dict[str, TopicRecord]]:
        """The readable records of a bundle's topics, in the order of the ring, page by page."""
        namespace, (low, high) = parse_bundle(bundle)
        # The end of the ring belongs to the last bundle.
        end = "+inf" if high == FULL_RANGE_END else f"({high}"
        start = 0
        while True:
            with translate_errors(self._client):
                # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
                names: Any = self._client.zrangebyscore(
                    places_key(cluster, namespace), low, end, start, _READ
                )
            yield self.named(cluster, namespace, [name.decode() for name in names])
            start += _READ
            if len(names) < _READ:
                return

    def named(self, cluster: str, namespace: str, topics: Sequence[str]) -> dict[str, TopicRecord]:
        """The readable records of some topics of a namespace, at most a thousand."""
        if not topics:
            return {}
        with translate_errors(self._client):
            # Any: as above.
            texts: Any = self._client.hmget(topics_key(cluster, namespace), topics)
        return dict(_readable(zip(topics, texts, strict=True)))

    def of_namespace(self, cluster: str, namespace: str) -> Iterator[tuple[str, TopicRecord]]:
        """All readable records of a namespace, in pages: not of one moment."""
        with translate_errors(self._client):
            texts = self._client.hscan_iter(topics_key(cluster, namespace), count=_READ)
            yield from _readable((name.decode(errors="replace"), text) for name, text in texts)

    def change(self, cluster: str, call: TopicCall) -> tuple[TopicOutcome, ...]:
        """Ask for changes, each for itself, and PAGE in one run. Raises Closed."""
        outcomes = list[TopicOutcome]()
        for start in range(0, max(len(call.changes), 1), PAGE):
            page = call.changes[start : start + PAGE]
            # What all topics of a bundle are is said after the last of them.
            named = call.named if start + PAGE >= len(call.changes) else ()
            outcomes += self._run(cluster, msgspec.structs.replace(call, changes=page, named=named))
        return tuple(outcomes)

    def _run(self, cluster: str, call: TopicCall) -> Iterator[TopicOutcome]:
        text = msgspec.json.encode(call)
        try:
            status, detail = run_loaded(self._client, topics_script(), [open_key(cluster)], [text])
        except NoScriptError as error:
            raise Closed(f"{cluster} is closed: no job of this version has opened it") from error
        if status in NO_MASTER:
            raise no_master(self._client, status, detail)
        if status != "done":
            raise Closed(f"{cluster} is closed: {detail}")
        return decode_outcomes(detail, call.changes)


def decode_outcomes(answer: str, changes: Iterable[TopicChange]) -> Iterator[TopicOutcome]:
    """The script's outcomes, without records that cannot be read."""
    for said, change in zip(_said.decode(answer), changes, strict=True):
        text = said.record and said.record.encode()
        record = dict(_readable([(change.topic, text)])).get(change.topic)
        yield msgspec.convert(
            {"topic": said.topic, "reason": said.reason, "record": record}, TopicOutcome
        )


def _readable(texts: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, TopicRecord]]:
    for topic, text in texts:
        if text:
            try:
                yield topic, _record.decode(text)
            except MALFORMED:
                # The script treats it as unknown, and writes it again.
                continue
