"""One bundle with its topics, its present owner, and what both clusters store: in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agent.migration.mover import Mover
from agent.migration.port import AskAgain
from agent.ownership.holdings import Holdings
from sinks.errors import StoreUnavailable
from tests.agent.support import Clock
from tests.support.migrating_broker import MigratingBroker, Storage
from tests.support.migrations import GREEN
from tests.support.topic_shelf import TopicShelf
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Migration, Target
from trimtab.model import Epoch
from trimtab.wire.topics import TopicCall, TopicOutcome

A, B = "a:8080", "b:8080"
BUNDLE: Final = "t/ns/0x00000000_0xffffffff"
ONE, TWO = "persistent://t/ns/one", "persistent://t/ns/two"


class Fragile(TopicShelf):
    """A store of which some answers are lost: the change is made, and its answer is lost."""

    lost = 0

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[TopicCall] = []

    def change(self, cluster: str, call: TopicCall) -> tuple[TopicOutcome, ...]:
        self.calls.append(call)
        outcomes = super().change(cluster, call)
        if self.lost:
            self.lost -= 1
            raise StoreUnavailable("no answer")
        return outcomes


class Place:
    """One bundle of a cluster, its present owner, and what both clusters store."""

    def __init__(self) -> None:
        self.store, self.storage, self.clock = Fragile(), Storage(), Clock()
        self.epoch = 0
        self.owned_by(A)

    def owned_by(self, name: str) -> None:
        """A new process of that name gets the bundle, by a newer record."""
        self.epoch += 1
        epoch = Epoch(1, self.epoch)
        self.store.owners[BUNDLE] = (name, epoch)
        self.store.sessions[name] = str(self.epoch)
        self.broker = MigratingBroker(self.storage, BUNDLE)
        self.holdings = holdings = Holdings(self.clock)
        holdings.extend(1e9)
        self.mover = Mover("c", name, self.epoch, self.broker, self.store, holdings, self.clock)
        self.mover.resume(BUNDLE, lambda: None)
        holdings.hold(BUNDLE, epoch)

    def migrate(self, state: MigrationState = MigrationState.RUNNING, **more: object) -> None:
        it = Migration("m", "c", "t/ns", GREEN, state)
        self.store.known["m"] = replace(it, **more)  # type: ignore[arg-type]
        self.mover.wake()

    def look(self) -> list[str]:
        """A whole look; what the broker did."""
        self.broker.done.clear()
        self.mover.wake()
        self.mover.look(lambda: None)
        while self.mover.next_at <= self.clock.now:
            self.mover.look(lambda: None)
        return list(self.broker.done)

    def asked(self, topic: str) -> Target | type[AskAgain] | None:
        """The answer to a broker that does not have the topic."""
        try:
            return self.mover.green_for(topic)
        except AskAgain:
            return AskAgain

    def state(self, topic: str = ONE) -> str:
        record = self.store.records.get(topic)
        return "unknown" if record is None else record.state.value
