"""Reads what can still be known of a cluster's records, for a rebuild: the entries of the journal
that its topic may lack, and what brokers say that they saw."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import redis

from sinks.errors import Damaged
from sinks.kafka.readable import Readable, readable_assertion
from sinks.redis.journal_relay import PAGE, Rejected, checked_change
from sinks.redis.leasing.leases import literal
from sinks.redis.server.connections import translate_errors
from trimtab.wire import keys
from trimtab.wire.assertion import Assertion
from trimtab.wire.ownership import Record

_ASSERTIONS: Final = 20
"""Assertions that a call reads: one with a thousand bundles has about 200 kB."""


class RebuildSources:
    """Of the clusters of one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def unrelayed(self, cluster: str, generation: int) -> dict[str, Record]:
        """The newest records in the journal: read it before its topic, which may lack them.

        Ignores entries that cannot be a change of this cluster, and a journal of the wrong type.
        """
        newest: dict[str, Record] = {}
        start = "-"
        with suppress(Damaged), translate_errors(self._client):
            while True:
                # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
                page: Any = self._client.xrange(keys.journal_key(cluster), start, "+", PAGE)
                if not page:
                    break
                for _, fields in page:
                    with suppress(Rejected):
                        change = checked_change(cluster, generation, fields.get(b"change", b""))
                        known = newest.get(change.bundle)
                        if known is None or change.record.epoch > known.epoch:
                            newest[change.bundle] = change.record
                start = f"({page[-1][0].decode()}"
        return newest

    def journal_is_empty(self, cluster: str) -> bool:
        """Whether all that the journal ever held has reached its topic, or was deleted.

        One of the wrong type is not: it takes nothing until an operator has deleted it.
        """
        with suppress(Damaged), translate_errors(self._client):
            return self._client.xlen(keys.journal_key(cluster)) == 0
        return False

    def assertions(self, cluster: str, history: str) -> dict[str, Assertion]:
        """The readable assertions that brokers sent while this history was closed, by broker."""
        heard = self.heard(cluster, history).items()
        return {broker: Assertion(records=said.records) for broker, said in heard}

    def heard(self, cluster: str, history: str) -> dict[str, Readable]:
        """The same, with the names of the unreadable records."""
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            server: Any = self._client.info("server")
        # Agents of older versions address the server process, and know no histories.
        of_older_agents = self._heard(cluster, str(server["run_id"]).zfill(40))
        return of_older_agents | self._heard(cluster, history)

    def _heard(self, cluster: str, history: str) -> dict[str, Readable]:
        prefix = keys.assertion_key(cluster, history, "")
        heard: dict[str, Readable] = {}
        with translate_errors(self._client):
            names = list(self._client.scan_iter(match=f"{literal(prefix)}*", count=1000))
            for start in range(0, len(names), _ASSERTIONS):
                page = names[start : start + _ASSERTIONS]
                # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
                texts: Any = self._client.mget(page)
                for name, text in zip(page, texts, strict=True):
                    if text is not None:
                        broker = name.decode(errors="replace").removeprefix(prefix)
                        heard[broker] = readable_assertion(text)
        return heard
