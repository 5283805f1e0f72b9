"""What a cluster remembers of its migrations, and what it would redirect to without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from trimtab.migration.life import CLAIMING, UNDER_WAY, MigrationState
from trimtab.migration.migration import Migration, Target
from trimtab.migration.scopes import CLUSTER, covers

MOST: Final = 100
"""Remembered ones, the newest; more if more still claim their topics."""


@dataclass(frozen=True, slots=True)
class Migrations:
    """All of one cluster; replaced, never changed."""

    green: Target | None = None
    """Pulsar's ``migratedClusterUrl``: where namespaces go that are migrated by their flag."""
    items: tuple[Migration, ...] = ()
    """Oldest first."""

    def find(self, name: str) -> Migration | None:
        """The migration with that id."""
        return next((each for each in self.items if each.id == name), None)

    def claiming(self, scope: str) -> list[Migration]:
        """The migrations that have topics of the scope, or may get some."""
        return [each for each in self.items if each.state in CLAIMING and each.touches(scope)]

    def inside(self, scope: str) -> list[Migration]:
        """Completed migrations of narrower scopes: one of the whole scope leaves their topics."""
        return [
            each
            for each in self.items
            if each.state is MigrationState.COMPLETED
            and each.scope != scope
            and covers(scope, each.scope)
        ]

    def flagged(self, scope: str) -> Migration | None:
        """The migration of exactly this scope that is not rolled back: Pulsar's ``migrated``."""
        found = (each for each in self.items if each.scope == scope and each.state in CLAIMING)
        return next(found, None)

    def with_item(self, item: Migration) -> Migrations:
        """These with one migration added, or replaced by its new state."""
        if self.find(item.id) is not None:
            items = tuple(item if each.id == item.id else each for each in self.items)
        else:
            items = (*self.items, item)
        gone = find_surplus(items)
        return replace(self, items=tuple(each for each in items if each not in gone))

    def with_check(self, seconds: float) -> Migrations:
        """With so long between two looks at a topic of any of them."""
        if all(each.check == seconds for each in self.items):
            return self
        return replace(self, items=tuple(replace(each, check=seconds) for each in self.items))

    def recorded(self) -> tuple[Migration, ...]:
        """The migrations that a store must have: agents act on them."""
        return tuple(each for each in self.items if each.state in CLAIMING or each.total.stays)

    @property
    def under_way(self) -> bool:
        """Whether topics still change."""
        return any(each.state in UNDER_WAY for each in self.items)

    @property
    def migrated(self) -> bool:
        """Pulsar's flag of the cluster."""
        return self.flagged(CLUSTER) is not None


def find_surplus(items: Sequence[Migration]) -> list[Migration]:
    """What is remembered no longer of these, oldest first: what ended long ago, and left no topic
    on green."""
    ended = [each for each in items if each.state not in CLAIMING and not each.total.stays]
    return ended[: max(0, len(items) - MOST)]


NO_MIGRATIONS: Final = Migrations()
