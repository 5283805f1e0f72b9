"""Migrations in Redis, which the job writes and everybody reads, and counts of their topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import redis

from sinks.errors import Closed, Fenced
from sinks.kafka.readable import MALFORMED
from sinks.redis.bundle_index import BundleIndex
from sinks.redis.scripts import migrations_script
from sinks.redis.server.connections import translate_errors
from sinks.redis.server.script import run
from trimtab.migration.kept import MOST, find_surplus
from trimtab.migration.migration import Counts, Migration
from trimtab.model import is_bundle, namespace_of
from trimtab.view import is_monitoring
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.keys import (
    command_stream,
    lease_key,
    migrated_key,
    migrations_key,
    named_key,
    open_key,
    sessions_key,
)

_migration = msgspec.json.Decoder(Migration)
_brokers = msgspec.json.Decoder(list[list[str]])
_PAGE: Final = 1000
"""Bundles read in a step."""
_NAMES: Final = frozenset(Counts.__dataclass_fields__)


class Migrations:
    """The migrations in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._index = BundleIndex(client)

    def write(
        self, cluster: str, generation: int, migrations: Sequence[Migration]
    ) -> list[Command]:
        """Store each in place of its earlier state, and command brokers to look at those that have
        come further; returns these commands. What is remembered no longer is deleted. Raises Fenced
        and Closed."""
        arguments = list[str]()
        for each in migrations:
            arguments += [each.id, msgspec.json.encode(each).decode(), _command(each)]
        there, now_ms, brokers = self._run(cluster, generation, arguments)
        if there > MOST:
            gone = find_surplus(list(reversed(self.read(cluster).values())))
            for each in gone:
                self._run(cluster, generation, [each.id, "", ""])
        return [
            command_for(each, broker, now_ms)
            for each, told in zip(migrations, brokers, strict=True)
            for broker in told
        ]

    def _run(
        self, cluster: str, generation: int, arguments: Sequence[str]
    ) -> tuple[int, int, list[list[str]]]:
        """How many migrations there are now, Redis's time (ms), and for each that was given the
        brokers that get the command."""
        status, *details = run(
            self._client,
            migrations_script(),
            [
                open_key(cluster),
                migrations_key(cluster),
                sessions_key(cluster),
                lease_key(cluster, ""),
                command_stream(cluster, ""),
            ],
            [str(generation), *arguments],
        )
        if status == "fenced":
            text = f"{cluster} is open to generation {details[0]}, ours is {generation}"
            raise Fenced(text, int(details[0]))
        if status == "closed":
            raise Closed(f"{cluster} is closed: {details[0]}")
        return int(details[0]), int(details[1]), _brokers.decode(details[2])

    def read(self, cluster: str) -> dict[str, Migration]:
        """All readable migrations of a cluster, by id, the last begun first."""
        return read_migrations(self._client, cluster)

    def unnamed(self, migration: Migration) -> int:
        """How many bundles of a migration's scope have an owner that has not named their topics of
        the waves so far, or no owner; read in pages."""
        pages = self.bundles_in(migration)
        return sum(not is_named for page in pages for is_named in page.values())

    def bundles_in(self, migration: Migration) -> Iterator[dict[str, bool]]:
        """The bundles of a migration's scope, in pages: whether an owner has named their topics of
        the waves so far."""
        cluster, after = migration.cluster, ""
        while names := self._index.after(cluster, after, _PAGE):
            after = names[-1]
            bundles = [name for name in names if is_bundle(name) and _concerns(migration, name)]
            if bundles:
                with translate_errors(self._client):
                    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
                    said: Any = self._client.hmget(named_key(cluster, migration.id), bundles)
                yield {
                    bundle: text is not None and _whole(text) >= migration.wave
                    for bundle, text in zip(bundles, said, strict=True)
                }

    def counts(self, cluster: str, migration: str) -> dict[str, Counts]:
        """The counts of a migration's topics, by wave (a number) or namespace."""
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            fields: Any = self._client.hgetall(migrated_key(cluster, migration))
        found = dict[str, dict[str, int]]()
        for field, text in fields.items():
            subject, _, name = field.decode(errors="replace").rpartition(" ")
            if name in _NAMES:
                found.setdefault(subject, {})[name] = _whole(text)
        return {subject: Counts(**counts) for subject, counts in sorted(found.items())}


def read_migrations(client: redis.Redis, cluster: str) -> dict[str, Migration]:
    """All readable migrations of a cluster, by id, the last begun first."""
    with translate_errors(client):
        # Any: as above.
        texts: Any = client.hgetall(migrations_key(cluster))
    found = list[Migration]()
    for text in texts.values():
        try:
            found.append(_migration.decode(text))
        except MALFORMED:
            # Of another version: an agent that does not understand it lets its topics be.
            continue
    found.sort(key=lambda each: (-each.at, each.id))
    return {each.id: each for each in found}


def command_for(migration: Migration, broker: str, now_ms: int) -> Command:
    """What a broker is told when a migration has come further."""
    return Command(
        id=f"{migration.id}/{migration.state}/{migration.wave}/{now_ms}/{broker}",
        cluster=migration.cluster,
        broker=broker,
        kind=CommandKind.TOPIC_MIGRATED,
        bundle="",
        migration=migration.id,
        scope=migration.scope,
        target=migration.target,
        issued_at=now_ms,
    )


def _command(migration: Migration) -> str:
    """The command for every broker, without what the script adds: id, broker and time."""
    members: Any = msgspec.to_builtins(command_for(migration, "", 0))
    del members["id"], members["broker"]
    return msgspec.json.encode(members).decode()


def _concerns(migration: Migration, bundle: str) -> bool:
    """Whether topics of a bundle can be in the scope; brokers' own for monitoring migrate never."""
    return migration.touches(namespace_of(bundle)) and not is_monitoring(bundle)


def _whole(text: bytes) -> int:
    return int(text) if text.isdigit() else 0
