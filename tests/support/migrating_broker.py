"""Two clusters' topics as lists, and a broker on blue that offers the port of a migration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from agent.example_broker import holds
from agent.migration.port import CannotMigrate, TopicGone, TopicLost
from tests.agent.support import Recorder
from trimtab.migration.migration import Target


@dataclass
class Log:
    """A topic on blue's storage, which outlives its brokers."""

    written: int = 0
    ended: bool = False
    subscriptions: dict[str, int] = field(default_factory=dict)
    """To how many messages each has acknowledged."""
    redirected: set[str] = field(default_factory=set)
    unreplicated: dict[str, int] = field(default_factory=dict)
    """Cluster of another region to how many messages it lacks."""

    def backlog(self) -> dict[str, int]:
        left = self.subscriptions.items()
        return {name: self.written - at for name, at in left if name not in self.redirected}


@dataclass
class Storage:
    """What brokers of both clusters share."""

    blue: dict[str, Log] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    """Topics of which blue knows that it has removed them."""
    green: dict[str, int] = field(default_factory=dict)
    """Topic to how many messages green has taken."""
    ended_on_green: set[str] = field(default_factory=set)
    gone: dict[str, str] = field(default_factory=dict)
    """Topic to the cluster to which a migration from green sends its clients."""
    sent: dict[str, Target] = field(default_factory=dict)
    """Topic to the cluster to which blue has sent its clients last."""
    subscribed_on_green: dict[str, set[str]] = field(default_factory=dict)

    def topic(self, name: str, **subscriptions: int) -> Log:
        self.blue[name] = Log(subscriptions=dict(subscriptions))
        return self.blue[name]


class MigratingBroker(Recorder):
    """Writes down what it does; each name in ``failing`` makes that call fail once more, and each
    call in ``defects`` raises what the port does not name, once more."""

    def __init__(self, storage: Storage, *loaded: str) -> None:
        super().__init__(*loaded)
        self.storage = storage
        self.done: list[str] = []
        self.failing: list[str] = []
        self.defects: list[str] = []
        self.why: str | None = None
        """The reason that a call gives which fails, if not its own."""
        self.held: set[str] = set()
        self.whole_ring = False
        """Whether its one bundle has all topics, by whichever names."""

    def topics_of(self, bundle: str) -> Collection[str]:
        self._break("list")
        if self.whole_ring:
            return list(self.storage.blue)
        return [topic for topic in self.storage.blue if holds(bundle, topic)]

    def create_on(self, target: Target, topic: str) -> None:
        self._do("create", topic)
        assert target.web
        self.storage.green.setdefault(topic, 0)
        there = self.storage.subscribed_on_green.setdefault(topic, set())
        there.update(self.storage.blue[topic].subscriptions)

    def hold(self, topic: str) -> None:
        self._do("hold", topic)
        self.held.add(topic)

    def terminate(self, topic: str, target: Target) -> None:
        self._do("terminate", topic)
        self._send(topic, target)
        if topic in self.storage.blue:
            self.storage.blue[topic].ended = True
        self.held.discard(topic)

    def replication_backlog(self, topic: str) -> Mapping[str, int]:
        return self.storage.blue[topic].unreplicated

    def backlog(self, topic: str) -> Mapping[str, int]:
        log = self.storage.blue.get(topic)
        return {} if log is None else log.backlog()

    def redirect(self, topic: str, subscription: str, target: Target) -> None:
        self._do("redirect", f"{topic}#{subscription}")
        self._send(topic, target)
        self.storage.blue[topic].redirected.add(subscription)

    def remove(self, topic: str, target: Target) -> None:
        self._do("remove", topic)
        self._send(topic, target)
        if self.storage.blue.pop(topic, None) is not None:
            self.storage.removed.add(topic)

    def take_back(self, topic: str, target: Target) -> bool:
        self._do("take back", topic)
        assert target.web
        if topic not in self.storage.blue and topic not in self.storage.removed:
            raise TopicLost(f"blue has nothing of {topic}")
        if topic in self.storage.gone:
            raise TopicGone(self.storage.gone[topic])
        if self.storage.green.get(topic, 0):
            return False
        self.storage.green.pop(topic, None)
        return True

    def release(self, topic: str) -> None:
        self._do("release", topic)
        self.held.discard(topic)

    def reopen(self, topic: str) -> None:
        self._do("reopen", topic)
        log = self.storage.blue.setdefault(topic, Log())
        log.ended, log.redirected = False, set()
        self.held.discard(topic)

    def _send(self, topic: str, target: Target) -> None:
        assert target.web
        self.storage.sent[topic] = target

    def _do(self, verb: str, subject: str) -> None:
        if verb in self.failing:
            self.failing.remove(verb)
            raise CannotMigrate(f"cannot {verb}" if self.why is None else self.why)
        call = f"{verb} {subject.rpartition('/')[2]}"
        self._break(call)
        self.done.append(call)

    def _break(self, call: str) -> None:
        if call in self.defects:
            self.defects.remove(call)
            raise ValueError(call)
