"""The real job as a child process, on real Kafka and Redis, with a fleet that never rests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import redis

from agent.reports.outbox import Outbox
from agent.reports.producer import kafka_producer
from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.load_model import load_model
from simulation.replay.batches import Replay, distinct
from simulation.replay.recorded import RecordedTopics
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topics import ensure_topics
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from streaming.config import JobConfig, load_config
from tests.faults import history
from tests.faults.brokers import FragileBroker, Node, all_served, node
from tests.faults.proxy import Proxy
from tests.faults.serving import Clock, Diary
from tests.faults.table import Row
from tests.faults.world import FLEET, SETTINGS
from tests.support.commands import changes, published
from tests.support.jobs import Driver, write_settings
from tests.support.waiting import eventually
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Change, Record
from trimtab.wire.rounds import BatchRecord, RoundRecord

PATIENCE_S: Final = 400.0
BATCHES: Final = 6
"""A driver is disturbed once it has got so far."""
LEASE_S: Final = 10.0
T_S: Final = LEASE_S + 15.0
GRACE_MS: Final = 60_000
"""For I4: a driver may be away for longer than the deadline, and is started again meanwhile."""


@dataclass
class Bench:
    """A job and its services, as `bench` makes them. All drivers share one checkpoint, unless one
    gets its own folder."""

    cluster: str
    folder: Path
    kafka: KafkaServer
    server: RedisServer
    link: Proxy
    """The link to Redis, for the drivers that are behind it."""
    client: redis.Redis
    topics: RecordedTopics
    nodes: dict[str, Node]
    outbox: Outbox
    diary: Diary
    publisher: Publisher
    drivers: list[Driver] = field(default_factory=list)
    _told: int = 0

    def driver(
        self,
        *options: str,
        behind: bool = False,
        folder: Path | None = None,
        spark: dict[str, str] | None = None,
        **environment: str,
    ) -> Driver:
        """Another driver, not started yet; ``behind`` the link, or connected to Redis directly."""
        where = folder or self.folder
        where.mkdir(exist_ok=True)
        url, name = self.server.url, f"job-{len(self.drivers)}"
        if behind:
            url = url.replace(f":{self.server.port}/", f":{self.link.port}/")
        settings = write_settings(where, self.kafka.bootstrap, url, SETTINGS, spark)
        settings = settings.rename(where / f"{name}.toml")
        made = Driver(where, settings, *options, name=name, **environment)
        self.drivers.append(made)
        return made

    def records(self) -> dict[str, Record]:
        return OwnershipStore(self.client).records(self.cluster)

    def changes(self) -> list[Change]:
        return changes(self.topics.all(keys.OWNERSHIP), self.cluster)

    def moves(self) -> int:
        """Hand-overs so far, as published."""
        return sum(change.event is Event.HAND_OVER for change in self.changes())

    def batches(self) -> list[BatchRecord]:
        return self.topics.batches()

    def rounds(self, newest: int = 20) -> list[RoundRecord]:
        return [each for batch in self.topics.newest_batches(newest) for each in batch.rounds]

    def await_moves(self, more: int, seconds: float = PATIENCE_S) -> None:
        goal = self.moves() + more
        eventually(lambda: self.moves() >= goal, f"{goal} moves", seconds, 0.3)

    def reports(self) -> int:
        """How many load reports Kafka has."""
        partitions = self.topics.partitions(keys.LOAD_REPORTS)
        ends = (self.topics.ends(keys.LOAD_REPORTS, each) for each in partitions)
        return sum(high - low for low, high in ends)

    def await_reports(self, number: int) -> None:
        eventually(lambda: self.reports() >= number, f"{number} reports", PATIENCE_S, 0.3)

    def all_served(self) -> bool:
        return all_served(self.records(), self.nodes)

    def await_served(self) -> None:
        eventually(self.all_served, "every bundle is served", PATIENCE_S)

    def tell(self, kind: IntentKind, **more: object) -> None:
        """Publish an intent."""
        self._told += 1
        asked = {"id": f"bench-{self._told}", "kind": kind, "cluster": self.cluster, **more}
        value = msgspec.json.encode(msgspec.convert(asked, Intent))
        self.publisher.publish([Outgoing(keys.CONTROL, self.cluster, value)])

    def go(self) -> None:
        """Let strategies ask for moves and splits (again)."""
        self.tell(IntentKind.SETTINGS, settings={"round.enabled": True, "split.enabled": True})

    def rest(self) -> None:
        """Stop further changes, and wait until those under way have ended and are journalled."""
        self.tell(IntentKind.SETTINGS, settings={"round.enabled": False, "split.enabled": False})
        eventually(self._rests, "rest", PATIENCE_S, 0.3)

    def _rests(self) -> bool:
        rounds = self.rounds()
        idle = bool(rounds) and rounds[-1].skipped == "disabled" and not rounds[-1].moves
        journal = keys.journal_key(self.cluster)
        return idle and self.all_served() and self.client.xlen(journal) == 0

    def check(self, row: Row, driver: Driver, since: float, *, one_history: bool = True) -> None:
        """Come to rest, end the driver, and hold every invariant against all that happened.

        I5 is asked of the time after ``since`` by the diary's clock. Where two drivers have gone on
        from one checkpoint there is nothing to replay, and each knows of its own moves only.
        """
        self.rest()
        end = self.diary.now()
        driver.stop()
        spans, journal, batches = self.diary.spans(), self.changes(), self.batches()
        heard = [command for node in self.nodes.values() for command in node.heard]
        commands = [*published(self.topics.all(keys.COMMANDS)), *heard]
        seconds, _ = msgspec.convert(self.client.time(), tuple[int, int])
        later_ms = 1000 * seconds + 10 * GRACE_MS
        broken, late = history.audited(journal, commands, self.records(), later_ms, GRACE_MS)
        gaps = history.gaps(spans, since, end)
        row.note("dual owners", len(history.dual_owners(spans)))
        row.note("moves", self.moves())
        row.note("unowned bundle-s", round(sum(gap.seconds for gap in gaps), 1))
        row.note("longest unowned s", round(max((g.seconds for g in gaps), default=0.0), 1))
        row.holds("I1", history.dual_owners(spans))
        row.holds("I2", [str(violation) for violation in broken])
        row.holds("I3", history.carried_out_late(journal, commands))
        row.holds("I4", [str(violation) for violation in late])
        row.holds("I5", [gap for gap in gaps if gap.seconds > T_S])
        if one_history:
            row.holds("I6", self._divergence(batches))
            row.holds("I7", history.restless(batches, journal, self.config.round_settings()))

    @property
    def config(self) -> JobConfig:
        """The settings that all drivers share."""
        return load_config(next(self.folder.glob("*.toml")))

    def _divergence(self, batches: list[BatchRecord]) -> list[str]:
        config = self.config
        found: list[str] = []
        for query in {batch.query for batch in batches}:
            replay = Replay(config.intake_settings(), config.round_settings())
            found += history.diverges(
                [batch for batch in batches if batch.query == query], replay, self.topics.read_by
            )
        return found


def repeated(batches: list[BatchRecord]) -> int:
    """How many batches were run again."""
    return len(batches) - len(list(distinct(batches)))


@contextmanager
def bench(folder: Path, name: str, seed: int = 1) -> Iterator[Bench]:
    """Services and a fleet, without a driver."""
    jars.fetch()
    # Captured log records would keep sockets alive that the outbox closes at its end.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    model, diary = load_model(FLEET), Diary()
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaServer(folder / "kafka"))
        server = stack.enter_context(RedisServer(folder / "redis"))
        link = stack.enter_context(Proxy(server.port, seed))
        client = stack.enter_context(redis_client(server.url))
        ensure_topics(kafka.bootstrap)
        topics = stack.enter_context(closing(RecordedTopics(kafka.bootstrap)))
        outbox = Outbox(partial(kafka_producer, kafka.bootstrap))
        nodes = {
            broker: node(
                broker,
                partial(FragileBroker, model, number),
                name,
                server.url,
                outbox,
                diary,
                state=folder / f"seen-{number}",
                lease_s=LEASE_S,
                margin_s=1.0,
                clock=Clock(),
            )
            for number, broker in enumerate(model.brokers)
        }
        publisher = Publisher(kafka.bootstrap)
        it = Bench(
            name, folder, kafka, server, link, client, topics, nodes, outbox, diary, publisher
        )
        outbox.start()
        try:
            for each in nodes.values():
                each.start()
            yield it
        finally:
            for driver in it.drivers:
                if driver.running:
                    driver.kill()
            for each in nodes.values():
                each.stop()
            outbox.stop()
