"""A cluster to break: its own Redis, restless brokers, the job without Spark, and what they did.

Leases are short, so that a row takes seconds. Everything else is as in production.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import redis

from deploy.redis_server import RedisServer
from simulation.load_model import load_model
from simulation.profile import Profile
from simulation.replay.batches import Replay
from sinks.errors import SinkError
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from sources.records import Record as Entry
from tests.faults import history
from tests.faults.brokers import FragileBroker, Node, all_served, node
from tests.faults.job import INTAKE, Job
from tests.faults.proxy import Proxy
from tests.faults.serving import Clock, Diary
from tests.faults.table import Row
from tests.faults.topics import Claims, Post, Topics
from tests.support.commands import published
from tests.support.jobs import QUICK
from tests.support.opening import let_in
from tests.support.sentinels import Watched, watched
from tests.support.waiting import eventually
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import Record, Transition
from trimtab.wire.rounds import BatchRecord

LEASE_S: Final = 3.0
MARGIN_S: Final = 0.3
LONG_S: Final = 1.5 * LEASE_S
"""How long a fault lasts that costs a broker its lease."""
T_S: Final = LEASE_S + 15.0
"""T of I5: most of it for a machine that other work keeps busy."""
GRACE_MS: Final = 5000
"""From a command's deadline until its bundle is repaired, for I4: some rounds, and a lease."""

FLEET: Final = Profile(brokers=4, bundles=16, namespaces=2, low=0.3, high=0.7, seed=3)

SETTINGS: Final[Mapping[str, object]] = {
    **QUICK,
    "round.move_deadline": 4.0,
    # Longer than a swing of the load: what was moved would go back at once.
    "round.grace_period": 4.0,
    "round.silence": 5.0,
    "flapping.first_delay": 1.0,
    "doubt.delay": 2.0,
    # Bundles of a simulated broker are small, and not what these tests are about.
    "split.enabled": False,
}


@dataclass
class World:
    """Put together by `world`."""

    cluster: str
    server: RedisServer
    link: Proxy
    """The link to Redis, for the brokers that are behind it."""
    client: redis.Redis
    topics: Topics
    job: Job
    nodes: dict[str, Node]
    row: Row
    diary: Diary
    settled_at: float = 0.0
    """When everything was served for the first time, by the diary's clock."""
    faults: list[float] = field(default_factory=list)
    watched: Watched | None = None
    """The servers and Sentinels, where there are several; ``server`` is the first master."""

    def node(self, number: int) -> Node:
        return list(self.nodes.values())[number]

    def records(self) -> dict[str, Record]:
        """The records in Redis; none while it does not answer."""
        try:
            return OwnershipStore(self.client).records(self.cluster)
        except SinkError:
            return {}

    def owner(self, bundle: str) -> Node:
        name = self.records()[bundle].owner
        assert name is not None
        return self.nodes[name]

    def owned_by(self, broker: str) -> list[str]:
        return [bundle for bundle, record in self.records().items() if record.owner == broker]

    def operate(self, request: Transition) -> None:
        """Write what an operator asks for, beside the job's batches."""
        done = OwnershipStore(self.client).apply_batch(
            self.cluster,
            [request],
            generation=self.job.leadership.generation,
            query_id="operator",
            batch=1,
        )
        assert done.outcomes[0].accepted, done

    def moves(self) -> int:
        """Hand-overs so far, as published."""
        return sum(change.event is Event.HAND_OVER for change in self.job.changes())

    def await_moves(self, more: int, seconds: float = 150.0) -> float:
        """Wait for so many more moves; returns the seconds since the last fault.

        Where the watcher saw two leases end, rounds only repair for a minute.
        """
        goal = self.moves() + more
        try:
            eventually(lambda: self.moves() >= goal, f"{goal} moves", seconds)
        except AssertionError as error:
            error.add_note(f"the last rounds: {self.job.rounds()[-3:]}")
            raise
        return self._since_fault()

    def await_open(self, seconds: float = 60.0) -> float:
        """Wait until the records may be changed again; returns the seconds since the last fault."""
        gate = ClusterGate(self.client)

        def is_open() -> bool:
            try:
                return gate.is_open(self.cluster)
            except SinkError:
                return False

        eventually(is_open, "an open store", seconds)
        return self._since_fault()

    def all_served(self) -> bool:
        return all_served(self.records(), self.nodes)

    def fault(self) -> None:
        """Note that the fault begins or ends now."""
        self.faults.append(self.diary.now())

    def let_pass(self, seconds: float) -> None:
        """Wait while the fault lasts."""
        until = self.diary.now() + seconds
        eventually(lambda: self.diary.now() > until, f"{seconds:.0f} s", seconds + 5)

    @contextmanager
    def job_away(self) -> Iterator[None]:
        """Stop the job for the block: the brokers find Redis first."""
        self.link.cut()
        yield
        self.link.mend()

    def await_served(self, seconds: float = 60.0) -> float:
        """Wait until every bundle is served; returns the seconds since the last fault."""
        eventually(self.all_served, "every bundle is served", seconds)
        return self._since_fault()

    def _since_fault(self) -> float:
        return self.diary.now() - max(self.faults, default=self.settled_at)

    def rest(self) -> None:
        """Stop further moves, and wait until those under way have ended and are journalled."""
        self.job.tell(IntentKind.SETTINGS, settings={"round.enabled": False})
        eventually(self._moves_no_more, "no further moves")
        journal = keys.journal_key(self.cluster)
        eventually(lambda: self.all_served() and self.client.xlen(journal) == 0, "rest")

    def _moves_no_more(self) -> bool:
        """Whether the last round knew that it may not; doubt, for a minute after losses, hides that
        it did."""
        last = self.job.rounds()[-1]
        return last.overrides.get("round.enabled") is False and not last.moves

    def check(self, *, longest_gap_s: float = T_S, excused: tuple[float, float] = (0, 0)) -> None:
        """Come to rest, hold every invariant against what happened, and note the figures.

        ``excused``: a time, by the diary's clock, in which nothing could be owned: not part of I5.
        """
        self.rest()
        end = self.diary.now()
        spans, changes = self.diary.spans(), self.job.changes()
        heard = [command for node in self.nodes.values() for command in node.heard]
        commands = [*published(self.topics.all(keys.COMMANDS)), *heard]
        records = self.records()
        seconds, micros = msgspec.convert(self.client.time(), tuple[int, int])
        later_ms = 1000 * seconds + micros // 1000 + 10 * GRACE_MS
        broken, late = history.audited(changes, commands, records, later_ms, GRACE_MS)
        gaps = history.gaps(spans, self.settled_at, end)
        long = [
            gap
            for gap in gaps
            if gap.seconds > longest_gap_s and not (excused[0] <= gap.begin <= excused[1])
        ]
        self.row.note("dual owners", len(history.dual_owners(spans)))
        self.row.note("moves", self.moves())
        self.row.note("unowned bundle-s", round(sum(gap.seconds for gap in gaps), 1))
        self.row.note("longest unowned s", round(max((g.seconds for g in gaps), default=0.0), 1))
        self.row.holds("I1", history.dual_owners(spans))
        self.row.holds("I2", [str(violation) for violation in broken])
        self.row.holds("I3", history.carried_out_late(changes, commands))
        self.row.holds("I4", [str(violation) for violation in late])
        self.row.holds("I5", long)
        self.row.holds("I6", self._divergence())
        self.row.holds("I7", history.restless(self.job.batches(), changes, self.job.settings))

    def _divergence(self) -> list[str]:
        def read_by(batch: BatchRecord) -> Iterator[Entry]:
            for topic, partitions in batch.offsets.items():
                yield from self.topics.all(topic, *partitions["0"])

        replay = Replay(INTAKE, self.job.settings)
        return history.diverges(self.job.batches(), replay, read_by)


@contextmanager
def world(  # noqa: PLR0913 - what a cluster is made of
    row: Row,
    folder: Path,
    *,
    seed: int = 1,
    profile: Profile = FLEET,
    settings: Mapping[str, object] = SETTINGS,
    behind: frozenset[int] | None = frozenset(),
    job_behind: bool = False,
    rates: Mapping[int, float] = {},
    lease_s: float = LEASE_S,
    failover: bool = False,
) -> Iterator[World]:
    """A cluster in which every bundle is served.

    ``behind``: the brokers, by number, whose way to Redis is the link; None: all of them.
    ``job_behind``: the job's way too.
    ``failover``: with two replicas and three Sentinels, which reach the master by the link only.
    Who is behind the link follows the Sentinels; others know the first master's own address.
    ``rates``: how fast the clocks of brokers run that are not true.
    """
    cluster = f"row-{row.number}"
    model, topics, claims, diary = load_model(profile), Topics(), Claims(), Diary()
    post = Post(topics)
    with ExitStack() as stack:
        several = stack.enter_context(watched(folder / "redis")) if failover else None
        if several is None:
            server = stack.enter_context(RedisServer(folder / "redis"))
            link = stack.enter_context(Proxy(server.port, seed))
            through = server.url.replace(f":{server.port}/", f":{link.port}/")
        else:
            server, link, through = several.master, several.link, several.url
        jobs_way = through if job_behind else server.url
        # An observer from outside looks where the job does only if that is all there is.
        outside = jobs_way if behind is None or failover else server.url
        client = stack.enter_context(redis_client(outside))
        job = Job(cluster, jobs_way, topics, claims, settings, lease_s)
        nodes = {
            name: node(
                name,
                partial(FragileBroker, model, number),
                cluster,
                through if behind is None or number in behind else server.url,
                post,
                diary,
                state=folder / f"seen-{number}",
                lease_s=lease_s,
                margin_s=MARGIN_S,
                clock=Clock(rates.get(number, 1.0)),
            )
            for number, name in enumerate(model.brokers)
        }
        it = World(cluster, server, link, client, topics, job, nodes, row, diary, watched=several)
        with closing(it.client):
            if several is None:
                # A store that remembers nothing stays closed for a lease and more: that is for the
                # rows that empty it.
                let_in(client, cluster, 1)
            try:
                for each in nodes.values():
                    each.start()
                job.start()
                eventually(it.all_served, "every bundle is served")
                it.settled_at = diary.now()
                yield it
            finally:
                for each in nodes.values():
                    each.stop()
                job.stop()
