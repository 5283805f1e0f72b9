"""What an agent knows of migrations and of the topics in its bundles.

Only a bundle's owner changes the records of its topics. So what the agent read when it loaded the
bundle, together with the store's answers since, is still true. Any thread may call ``green_for``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from agent.migration.taking import Case
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Migration, Target
from trimtab.migration.scope_index import ScopeIndex
from trimtab.migration.scopes import is_system
from trimtab.migration.topic_life import DRAINS, MAY_ENLIST, REDIRECTING, TopicState
from trimtab.wire.topics import TopicOutcome, TopicRecord

_NO_RECORD: Final = TopicRecord(state=TopicState.UNKNOWN, migration="")


class KnownTopics:
    """Written by the agent's thread; each other call reads a dict, and takes no lock."""

    def __init__(self) -> None:
        self._index = ScopeIndex({}, None)
        self._bundles: dict[str, dict[str, TopicRecord]] = {}
        self._redirects: dict[str, tuple[str, Target]] = {}
        """Topic to its bundle and green."""

    @property
    def migrations(self) -> Mapping[str, Migration]:
        """By id; replaced, never changed."""
        return self._index.migrations

    @migrations.setter
    def migrations(self, found: Mapping[str, Migration]) -> None:
        self._index = ScopeIndex(found, self._index)

    def wave_of(self, migration: Migration, topic: str) -> int:
        """The wave of a topic in the scope of one of them."""
        return self._index.wave_of(migration, topic)

    def green_for(self, topic: str) -> Target | None:
        """Where clients of a topic go whose record redirects them."""
        redirect = self._redirects.get(topic)
        return None if redirect is None else redirect[1]

    def taking(self, topic: str) -> Migration | None:
        """The migration by which a topic is created on green that does not exist yet."""
        if is_system(topic):
            return None
        return self._index.taking(topic)

    def has(self, bundle: str) -> bool:
        """Whether the records of a bundle's topics were read."""
        return bundle in self._bundles

    def learn(self, bundle: str, records: Mapping[str, TopicRecord]) -> None:
        """Replace what is known of a bundle's topics."""
        self._forget(bundle)
        self._bundles[bundle] = {}
        for topic, record in records.items():
            self._note(bundle, topic, record)

    def note(self, bundle: str, outcome: TopicOutcome) -> None:
        """Follow the store's answer, whether it granted or refused."""
        if outcome.record is None:
            self._bundles[bundle].pop(outcome.topic, None)
            self._redirects.pop(outcome.topic, None)
        else:
            self._note(bundle, outcome.topic, outcome.record)

    def keep(self, bundles: Collection[str]) -> None:
        """Forget the topics of all other bundles."""
        for bundle in self._bundles.keys() - bundles:
            self._forget(bundle)

    def case_of(self, bundle: str, topic: str) -> Case | None:
        """A topic with its record and migration; None if either is not known."""
        record = self._bundles.get(bundle, {}).get(topic)
        migration = None if record is None else self.migrations.get(record.migration)
        leads = None if record is None else self.migrations.get(record.led_by)
        if record is None or migration is None or leads is None:
            return None
        overtaken = record.back and self._overtaken(topic, migration)
        return Case(topic, record, migration, leads.target, overtaken)

    def _overtaken(self, topic: str, migration: Migration) -> bool:
        return any(
            each.at > migration.at
            and self.wave_of(each, topic) <= each.wave
            and not _left_nothing(each)
            for each in self._index.having(topic)
        )

    def cases(self, bundle: str) -> Iterator[Case]:
        """Every topic of a bundle that has a record."""
        for topic in tuple(self._bundles.get(bundle, ())):
            case = self.case_of(bundle, topic)
            if case is not None:
                yield case

    def unlisted(self, bundle: str, topics: Iterable[str]) -> Iterator[tuple[str, Migration]]:
        """The topics that must be enlisted, each with its migration."""
        records = self._bundles.get(bundle, {})
        for topic in topics:
            having = self._index.having(topic)
            migration = next((each for each in having if each.state in MAY_ENLIST), None)
            record = records.get(topic)
            if migration is None or (record and record.migration == migration.id):
                continue
            if record is None or record.state is TopicState.ACTIVE or self._drains(record):
                yield topic, migration

    def _drains(self, record: TopicRecord) -> bool:
        """Whether a topic drains by another migration. The store lets a later one have it once that
        was rolled back, and the topic stays; until then its bundle is not named."""
        return record.state in DRAINS and record.migration in self.migrations

    def left_over(self, bundle: str) -> Iterator[tuple[str, TopicRecord]]:
        """The topics on blue whose migration is remembered no longer, with their records."""
        for topic, record in self._bundles.get(bundle, {}).items():
            if record.state is TopicState.ACTIVE and record.migration not in self.migrations:
                yield topic, record

    def record_of(self, bundle: str, topic: str) -> TopicRecord:
        """A topic's record; of one without a record, its state says so."""
        return self._bundles.get(bundle, {}).get(topic, _NO_RECORD)

    def _note(self, bundle: str, topic: str, record: TopicRecord) -> None:
        self._bundles[bundle][topic] = record
        migration = self.migrations.get(record.led_by)
        if migration is not None and record.state in REDIRECTING:
            self._redirects[topic] = bundle, migration.target
        else:
            self._redirects.pop(topic, None)

    def _forget(self, bundle: str) -> None:
        for topic in self._bundles.pop(bundle, ()):
            # The children of a bundle that was split have its topics before it is forgotten.
            if self._redirects.get(topic, ("",))[0] == bundle:
                del self._redirects[topic]


def _left_nothing(migration: Migration) -> bool:
    """Whether a migration was rolled back and has left no topic on green. If the store had lost
    records meanwhile, it says why."""
    is_back = migration.state is MigrationState.ROLLED_BACK
    return is_back and not migration.total.stays and not migration.why
