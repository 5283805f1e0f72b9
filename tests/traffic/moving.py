"""Plays the agents of blue's brokers: takes topics to green one step at a time, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np

from agent.migration.port import CannotMigrate
from simulation.traffic.checker import Verdict, judge, read
from simulation.traffic.client import Client
from simulation.traffic.crowd import SUBSCRIPTION, Crowd, Diary
from simulation.traffic.migrating import MigratingBroker
from tests.support.waiting import eventually
from tests.traffic.town import Town
from trimtab.migration.migration import Target

TOPICS = 12


class At(StrEnum):
    """Which step of a topic is next; a step that fails is tried again."""

    BLUE = "blue"
    CREATED = "created"
    TERMINATED = "terminated"
    GREEN = "green"


class Mover:
    """Each call of ``step`` asks the topic's present owner for one step."""

    def __init__(self, blue: Town, green: Town, topics: Sequence[str]) -> None:
        self._blue, self._target = blue, green.urls
        self.at = dict.fromkeys(topics, At.BLUE)
        self.stays: set[str] = set()
        """Topics that a rollback leaves on green."""

    def step(self, topic: str) -> None:
        owner = self._blue.owner
        if owner is None or not owner.alive:
            return
        try:
            self.at[topic] = self.forward(owner.broker, topic, self._target)
        except CannotMigrate:
            return

    def forward(self, broker: MigratingBroker, topic: str, target: Target) -> At:
        match self.at[topic]:
            case At.BLUE:
                broker.create_on(target, topic)
                return At.CREATED
            case At.CREATED:
                broker.terminate(topic, target)
                return At.TERMINATED
            case At.TERMINATED:
                for name, left in broker.backlog(topic).items():
                    if left == 0:
                        broker.redirect(topic, name, target)
                if broker.backlog(topic):
                    return At.TERMINATED
                broker.remove(topic, target)
                return At.GREEN
            case At.GREEN:
                return At.GREEN

    def back(self, topic: str) -> None:
        """Roll the topic back, unless it has to stay."""
        owner = self._blue.owner
        if owner is None or not owner.alive or topic in self.stays:
            return
        try:
            if self.at[topic] not in (At.BLUE, At.CREATED):
                if not owner.broker.take_back(topic, self._target):
                    self.stays.add(topic)
                    return
                owner.broker.reopen(topic)
            self.at[topic] = At.BLUE
        except CannotMigrate:
            return

    def finish(self, topic: str) -> None:
        """Go on with what a rollback left on green."""
        if topic in self.stays:
            self.step(topic)

    def count(self, at: At) -> int:
        return sum(each is at for each in self.at.values())


class Trip:
    """A crowd whose topics migrate between two towns while these are shaken."""

    def __init__(self, folder: Path, blue: Town, green: Town, client: Client, seed: int) -> None:
        self.blue, self.green, self.client = blue, green, client
        self.names = [f"persistent://t/ns/{number}" for number in range(TOPICS)]
        self.rng = np.random.default_rng(seed)
        self.kills = 0
        self.path = folder / "diary"
        self.diary = Diary(self.path)
        self.crowd = Crowd(client, self.names, self.diary)
        eventually(lambda: self.crowd.attached() == TOPICS, "all are attached", 60)
        self.crowd.begin()

    def shake(self, town: Town, calm: bool = False) -> None:
        """Now and then: another owner, a broker killed, one back."""
        luck = 1.0 if calm else float(self.rng.random())
        home = town.homes[int(self.rng.integers(len(town.homes)))]
        if luck < 0.04 and home.alive:
            home.kill()
            self.kills += 1
        elif luck < 0.12 and not home.alive:
            home.start()
        if luck < 0.06 or (town.owner is not None and not town.owner.alive and luck < 0.2):
            town.give(next((each for each in town.homes if each.alive), None))
        elif luck < 0.1 and home.alive:
            town.give(home)

    def until(
        self, done: Callable[[], bool], act: Callable[[str], object], loud: Sequence[str] = ()
    ) -> None:
        """Send, shake and act on random topics until it is done; only ``loud`` ones, or all, get
        messages."""
        steps = 0
        while not done():
            steps += 1
            assert steps < 20_000, "it does not end"
            self.crowd.send(int(self.rng.integers(4)), loud)
            self.shake(self.blue)
            self.shake(self.green)
            act(str(self.rng.choice(self.names)))

    def settle(self) -> Verdict:
        """End the faults, wait until everything has arrived, and judge."""
        for town in (self.blue, self.green):
            for home in town.homes:
                if not home.alive:
                    home.start()
            town.give(town.homes[0])
        eventually(lambda: self.crowd.missing() == 0, "all has arrived", 60)
        return self.verdict()

    def verdict(self) -> Verdict:
        self.diary.close()
        return judge(read([self.path]), [SUBSCRIPTION])
