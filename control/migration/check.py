"""Checks an intent that sends topics to green: what is wrong with it, and what is worth a note."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from control.migration.cycles import Going
from control.migration.green import find_green, find_scope, green_flaws, green_notes
from control.migration.green_admin import Ask, asking
from control.migration.green_topics import kind_notes, topic_notes
from control.migration.progress import (
    one_way_notes,
    standing_notes,
    unknown_notes,
    unnamed_notes,
    wave_notes,
)
from sinks.green_access import GreenAccess
from trimtab.intent_rules import Flaw
from trimtab.migration.flaws import target_flaws
from trimtab.migration.kept import Migrations
from trimtab.migration.migration import Target
from trimtab.migration.scopes import CLUSTER, namespace_of
from trimtab.wire.intent import Intent
from trimtab.wire.lookup import ServiceUrls


@dataclass(frozen=True, slots=True)
class Blue:
    """What the cluster that topics leave knows of itself."""

    brokers: Collection[str]
    """By id, and the host:port of each of their URLs."""
    urls: tuple[ServiceUrls, ...]
    namespaces: Callable[[], Collection[str]]
    migrations: Migrations
    left_on_green: Callable[[str, Sequence[str]], Collection[str]]
    """Those of a namespace's topics that an earlier migration has left on green."""
    has_record: Callable[[str], bool]
    """Whether a topic has a record: it has migrated, or was to."""


@dataclass(frozen=True, slots=True)
class AskedMigration:
    """An intent that sends topics from blue to green."""

    intent: Intent
    blue: Blue
    green: Target
    asked: Ask
    """Asks green; it remembers the answers."""

    @property
    def scope(self) -> str:
        """What would go there."""
        return find_scope(self.intent)

    @property
    def going(self) -> Going:
        """The same, with what has migrated alone."""
        apart = [each.scope for each in self.blue.migrations.inside(self.scope)]
        return Going(self.scope, apart, self.blue.namespaces)

    def flaws(self) -> Iterator[Flaw]:
        """What is wrong with green."""
        blue = self.blue
        if any(target_flaws(self.green, blue.brokers)):
            # It is refused already, and cannot be asked.
            return
        yield from green_flaws(self.green, blue.brokers, self._tenants(), self.asked, self.going)

    def notes(self, load: float, full: float) -> Iterator[str]:
        """What is worth knowing before it begins; ``load`` and ``full`` as in `green_notes`."""
        blue, waves = self.blue, self.intent.waves
        yield from one_way_notes(self.green, blue.urls)
        yield from unknown_notes(self.scope, waves, blue.namespaces)
        yield from unnamed_notes(self.scope, waves, self.blue.has_record)
        yield from wave_notes(self.scope, waves, blue.namespaces)
        yield from standing_notes(self.scope, self.green, blue.migrations)
        yield from kind_notes(self.green, self.asked)
        yield from topic_notes(self.green, self.going, self.asked, blue.left_on_green)
        if self.scope == CLUSTER:
            yield from green_notes(self.green, load, full, self.asked)

    def _tenants(self) -> set[str]:
        """The tenants that have topics in the scope."""
        namespace = namespace_of(self.scope)
        found = [namespace] if namespace else self.blue.namespaces()
        return {each.partition("/")[0] for each in found}


def find_migration(intent: Intent, blue: Blue, access: GreenAccess) -> AskedMigration | None:
    """The migration that an intent asks for; None if no topic would begin to go."""
    green = find_green(intent, blue.migrations)
    return None if green is None else AskedMigration(intent, blue, green, asking(green, access))
