"""Reads a broker's commands from its Redis stream, and removes them once obeyed.

A command is delivered at least once: again after a restart, or after a lost answer. The agent drops
duplicates by the command's id and epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import redis
import structlog
from redis.exceptions import ResponseError

from sinks.errors import SinkError
from sinks.kafka.readable import MALFORMED
from sinks.redis.server.connections import TIMEOUT_SECONDS, translate_errors
from trimtab.wire.command import Command
from trimtab.wire.keys import command_stream

log = structlog.get_logger()

GROUP: Final = "agent"
MAX_BLOCK_MS: Final = int(TIMEOUT_SECONDS * 800)
"""Longest wait; more would look like a server that hangs."""

KEPT_S: Final = 86_400
"""A stream without a command for so long expires; its broker, if alive, creates it again."""

_PAGE: Final = 100

_NAMED: Final = 5
"""Most entries named in a warning."""
_QUOTED: Final = 200
"""Most characters quoted of one entry."""

_command = msgspec.json.Decoder(Command)


class CommandStream:
    """One broker's command stream. All methods raise StoreUnavailable and Misconfigured."""

    rejected = 0
    """Entries that were not commands for this broker; they were acknowledged and dropped."""

    def __init__(self, client: redis.Redis, cluster: str, broker: str) -> None:
        self._client = client
        self._cluster, self._broker = cluster, broker
        self._stream = command_stream(cluster, broker)
        self._in_hand: set[str] = set()
        self._position = "0"

    def read(self, block_ms: int) -> list[tuple[str, Command]]:
        """Read delivered but unacknowledged commands, then new ones; waits for at least one.

        Returns none after ``block_ms`` (1 to MAX_BLOCK_MS). This object does not return an
        unacknowledged command twice.
        """
        if not 0 < block_ms <= MAX_BLOCK_MS:
            raise ValueError(f"block_ms is {block_ms}, not from 1 to {MAX_BLOCK_MS}")
        try:
            with translate_errors(self._client):
                entries = self._next_entries(block_ms)
        except SinkError:
            # The server may have delivered entries that never arrived: read the pending ones again.
            self._position = "0"
            raise
        return self._parsed(entries)

    def acknowledge(self, ids: Iterable[str]) -> None:
        """Remove these entries, whether they were obeyed or not."""
        done = list(ids)
        if done:
            with translate_errors(self._client), self._client.pipeline() as both:
                both.xack(self._stream, GROUP, *done)
                both.xdel(self._stream, *done)
                both.execute()
            self._in_hand.difference_update(done)

    def _next_entries(self, block_ms: int) -> list[Any]:
        while self._position != ">":
            pending = self._fetch(None)
            self._position = pending[-1][0].decode() if pending else ">"
            fresh = [entry for entry in pending if entry[0].decode() not in self._in_hand]
            if fresh:
                return fresh
        return self._fetch(block_ms)

    def _fetch(self, block_ms: int | None) -> list[Any]:
        # Any: the answer's type in redis-py is a union over protocols; ours is RESP2, bytes.
        streams: Any = {self._stream: self._position}
        consumer = self._broker
        try:
            answer: Any = self._client.xreadgroup(GROUP, consumer, streams, _PAGE, block_ms)
        except ResponseError as error:
            # UNBLOCKED: the stream expired while this waited.
            if not str(error).startswith(("NOGROUP", "UNBLOCKED")):
                raise
            self._create_group()
            answer = self._client.xreadgroup(GROUP, consumer, streams, _PAGE, block_ms)
        return answer[0][1] if answer else []

    def _create_group(self) -> None:
        # From 0: commands written before the broker's first read are for it too.
        try:
            self._client.xgroup_create(self._stream, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            # Another reader of this name was faster; any other error prevents reading.
            if not str(error).startswith("BUSYGROUP"):
                raise
        # The stream of a broker that never returns, and never got a command, must expire too.
        self._client.expire(self._stream, KEPT_S, nx=True)

    def _parsed(self, entries: list[Any]) -> list[tuple[str, Command]]:
        commands: list[tuple[str, Command]] = []
        useless: dict[str, str] = {}
        for entry_id, fields in entries:
            entry = entry_id.decode()
            try:
                commands.append((entry, self._command(fields)))
            except ValueError as error:
                useless[entry] = str(error)
        self._in_hand.update(entry for entry, _ in commands)
        self._drop(useless)
        return commands

    def _drop(self, useless: dict[str, str]) -> None:
        """Drop entries, given with the cause, so that they do not block those after them."""
        self.acknowledge(useless)
        self.rejected += len(useless)
        if useless:
            log.warning(
                "entries that are not commands for this broker are dropped",
                cluster=self._cluster,
                broker=self._broker,
                number=len(useless),
                first=list(useless.items())[:_NAMED],
            )

    def _command(self, fields: dict[bytes, bytes] | None) -> Command:
        """Decode a command; raises ValueError."""
        if not fields:
            raise ValueError("it was trimmed away")
        try:
            command = _command.decode(fields.get(b"command", b""))
        except MALFORMED as error:
            raise ValueError(f"it cannot be read: {error}") from error
        if (command.cluster, command.broker) != (self._cluster, self._broker):
            raise ValueError(f"it is for {command.broker[:_QUOTED]} of {command.cluster[:_QUOTED]}")
        if flaw := command.flaw():
            raise ValueError(flaw[:_QUOTED])
        return command
