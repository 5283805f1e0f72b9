"""The events of a world, by cycle; the scenario fixes them before the first cycle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from math import tau

import numpy as np

from simulation.scenarios.scenario import Scenario
from simulation.scenarios.world.state import World
from simulation.scenarios.world.wandering import Wandering

Happening = Callable[[World, int], None]
"""(world, now_ms)"""


class Events:
    """A scenario's events: the same for every strategy."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._rng = np.random.default_rng([scenario.seed, 1])
        self._phases = self._rng.random(
            scenario.namespaces + scenario.affinity.groups * (scenario.affinity.members)
        )
        self._wandering = Wandering(scenario)
        self._due: dict[int, list[Happening]] = defaultdict(list)
        for cycle, happening in self._all():
            self._due[cycle].append(happening)
        self.cycles = tuple(sorted(self._due))
        """Cycles with an event, apart from the time of day and what bundles do by themselves."""

    def begin(self, world: World, cycle: int, now_ms: int) -> None:
        """Set the world to this cycle's load and brokers; call it in every cycle, in order."""
        if self._wandering.active:
            world.vary(self._wandering.step())
        if self._scenario.wave.amplitude:
            self._wave(world, cycle)
        for happening in self._due.get(cycle, ()):
            happening(world, now_ms)

    def _wave(self, world: World, cycle: int) -> None:
        wave = self._scenario.wave
        phases = self._phases
        if wave.in_phase or wave.opposed:
            phases = np.arange(phases.size, dtype=np.float64) % 2 / 2 * wave.opposed
        turn = tau * (cycle * self._scenario.seconds / wave.period + phases)
        swing = np.clip(wave.steep * np.sin(turn), -1.0, 1.0)
        world.set_factor(1 + wave.amplitude * swing)

    def _all(self) -> Iterator[tuple[int, Happening]]:
        scenario, rng = self._scenario, self._rng
        yield from self._joining()
        # Drawn even if nothing happens, so that one event does not change another's draw.
        busy, order = rng.permutation(scenario.bundles), rng.permutation(scenario.brokers)
        if scenario.step.share:
            count = max(1, round(scenario.step.share * scenario.bundles))
            rows = busy[:count].tolist()
            yield scenario.step.cycle, partial(_step, rows=rows, factor=scenario.step.factor)
        if scenario.hot.bundle or scenario.hot.topic:
            yield scenario.hot.cycle, partial(_heat, row=int(busy[-1]))
        yield from self._crash(order.tolist())
        yield from self._restart()
        yield from self._back_up(order.tolist())

    def _joining(self) -> Iterator[tuple[int, Happening]]:
        start = self._scenario.start
        late = range(start.brokers or self._scenario.brokers, self._scenario.brokers)
        for place, broker in enumerate(late):
            yield start.joining + place * start.every, partial(_start, broker=broker)

    def _crash(self, order: list[int]) -> Iterator[tuple[int, Happening]]:
        scenario, crash = self._scenario, self._scenario.crash
        lost = set(order[: crash.brokers])
        if crash.domains:
            zones = range(crash.domains)
            lost |= {b for b in range(scenario.brokers) if b % scenario.domains in zones}
        for broker in sorted(lost):
            yield crash.cycle, partial(_crash, broker=broker)
            if crash.returning:
                yield crash.cycle + crash.returning, partial(_start, broker=broker)

    def _restart(self) -> Iterator[tuple[int, Happening]]:
        restart = self._scenario.restart
        brokers = restart.brokers or self._scenario.brokers
        for broker in range(brokers if restart.every else 0):
            stopped = restart.cycle + broker * restart.every
            if restart.drained:
                yield stopped - 1, partial(_drain, broker=broker)
                yield stopped, partial(_stop, broker=broker)
            else:
                yield stopped, partial(_crash, broker=broker)
            if restart.down:
                yield stopped + restart.down, partial(_start, broker=broker)

    def _back_up(self, order: list[int]) -> Iterator[tuple[int, Happening]]:
        backup = self._scenario.backup
        if not backup.share:
            return
        for turn, begins in enumerate(range(backup.cycle, self._scenario.cycles, backup.every)):
            broker = order[turn % len(order)]
            yield begins, partial(_occupy, broker=broker, share=backup.share)
            yield begins + backup.lasting, partial(_occupy, broker=broker, share=0.0)


def _step(world: World, now_ms: int, rows: list[int], factor: float) -> None:  # noqa: ARG001
    rows = world.parts(rows)
    world.base = world.base.copy()
    world.base[rows] *= factor
    world.solid[rows] *= factor
    world.disturb()


def _heat(world: World, now_ms: int, row: int) -> None:  # noqa: ARG001
    hot, rows = world.scenario.hot, world.parts([row])
    world.base = world.base.copy()
    if hot.topic:
        world.base[rows[0]] += hot.topic
        world.solid[rows[0]] = hot.topic
    else:
        world.base[rows] = hot.bundle / len(rows)
    world.disturb()


def _occupy(world: World, now_ms: int, broker: int, share: float) -> None:  # noqa: ARG001
    world.occupy(broker, share)


def _start(world: World, now_ms: int, broker: int) -> None:  # noqa: ARG001
    world.start(broker)


def _stop(world: World, now_ms: int, broker: int) -> None:  # noqa: ARG001
    world.stop(broker, None)


def _drain(world: World, now_ms: int, broker: int) -> None:  # noqa: ARG001
    world.draining[broker] = True


def _crash(world: World, now_ms: int, broker: int) -> None:
    # Half a cycle ago: by now the others have done whatever they do at once.
    world.stop(broker, now_ms - round(500 * world.scenario.seconds))
