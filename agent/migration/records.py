"""The records of this broker's topics: read from the store, and changed there by what it did.

All methods raise StoreUnavailable, and ``ask`` and ``name`` also Closed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec

from agent.migration.known import KnownTopics
from agent.migration.left import NOTHING_LEFT, Left, left_in
from agent.ports import Topics
from trimtab.migration.life import CLAIMING
from trimtab.migration.migration import Migration
from trimtab.migration.topic_life import TopicEvent
from trimtab.model import Epoch
from trimtab.store.ring import position
from trimtab.wire.topics import Named, TopicCall, TopicChange, TopicOutcome, TopicRecord

Keep = Callable[[], object]
"""Keeps the broker's lease, if that is due; its errors end what is being done."""


LOST_S: Final = 600.0
"""How long a migration counts after the store has lost it. Longer: one that ended meanwhile keeps
new topics from this cluster; shorter: a job that is away has not written it again."""


class Records:
    """One broker's records. Only the agent's thread uses it; other threads may read ``known``."""

    def __init__(
        self,
        cluster: str,
        broker_id: str,
        session: int,
        store: Topics,
        clock: Callable[[], float],
    ) -> None:
        self.known = KnownTopics()
        self._clock = clock
        self._seen = dict[str, float]()
        """Migrations that have topics, and when the store had them last, by the clock."""
        self._cluster, self._store = cluster, store
        self._call = TopicCall(broker=broker_id, session=str(session))
        self._unread = set[str]()
        """Bundles whose topics' records are to be read again."""

    def read_migrations(self) -> None:
        """Read what migrates, and how far it has come.

        A migration that has topics is never deleted. If the store lacks one, it was emptied, and
        gets it back with the job's next round. Until then no topic is created here that belongs on
        the other cluster.
        """
        found, now = self._store.migrations(self._cluster), self._clock()
        lately = {name for name, at in self._seen.items() if now - at < LOST_S}
        lost = {
            name: it for name, it in self.known.migrations.items() if name in lately - found.keys()
        }
        claiming = (name for name, it in found.items() if it.state in CLAIMING)
        self._seen = {name: self._seen[name] for name in lost} | dict.fromkeys(claiming, now)
        self.known.migrations = {**lost, **found}

    def keep(self, bundles: Collection[str]) -> None:
        """Forget the topics of all other bundles."""
        self.known.keep(bundles)
        self._unread.intersection_update(bundles)

    def doubt(self, bundles: Iterable[str]) -> None:
        """Have the records of these bundles' topics read again."""
        self._unread.update(bundles)

    def read(self, bundle: str, keep: Keep) -> None:
        """Read the records of a bundle's topics, unless they are known."""
        if bundle in self._unread or not self.known.has(bundle):
            self.read_again(bundle, keep)

    def read_again(self, bundle: str, keep: Keep) -> None:
        """Read the records of a bundle's topics; while nothing migrates, put that off."""
        found = dict[str, TopicRecord]()
        if self.known.migrations:
            for page in self._store.topics_in(self._cluster, bundle):
                found |= page
                keep()
            self._unread.discard(bundle)
        else:
            self._unread.add(bundle)
        self.known.learn(bundle, found)

    def change(  # noqa: PLR0913 - what a change says
        self,
        bundle: str,
        epoch: Epoch,
        topic: str,
        event: TopicEvent | None,
        migration: Migration,
        left: Left = NOTHING_LEFT,
    ) -> TopicChange:
        """The request for an event of a topic, by its record as it is known."""
        request = self._request(bundle, epoch, topic, event, migration.id)
        return msgspec.structs.replace(
            request,
            wave=self.known.wave_of(migration, topic),
            backlog=left.messages,
            subscription=left.subscription,
            subscriptions=left.subscriptions,
            regions=left.regions,
            more=left.more,
        )

    def enlist(self, bundle: str, epoch: Epoch, topic: str, migration: Migration) -> TopicChange:
        """The request to enlist a topic; one that stayed on green has still something left."""
        left = left_in(self.known.record_of(bundle, topic))
        return self.change(bundle, epoch, topic, TopicEvent.ENLIST, migration, left)

    def forget(self, bundle: str, epoch: Epoch, topic: str, migration: str) -> TopicChange:
        """The request to forget a topic of a migration, which may be remembered no longer."""
        return self._request(bundle, epoch, topic, TopicEvent.FORGET, migration)

    def _request(
        self, bundle: str, epoch: Epoch, topic: str, event: TopicEvent | None, migration: str
    ) -> TopicChange:
        return TopicChange(
            topic=topic,
            bundle=bundle,
            position=position(topic),
            epoch=epoch,
            migration=migration,
            expect=self.known.record_of(bundle, topic).state,
            event=event,
        )

    def ask(self, bundle: str, *changes: TopicChange) -> tuple[TopicOutcome, ...]:
        """Ask for changes, and note the records that stand then."""
        if not changes:
            return ()
        call = msgspec.structs.replace(self._call, changes=changes)
        outcomes = self._store.change(self._cluster, call)
        for outcome in outcomes:
            self.known.note(bundle, outcome)
        return outcomes

    def name(self, *named: Named) -> None:
        """Say that all topics of bundles are enlisted."""
        self._store.change(self._cluster, msgspec.structs.replace(self._call, named=named))
