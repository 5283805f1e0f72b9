"""Two clusters whose topics migrate: brokers, Redis and drivers are real, and are killed.

Brokers and clients are processes, and both clusters have one Redis and one job, the one without
Spark (`tests.faults.job`), whose reports are fetched from the brokers. A driver dies by losing its
connections at once; the next one has a higher generation, and no checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

import msgspec
import redis

from agent.reports.reporting import Reporter
from deploy.ports import LOOPBACK
from deploy.redis_server import RedisServer
from sinks.errors import SinkError
from sinks.kafka.publisher import Outgoing
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from streaming.periodic import Periodic
from tests.faults.brokers import CADENCE
from tests.faults.job import Job
from tests.faults.proxy import Proxy
from tests.faults.topics import Claims, Post, Topics
from tests.faults.world import SETTINGS
from tests.support.opening import let_in
from tests.support.waiting import eventually
from tests.traffic.fleet import START_S, BrokerProcess, Cluster, CrowdProcess
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts, Gate, Migration, Wave
from trimtab.migration.scopes import CLUSTER
from trimtab.model import FULL_RANGE_END, HashRange
from trimtab.ownership import State
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.keys import CONTROL

LEASE_S: Final = 3.0
MIGRATION: Final = "to-green"
NOWHERE: Final = f"{LOOPBACK}:1"
"""For Kafka: the land has none."""


def bundles(namespace: str, number: int) -> list[str]:
    """A namespace's bundles, of equal size."""
    edges = [FULL_RANGE_END * each // number for each in range(number + 1)]
    return [f"{namespace}/{HashRange(low, high)}" for low, high in pairwise(edges)]


class Office:
    """The driver, over all of its lives."""

    def __init__(self, clusters: Sequence[Cluster], server: RedisServer) -> None:
        self._server, self._topics, self._claims = server, Topics(), Claims()
        self._link = Proxy(server.port)
        post = Post(self._topics)
        self._reporters = [
            (broker, Reporter(post, cluster.name, broker.name, CADENCE))
            for cluster in clusters
            for broker in cluster.brokers
        ]
        self._asked_of = clusters[0].name

    def start(self) -> None:
        url = self._server.url.replace(f":{self._server.port}/", f":{self._link.port}/")
        self.job = Job(self._asked_of, url, self._topics, self._claims, SETTINGS, LEASE_S)
        self.job.start()

    def kill(self) -> None:
        """Whatever it is doing now has no further effect."""
        self._link.cut()
        with suppress(SinkError):
            self.job.stop()
        self._link.mend()

    def tell(self, kind: IntentKind, **more: object) -> None:
        """Publish an intent."""
        intent = msgspec.convert({"cluster": self._asked_of, "kind": kind, **more}, Intent)
        value = msgspec.json.encode(intent)
        self._topics.publish([Outgoing(CONTROL, intent.cluster, value)])

    def collect(self) -> None:
        """Have the newest load reports of its brokers published, as their agents would."""
        for broker, reporter in self._reporters:
            report = broker.load_report()
            if report is not None:
                reporter.offer(report, time.monotonic())

    @contextmanager
    def open(self) -> Iterator[None]:
        with self._link:
            self.start()
            try:
                yield
            finally:
                self.job.stop()


class Land:
    """Put together by `land`."""

    def __init__(
        self, server: RedisServer, client: redis.Redis, blue: Cluster, green: Cluster
    ) -> None:
        self.server, self.client = server, client
        self.blue, self.green = blue, green
        self.office = Office((blue, green), server)
        self.kills: dict[str, int] = {}
        self.readmits = True
        """Whether those who wait for something readmit bundles that were quarantined."""
        self._told = 0

    @property
    def brokers(self) -> list[BrokerProcess]:
        return [*self.blue.brokers, *self.green.brokers]

    def migrate(self, topics: int, waves: int, gate: Gate | None = None) -> None:
        """Ask for the migration of everything, in equal waves."""
        shares = [Wave((CLUSTER,), (each + 1) / waves) for each in range(waves - 1)]
        # Brokers die, and with them what was asked of green: that is what is tried.
        gate = gate or Gate(backlog=topics, errors=1.0)
        self.office.tell(
            IntentKind.MIGRATION_START,
            id=MIGRATION,
            scope=CLUSTER,
            target=self.green.urls,
            waves=shares,
            gate=gate,
        )

    def tell(self, kind: IntentKind) -> None:
        """Ask something else of the migration."""
        self._told += 1
        self.office.tell(kind, id=f"{kind.value}-{self._told}", migration=MIGRATION)

    def readmit(self) -> None:
        """Do what an operator does with bundles whose owners died too often: nothing else would
        bring them back, and a slow machine takes long to start a broker again."""
        for cluster in (self.blue, self.green):
            with suppress(SinkError):
                found = OwnershipStore(self.client).records(cluster.name)
                for bundle, record in found.items():
                    if record.state is State.QUARANTINED:
                        self._told += 1
                        what = {"id": f"readmit-{self._told}", "bundle": bundle}
                        self.office.tell(IntentKind.READMIT, cluster=cluster.name, **what)

    def migration(self) -> Migration | None:
        """As Redis has it; None before it is there, and while Redis does not answer."""
        try:
            return Migrations(self.client).read(self.blue.name).get(MIGRATION)
        except SinkError:
            return None

    def is_in(self, state: MigrationState, wave: int = 0) -> bool:
        """Whether the migration is in this state, and has come to this wave, from 0."""
        it = self.migration()
        return it is not None and it.state is state and it.wave >= wave

    def counts(self) -> Counts:
        """Of all topics; zeros while Redis does not answer."""
        try:
            return sum_of(Migrations(self.client).counts(self.blue.name, MIGRATION))
        except SinkError:
            return Counts()

    def shake(self, rng: Random, what: str = "", brokers: Sequence[BrokerProcess] = ()) -> None:
        """Kill something, or ``what`` is named, and start it again."""
        what = what or rng.choice(["broker", "broker", "broker", "driver", "redis"])
        self.kills[what] = self.kills.get(what, 0) + 1
        match what:
            case "broker":
                broker = rng.choice(brokers or self.brokers)
                broker.kill()
                broker.start()
            case "driver":
                self.office.kill()
                self.office.start()
            case _:
                self.server.kill()
                self.server.start()


def sum_of(counts: dict[str, Counts]) -> Counts:
    """Of all waves."""
    total = Counts()
    for name, each in counts.items():
        total = total.plus(each) if name.isdigit() else total
    return total


@contextmanager
def land(folder: Path, namespaces: int, brokers: int = 2) -> Iterator[Land]:
    """Two clusters that serve all of their bundles."""
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(folder / "redis"))
        client = stack.enter_context(redis_client(server.url))
        everything = [each for n in range(namespaces) for each in bundles(f"t/ns-{n}", 2)]
        blue, green = (
            Cluster(folder, name, brokers, everything, server.url, NOWHERE, LEASE_S)
            for name in ("blue", "green")
        )
        it = Land(server, client, blue, green)
        for each in (blue, green):
            let_in(client, each.name, 1)
        stack.enter_context(it.office.open())
        for broker in it.brokers:
            broker.start()
            stack.callback(broker.stop)
        for broker in it.brokers:
            eventually(broker.answers, f"{broker.name} answers", START_S)
        collector = Periodic("collector", 0.5, it.office.collect, print)
        collector.start()
        stack.callback(collector.stop)
        yield it


@contextmanager
def crowded(it: Land, topics: list[str], rate: float, loud: int = 0) -> Iterator[CrowdProcess]:
    """Clients of all topics, each attached; they have begun to send."""
    crowd = CrowdProcess(it.blue.folder, it.blue.urls.brokerServiceUrl, topics, rate, loud)
    crowd.start()
    try:
        eventually(lambda: crowd.status().sent, "all attached, and some sent", 300)
        yield crowd
    finally:
        crowd.stop()
