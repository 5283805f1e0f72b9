"""The waves of migrations in the plain way: a walk through all scopes (`ScopeIndex` looks up)."""

from __future__ import annotations

from trimtab.migration.life import MigrationState
from trimtab.migration.migration import RING, Migration, Wave
from trimtab.migration.scope_index import place_of
from trimtab.migration.scopes import covers


def is_in(wave: Wave, topic: str) -> bool:
    """Whether a topic is in a wave, if it was in none before."""
    covered = any(covers(scope, topic) for scope in wave.scopes)
    return covered and place_of(topic) < wave.share * RING


def wave_of(it: Migration, topic: str) -> int:
    """The wave, from 0, of a topic in the scope."""
    return next((n for n, wave in enumerate(it.waves) if is_in(wave, topic)), len(it.waves))


def takes_new(it: Migration, topic: str) -> bool:
    """Whether a topic that does not exist yet is created on green."""
    if not it.has(topic):
        return False
    under_way = it.state in (MigrationState.RUNNING, MigrationState.PAUSED)
    return it.state is MigrationState.COMPLETED or (under_way and wave_of(it, topic) <= it.wave)
