"""Finds by a topic's name which migrations have it, and in which wave it is.

A migration may name 100,000 topics in its waves, and a bundle's owner asks for each of its topics,
which may be as many: the scopes are put into dictionaries once, and a topic is looked up there by
the four scopes that it can be in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final
from zlib import crc32

from trimtab.migration.life import MigrationState
from trimtab.migration.migration import RING, Migration, Wave
from trimtab.migration.scopes import scopes_of, whole_topic
from trimtab.migration.topic_life import MAY_ENLIST

_SPREADS: Final = 2_654_435_769
"""2^32 divided by the golden ratio. It sends neighbours on the bundles' ring far apart."""


def place_of(topic: str) -> int:
    """Where a topic is on the ring from which a wave takes its share. All of its partitions are at
    one place.

    This is not the ring of bundles. There, a small share of a namespace would be a few bundles of
    one or two brokers: these would do all the work of a wave, on blue and on green."""
    return crc32(whole_topic(topic).encode()) * _SPREADS % RING


class WaveIndex:
    """The waves of one migration."""

    def __init__(self, waves: tuple[Wave, ...]) -> None:
        self.waves = waves
        self._numbers: defaultdict[str, list[int]] = defaultdict(list)
        """Scope to the waves that name it, in their order."""
        for number, wave in enumerate(waves):
            for scope in dict.fromkeys(wave.scopes):
                self._numbers[scope].append(number)

    def wave_of(self, topic: str) -> int:
        """The wave, from 0, of a topic in the scope: the first that has it."""
        where = place_of(topic)
        numbers = (
            number
            for scope in scopes_of(topic)
            for number in self._numbers.get(scope, ())
            if where < self.waves[number].share * RING
        )
        return min(numbers, default=len(self.waves))


class ScopeIndex:
    """All migrations of a cluster; replaced when these are, never changed."""

    def __init__(self, migrations: Mapping[str, Migration], before: ScopeIndex | None) -> None:
        """``before``: the index that this one replaces. Waves seldom change."""
        self.migrations = migrations
        known: Mapping[str, WaveIndex] = {} if before is None else before._waves
        self._waves: dict[str, WaveIndex] = {
            name: known[name]
            if name in known and known[name].waves == each.waves
            else WaveIndex(each.waves)
            for name, each in migrations.items()
        }
        self._by_scope: defaultdict[str, list[Migration]] = defaultdict(list)
        for each in migrations.values():
            self._by_scope[each.scope].append(each)

    def having(self, topic: str) -> Iterator[Migration]:
        """The migrations by which a topic migrates."""
        for scope in dict.fromkeys(scopes_of(topic)):
            yield from (each for each in self._by_scope.get(scope, ()) if each.has(topic))

    def taking(self, topic: str) -> Migration | None:
        """The migration by which a topic is created on green that does not exist yet."""
        return next((each for each in self.having(topic) if self._takes_new(each, topic)), None)

    def _takes_new(self, migration: Migration, topic: str) -> bool:
        if migration.state is MigrationState.COMPLETED:
            return True
        is_open = migration.state in MAY_ENLIST
        return is_open and self.wave_of(migration, topic) <= migration.wave

    def wave_of(self, migration: Migration, topic: str) -> int:
        """The wave, from 0, of a topic in the scope of ``migration``, which is one of these."""
        return self._waves[migration.id].wave_of(topic)
