"""A job, a broker and a clock small enough to see through; store and streams are the real ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from redis import Redis

from agent.broker import CannotLoad
from agent.commands.actions import obey
from agent.commands.obeying import Obeyed, Obeyer
from agent.ownership.holdings import Holdings
from agent.ownership.seen import Seen
from sinks.redis.command_streams import CommandStream
from sinks.redis.ownership_store import OwnershipStore
from tests.support.opening import SureStore, keep_alive, let_in, let_lapse
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event, State
from trimtab.wire.command import Command, CommandKind, Division
from trimtab.wire.keys import command_stream
from trimtab.wire.ownership import Neighbour, Record, Refused, Transition
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData

A, B = "a:8080", "b:8080"
BUNDLE = "t/ns/0x00000000_0xffffffff"
HALVES = ("t/ns/0x00000000_0x7fffffff", "t/ns/0x7fffffff_0xffffffff")
SESSION = 1_800_000_000_000
FREE = Record(state=State.FREE, epoch=NO_EPOCH)
_NOT_NOW = frozenset({Refused.ILLEGAL, Refused.SAME_BROKER, Refused.OWNER_LIVES, Refused.NOT_OWNER})


class Clock:
    """Time as a value, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Recorder:
    """A broker that writes down what it was told; while ``broken`` it cannot load."""

    def __init__(self, *loaded: str) -> None:
        self.loaded = set(loaded)
        self.broken = False
        self.urls: dict[str, str | None] = {}
        """Members of its load report."""
        self.told: list[str] = []
        self.positions: list[int] = []

    def bundles(self) -> set[str]:
        return self.loaded

    def load_report(self) -> LocalBrokerData:
        stats = {bundle: BundleStats() for bundle in sorted(self.loaded)}
        report = LocalBrokerData(last_stats=stats, start_timestamp=SESSION)
        return msgspec.structs.replace(report, **self.urls)

    def prepare(self, bundle: str) -> None:
        self.told.append(f"prepare {bundle}")

    def load(self, bundle: str) -> None:
        if self.broken:
            raise CannotLoad(bundle)
        self.told.append(f"load {bundle}")
        self.loaded.add(bundle)

    def unload(self, bundle: str) -> None:
        self.told.append(f"unload {bundle}")
        self.loaded.discard(bundle)

    def topics(self, bundle: str) -> Mapping[int, Sequence[float]]:  # noqa: ARG002 - of any
        return dict.fromkeys(self.positions, (0.0, 0.0, 0.0, 0.0))

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self.told.append(f"split {bundle}")
        self.loaded.discard(bundle)
        self.loaded.update(children)

    def merge(self, parts: Sequence[str], whole: str) -> None:
        self.told.append(f"merge {whole}")
        self.loaded.difference_update(parts)
        self.loaded.add(whole)


class Job:
    """What the job asks of one bundle's record, each request a batch of its own."""

    def __init__(self, client: Redis, cluster: str) -> None:
        self.store = SureStore(client)
        self.cluster = cluster
        self._client = client
        self._batch = 0
        let_in(client, cluster, 1)

    def record(self, bundle: str = BUNDLE) -> Record:
        return self.store.record(self.cluster, bundle) or FREE

    def assign(self, to: str) -> None:
        self.ask(Event.ASSIGN, to, {to: CommandKind.OWN})

    def unload(self, source: str) -> None:
        self.ask(Event.UNLOAD, None, {source: CommandKind.UNLOAD})

    def transfer(self, source: str, to: str, bundle: str = BUNDLE) -> None:
        told = {source: CommandKind.TRANSFER, to: CommandKind.PREPARE}
        self.ask(Event.TRANSFER, to, told, bundle=bundle)

    def split(self, source: str, algorithm: str = "range_equally_divide", *positions: int) -> None:
        division = Division(
            algorithm=algorithm,
            max_rate=1000.0,
            max_throughput=1e9,
            difference=0.1,
            positions=positions,
        )
        self.ask(Event.SPLIT, None, {source: CommandKind.SPLIT}, division)

    def merge(self, source: str) -> None:
        """The halves."""
        self.ask(
            Event.MERGE, None, {source: CommandKind.MERGE}, bundle=HALVES[0], neighbour=HALVES[1]
        )

    def keep(self, bundle: str = BUNDLE) -> None:
        self.ask(Event.KEEP, None, {}, bundle=bundle)

    def lose(self) -> None:
        let_lapse(self._client, self.cluster, self.record().owner or "")
        self.ask(Event.LOSE, None, {})

    def ask(  # noqa: PLR0913 - what a request may say
        self,
        event: Event,
        broker: str | None,
        told: dict[str, CommandKind],
        division: Division | None = None,
        *,
        bundle: str = BUNDLE,
        neighbour: str | None = None,
    ) -> None:
        """Raises NotPossible where the script refuses it."""
        if broker is not None:
            keep_alive(self._client, self.cluster, (broker,))
        self._batch += 1
        name = f"{self.cluster}/q/{self._batch}/0"
        commands = tuple(
            Command(
                id=f"{name}/{kind.value}",
                cluster=self.cluster,
                broker=receiver,
                kind=kind,
                bundle=bundle,
                destination=broker,
                division=division,
                neighbour=neighbour,
            )
            for receiver, kind in told.items()
        )
        beside = Neighbour(neighbour, self.record(neighbour).epoch) if neighbour else None
        request = Transition(
            id=name,
            bundle=bundle,
            event=event,
            expect=self.record(bundle).epoch,
            neighbour=beside,
            broker=broker,
            commands=commands,
            within_ms=30_000,
        )
        outcomes = self.store.apply_batch(
            self.cluster, [request], generation=1, query_id="q", batch=self._batch
        ).outcomes
        if outcomes[0].reason in _NOT_NOW:
            raise NotPossible(f"{event} of {bundle}: it is {self.record(bundle).state}")
        assert outcomes[0].accepted, outcomes


class NotPossible(Exception):
    """Raised for a request that the record's state does not allow."""


class Site:
    """A broker with the obeying half of its agent."""

    def __init__(self, client: Redis, cluster: str, broker_id: str, *loaded: str) -> None:
        self.clock = Clock()
        self.broker = Recorder(*loaded)
        self.holdings = Holdings(self.clock)
        self.holdings.extend(self.clock.now + 10.0)
        self.obeyer = Obeyer(
            cluster, broker_id, 1, self.broker, OwnershipStore(client), self.holdings, Seen(None)
        )
        keep_alive(client, cluster, (broker_id,))
        self.stream = CommandStream(client, cluster, broker_id)
        self.seen: list[Command] = []
        self._client, self._key = client, command_stream(cluster, broker_id)

    def commands(self) -> list[Command]:
        """What has come, acknowledged at once."""
        # Waiting for nothing, even for 1 ms, takes the server up to its next tick.
        if not self._client.xlen(self._key):
            return []
        entries = self.stream.read(1)
        self.stream.acknowledge(entry for entry, _ in entries)
        commands = [command for _, command in entries]
        self.seen += commands
        return commands

    def obey(self) -> list[Obeyed]:
        return [obey(self.obeyer, command) for command in self.commands()]


def lines(verbs: Iterable[str]) -> list[str]:
    return [f"{verb} {BUNDLE}" for verb in verbs]
