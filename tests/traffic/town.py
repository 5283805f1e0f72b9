"""Clusters of brokers in this process, whose owners are a dict: without agents, Redis and Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.reports.host import HostUsage
from deploy.ports import LOOPBACK, free_port
from simulation.traffic.admin import Admin
from simulation.traffic.migrating import MigratingBroker
from simulation.traffic.server import Server
from simulation.traffic.topic_log import TopicLog
from trimtab.migration.migration import Migration, Target
from trimtab.model import Epoch
from trimtab.wire.lookup import (
    Answer,
    AnswerKind,
    Avoid,
    Cause,
    ServiceUrls,
    answer_migrated,
    answer_retry,
)
from trimtab.wire.reports.load_report import UNKNOWN_RESOURCE

BUNDLE = "t/ns/0x00000000_0xffffffff"
TOPIC = "persistent://t/ns/orders"
IDLE = HostUsage(*(UNKNOWN_RESOURCE,) * 4)


class Home:
    """One broker: its doors, in front of the cluster's log. It can be killed and started again."""

    def __init__(self, town: Town, kind: type[MigratingBroker], needs: int) -> None:
        self._town, self._kind, self._needs = town, kind, needs
        self._port, self._web_port = free_port(), free_port()
        self.name = f"{LOOPBACK}:{self._web_port}"
        self.alive = False

    @property
    def url(self) -> str:
        return f"pulsar://{LOOPBACK}:{self._port}"

    @property
    def web(self) -> str:
        return f"http://{self.name}"

    def start(self) -> None:
        town = self._town
        self.log = TopicLog(town.path, town.name)
        self.broker = self._kind(self.log, [BUNDLE], lambda: IDLE, home=town.urls)
        self.broker.follow(lambda bundle: town.token(self.name, bundle), town.green_for)
        door = (LOOPBACK, self._port)
        self.server = Server(self.broker.desk, town.look_up, self.name, door, self._needs)
        self.admin = Admin(
            self.broker,
            town.find_owner,
            (LOOPBACK, self._web_port),
            lambda: town.migrations,
        )
        self.server.start()
        self.admin.start()
        self.alive = True

    def kill(self) -> None:
        """Cut everything: no answer that was not sent is sent."""
        if self.alive:
            self.alive = False
            self.server.stop()
            self.admin.stop()
            self.log.close()


class Town:
    """A cluster. ``owner`` may be changed at any time; each change is a new epoch."""

    def __init__(
        self,
        folder: Path,
        name: str,
        brokers: int,
        kind: type[MigratingBroker] = MigratingBroker,
        needs: int = 1,
    ) -> None:
        self.name, self.path = name, folder / f"{name}.db"
        self.homes = [Home(self, kind, needs) for _ in range(brokers)]
        self.epoch = Epoch(1, 1)
        self.owner: Home | None = self.homes[0]
        self.tells_urls = True
        """Whether lookups know where the owner listens."""
        self.avoided: list[Avoid] = []
        self.new_topics: Target | None = None
        self.migrations: list[Migration] = []
        self.gone: dict[str, Target] = {}
        """Topics whose record says that nothing of them is left here."""

    def give(self, home: Home | None) -> None:
        """Have another broker own everything, without a word to the one before."""
        self.epoch = self.epoch._replace(counter=self.epoch.counter + 1)
        self.owner = home

    def token(self, name: str, bundle: str) -> Epoch | None:
        owned = self.owner is not None and self.owner.name == name and bundle == BUNDLE
        return self.epoch if owned else None

    def look_up(self, topic: str, avoid: Avoid | None) -> Answer:
        if avoid is not None:
            self.avoided.append(avoid)
        gone = self.gone.get(topic)
        return self.find_owner(topic) if gone is None else answer_migrated(gone)

    def green_for(self, topic: str) -> Target | None:
        return self.gone.get(topic, self.new_topics)

    def find_owner(self, _topic: str) -> Answer:
        if self.owner is None:
            return answer_retry(Cause.HAND_OVER)
        return Answer(
            kind=AnswerKind.CONNECT,
            bundle=BUNDLE,
            broker=self.owner.name,
            epoch=self.epoch,
            urls=ServiceUrls(pulsar=self.owner.url, web=self.owner.web)
            if self.tells_urls
            else None,
        )

    @property
    def urls(self) -> Target:
        return Target(
            serviceUrl=f"http://{','.join(home.name for home in self.homes)}",
            brokerServiceUrl=self.url,
            brokerServiceUrlTls=self.url.replace("pulsar:", "pulsar+ssl:"),
        )

    @property
    def url(self) -> str:
        hosts = ",".join(home.url.partition("://")[2] for home in self.homes)
        return f"pulsar://{hosts}"


@contextmanager
def town(
    folder: Path,
    name: str = "blue",
    brokers: int = 2,
    kind: type[MigratingBroker] = MigratingBroker,
    needs: int = 1,
) -> Iterator[Town]:
    made = Town(folder, name, brokers, kind, needs)
    try:
        for home in made.homes:
            home.start()
        yield made
    finally:
        for home in made.homes:
            home.kill()
