"""What brokers were told and what became of it, read where it was written."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec
import redis

from sinks.kafka.readable import MALFORMED
from sources.records import Record
from trimtab.wire.command import Command
from trimtab.wire.keys import command_stream
from trimtab.wire.ownership import Change


def in_streams(client: redis.Redis, cluster: str) -> list[Command]:
    """Every command that its broker has not acknowledged."""
    streams = sorted(client.scan_iter(match=command_stream(cluster, "*")))
    return [_command(fields) for each in streams for _, fields in _entries(client, each)]


def sent(client: redis.Redis, cluster: str) -> int:
    """How many commands were ever put into streams that are still there."""
    streams = client.scan_iter(match=command_stream(cluster, "*"))
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    found: list[Any] = [client.xinfo_stream(each) for each in streams]
    return sum(each["entries-added"] for each in found)


def published(records: Iterable[Record]) -> list[Command]:
    """Commands of trimtab.commands, repetitions too, without what other tests left there."""
    found = []
    for record in records:
        with suppress(*MALFORMED):
            found.append(msgspec.json.decode(record.value or b"", type=Command))
    return found


def changes(records: Iterable[Record], cluster: str) -> list[Change]:
    """A cluster's changes on trimtab.ownership in the order of the journal, repetitions too."""
    prefix = f"{cluster}/".encode()
    return [
        msgspec.json.decode(record.value or b"", type=Change)
        for record in records
        if (record.key or b"").startswith(prefix)
    ]


def _entries(client: redis.Redis, stream: bytes) -> Any:
    # Any: the answer's type in redis-py is a union over protocols; ours is RESP2, bytes.
    return client.xrange(stream)


def _command(fields: dict[bytes, bytes]) -> Command:
    return msgspec.json.decode(fields[b"command"], type=Command)
