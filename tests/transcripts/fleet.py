"""The brokers of a story and the store that they share, in memory.

The agent's own code obeys the commands. `simulation.ownership.redis.server` judges every request by
the rules that Redis judges by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from agent.commands.actions import obey
from agent.commands.obeying import Obeyed, Obeyer
from agent.ownership.holdings import Holdings
from agent.ownership.seen import Seen
from simulation.ownership.redis.server import MemoryServer
from tests.transcripts.broker import StoryBroker
from tests.transcripts.names import Names
from trimtab.wire.command import Command
from trimtab.wire.ownership import Record, Transition, TransitionOutcome
from trimtab.wire.reports.load_report import LocalBrokerData

CLUSTER: Final = "story"
LEASE_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class AgentStore:
    """The server as an agent uses it."""

    server: MemoryServer

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        return self.server.apply(cluster, transition, server_ms)

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition]
    ) -> tuple[TransitionOutcome, ...]:
        return self.server.apply_all(cluster, transitions)

    def record(self, cluster: str, bundle: str) -> Record | None:
        return self.server.record(cluster, bundle)

    def records_of(
        self, cluster: str, broker: str, besides: Iterable[str] = ()
    ) -> dict[str, Record]:
        return self.server.page(cluster, {*self.server.owned(cluster, broker), *besides})


class Fleet:
    """Brokers by name, in the order in which the story names them."""

    def __init__(self, server: MemoryServer, held: Mapping[str, Mapping[str, float]]) -> None:
        """``held``: what each broker begins with, by short name, and the MB/s of each bundle."""
        self.names = Names(bundle for bundles in held.values() for bundle in bundles)
        self.traffic = {
            self.names.real(bundle): figure
            for bundles in held.values()
            for bundle, figure in bundles.items()
        }
        self._server = server
        self.brokers = {
            name: StoryBroker(
                name, self.names, self.traffic, server.now_ms(), np.random.default_rng(row)
            )
            for row, name in enumerate(held)
        }
        self._lying: set[str] = set()
        """Entries of commands that were told as not obeyed."""
        self._agents = {name: self._agent(broker) for name, broker in self.brokers.items()}
        self.renew_leases()
        for name, bundles in held.items():
            for bundle in map(self.names.real, bundles):
                asked = self._agents[name].claiming(bundle, None)
                self._agents[name].follow(server.apply(CLUSTER, asked))

    def renew_leases(self) -> None:
        """Of all brokers that are up."""
        for name, broker in self.brokers.items():
            if broker.up:
                self._server.renew(CLUSTER, name, broker.session, LEASE_MS)

    def obey(self) -> list[tuple[Command, Obeyed | None]]:
        """Every new command, with how it ended; None where its broker leaves it lying."""
        told: list[tuple[Command, Obeyed | None]] = []
        while waiting := self._waiting():
            for entry, command in waiting:
                broker = self.brokers[command.broker]
                if broker.up and broker.obeys:
                    told.append((command, obey(self._agents[command.broker], command)))
                    self._server.acknowledge(CLUSTER, command.broker, [entry])
                else:
                    told.append((command, None))
                    self._lying.add(entry)
        return told

    def reports(self) -> Iterator[tuple[str, LocalBrokerData]]:
        """Of all brokers that are up."""
        for name, broker in self.brokers.items():
            if broker.up:
                yield name, broker.load_report()

    # What a story says happens

    def set_load(self, bundle: str, figure: str) -> None:
        self.traffic[self.names.real(bundle)] = float(figure)

    def set_extra(self, broker: str, percent: str) -> None:
        self.brokers[broker].extra = float(percent)

    def set_noise(self, percent: str) -> None:
        for broker in self.brokers.values():
            broker.noise = float(percent) / 100

    def disobey(self, broker: str) -> None:
        self.brokers[broker].obeys = False

    def obey_again(self, name: str) -> None:
        """Take up what was left lying."""
        self.brokers[name].obeys = True
        self._lying.clear()

    def crash(self, name: str) -> None:
        """It ends without a word."""
        self.brokers[name].up = False

    def start_again(self, name: str) -> None:
        """As another process, which has nothing."""
        before = self.brokers[name]
        broker = replace(before, up=True, loaded=set(), session=before.session + 1)
        broker.started_ms = self._server.now_ms()
        self.brokers[name], self._agents[name] = broker, self._agent(broker)

    def _waiting(self) -> list[tuple[str, Command]]:
        """In the order in which they were sent."""
        found = [
            each
            for name in self.brokers
            for each in self._server.waiting(CLUSTER, name)
            if each[0] not in self._lying
        ]
        return sorted(found, key=lambda each: int(each[0].partition("-")[0]))

    def _agent(self, broker: StoryBroker) -> Obeyer:
        holdings = Holdings(lambda: 0.0)
        holdings.extend(math.inf)
        store = AgentStore(self._server)
        return Obeyer(CLUSTER, broker.name, broker.session, broker, store, holdings, Seen(None))
