"""Clusters of brokers in this process, whose owners are a dict: without agents, Redis and Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.reports.host import HostUsage
from deploy.ports import LOOPBACK
from simulation.traffic.broker import TrafficBroker
from simulation.traffic.frames import Urls
from simulation.traffic.server import Server
from simulation.traffic.topic_log import TopicLog
from trimtab.model import Epoch
from trimtab.wire.load_report import UNKNOWN_RESOURCE
from trimtab.wire.lookup import (
    Answer,
    AnswerKind,
    Avoid,
    Cause,
    ServiceUrls,
    answer_retry,
)

BUNDLE = "t/ns/0x00000000_0xffffffff"
TOPIC = "persistent://t/ns/orders"
IDLE = HostUsage(*(UNKNOWN_RESOURCE,) * 4)


class Home:
    """One broker: a server in front of a broker in front of the cluster's log."""

    def __init__(
        self, town: Town, name: str, needs: int, make: Callable[..., TrafficBroker]
    ) -> None:
        self.name = name
        self.log = TopicLog(town.path, town.name)
        self.broker = make(self.log, [BUNDLE], lambda: IDLE)
        self.broker.follow(lambda bundle: town.token(name, bundle), lambda _: town.new_topics)
        self.server = Server(self.broker.desk, town.look_up, name, (LOOPBACK, 0), needs)

    @property
    def url(self) -> str:
        return f"pulsar://{LOOPBACK}:{self.server.port}"

    def close(self) -> None:
        self.server.stop()
        self.log.close()


class Town:
    """A cluster. ``owner`` may be changed at any time; each change is a new epoch."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.path = name, folder / f"{name}.db"
        self.homes: dict[str, Home] = {}
        self.epoch = Epoch(1, 1)
        self.owner: str | None = None
        self.avoided: list[Avoid] = []
        self.new_topics: Urls | None = None

    def add(self, needs: int = 1, make: Callable[..., TrafficBroker] = TrafficBroker) -> Home:
        home = Home(self, f"{self.name}-{len(self.homes)}:8080", needs, make)
        self.homes[home.name] = home
        if self.owner is None:
            self.owner = home.name
        home.server.start()
        return home

    def give(self, home: Home | None) -> None:
        """Have another broker own everything, without a word to the one before."""
        self.epoch = self.epoch._replace(counter=self.epoch.counter + 1)
        self.owner = None if home is None else home.name

    def token(self, name: str, bundle: str) -> Epoch | None:
        return self.epoch if self.owner == name and bundle == BUNDLE else None

    def look_up(self, _topic: str, avoid: Avoid | None) -> Answer:
        if avoid is not None:
            self.avoided.append(avoid)
        if self.owner is None:
            return answer_retry(Cause.HAND_OVER)
        return Answer(
            kind=AnswerKind.CONNECT,
            bundle=BUNDLE,
            broker=self.owner,
            epoch=self.epoch,
            urls=ServiceUrls(pulsar=self.homes[self.owner].url),
        )

    @property
    def urls(self) -> Urls:
        hosts = ",".join(home.url.partition("://")[2] for home in self.homes.values())
        return Urls(
            service_url=f"http://{self.name}",
            broker_service_url=f"pulsar://{hosts}",
            broker_service_url_tls=f"pulsar+ssl://{self.name}:6651",
        )

    @property
    def url(self) -> str:
        return self.urls.broker_service_url

    def close(self) -> None:
        for home in self.homes.values():
            home.close()


@contextmanager
def town(folder: Path, name: str = "blue", brokers: int = 1) -> Iterator[Town]:
    made = Town(folder, name)
    try:
        for _ in range(brokers):
            made.add()
        yield made
    finally:
        made.close()
