"""The view that a round has of a world, straight from its columns.

processor = what the bundles of a broker show together, over its capacity; the four traffic figures
            are in proportion to it
A bundle that its owner has not reported yet is left out, as `trimtab.intake.assemble` does;
`simulation.scenarios.lateness` makes reports late.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from simulation.load_model import LOAD_MANAGER
from simulation.scenarios.lateness import Lateness
from simulation.scenarios.statistics import Smoothed, Statistics
from simulation.scenarios.world import World
from trimtab.arrays import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    THROUGHPUT_IN,
    Bools,
    Counts,
    Floats,
    Ints,
)
from trimtab.load import percentages
from trimtab.view import Brokers, Bundles, View, available_part

CLUSTER: Final = "scenario"

TRAFFIC: Final = np.array([[5e4], [5e4], [5.12e8], [5.12e8]])
"""(4, 1) messages/s and bytes/s, in and out, of a load of 1: enough for no minimum of Pulsar's
strategies to hide a gap that their thresholds see."""
LINK_SHARE: Final = 0.2
"""The share of its links that a fully busy broker uses: the processor dominates."""
_LINK: Final = TRAFFIC[THROUGHPUT_IN, 0] * 8 / 1000
FULL: Final = np.array([[800.0], [1638.4], [819.2], [_LINK], [_LINK]])
"""(5, 1) what a broker of the first class uses of each resource at a load of 1: eight processors in
percent, heap and direct memory in MiB, which do not follow load here, links in kbit/s."""
LIMITS: Final = np.array([[800.0], [4096.0], [8192.0], [_LINK / LINK_SHARE], [_LINK / LINK_SHARE]])
"""(5, 1) limits of the same broker."""
_FOLLOWING: Final = [CPU, BANDWIDTH_IN, BANDWIDTH_OUT]


class Reports:
    """Builds views of one world, once a cycle."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lateness = Lateness(world)
        self.statistics = Statistics(world, self.lateness.cycles)
        self._limits = LIMITS * world.capacity
        self._idle = FULL * world.capacity
        self._traffic: tuple[Floats, Floats] | None = None
        self._smoothed = Smoothed(len(world.brokers))
        self._held: tuple[Ints, Ints, Ints] | None = None
        self._fixed: tuple[Ints, Counts, Bools] | None = None

    def view(self, now_ms: int) -> View:
        """The view of the round at ``now_ms``; the round fills in the averages of brokers."""
        world = self._world
        self.statistics.draw()
        self.lateness.hear(now_ms)
        shown, seen = self.lateness.shown(self.statistics.drawn)
        self.statistics.average(shown, seen, self.lateness.reported_ms)
        bundles = self._bundles(shown)
        view = View(
            cluster=CLUSTER,
            brokers=self._brokers(shown, seen),
            bundles=bundles,
            # The same column, not an equal one, if nothing is in flight.
            intended=world.intended,
            policies=world.policies,
            now_ms=now_ms,
            sizes=world.sizes,
        )
        if seen is not None and not seen.all():
            view = replace(view, bundles=bundles.part(seen), intended=world.intended[seen])
        return view if world.up.all() and not world.draining.any() else self._without(view)

    def _without(self, view: View) -> View:
        """The view without absent brokers; some others may not receive."""
        world = self._world
        here = world.up.copy()
        here[world.owner] = True
        view = available_part(replace(view, brokers=replace(view.brokers, available=here)))
        available = (world.up & ~world.draining)[here]
        return replace(view, brokers=replace(view.brokers, available=available))

    def _brokers(self, shown: Floats, seen: Bools | None) -> Brokers:
        world, n = self._world, len(self._world.brokers)
        if seen is None:
            carried = np.bincount(world.owner, shown, n).astype(np.float64)
            topics, listed = self._holdings()
        else:
            carried, topics, listed = self.lateness.carried(self.statistics.drawn, shown, seen)
        used = self._idle.copy()
        used[_FOLLOWING] = FULL[_FOLLOWING] * carried
        resources, traffic = percentages(used, self._limits), TRAFFIC * carried
        smoothed = self._smoothed.follow(
            np.concatenate((resources, traffic)), self.lateness.reported_ms
        )
        return Brokers(
            names=world.brokers,
            resources=resources,
            traffic=traffic,
            smoothed_resources=smoothed[:5],
            smoothed_traffic=smoothed[5:],
            topics=topics,
            listed=listed,
            available=world.up,
            averages=np.full((2, n), np.nan),
            reported_ms=self.lateness.reported_ms,
            relieved_ms=np.zeros(n, dtype=np.int64),
            versions=("4.0.8",) * n,
            load_managers=(LOAD_MANAGER,) * n,
            persistent=np.ones(n, dtype=np.bool_),
            limits=self._limits,
        )

    def _holdings(self) -> tuple[Ints, Ints]:
        """(n,) topics and bundles of each broker; counted again when a bundle moved."""
        owner, topics = self._world.owner, self._world.topics
        if self._held is None or self._held[0] is not owner:
            n = len(self._world.brokers)
            counts = np.bincount(owner, topics, n).astype(np.int64)
            self._held = owner, counts, np.bincount(owner, minlength=n)
        return self._held[1:]

    def _bundles(self, shown: Floats) -> Bundles:
        world, statistics = self._world, self.statistics
        if self._traffic is None or statistics.changed:
            self._traffic = TRAFFIC * statistics.short, TRAFFIC * statistics.long
        if self._fixed is None or self._fixed[0] is not world.topics:
            each = world.topics.astype(np.int32)
            counts = np.stack((each, each, each, 0 * each))
            self._fixed = world.topics, counts, np.ones(each.size, np.bool_)
        _, counts, movable = self._fixed
        staying = [*world.flights, *world.orphans()]
        if staying:
            movable = movable.copy()
            movable[staying] = False
        return Bundles(
            names=world.names,
            namespace=world.namespace,
            namespaces=world.namespaces,
            owner=world.owner,
            short=self._traffic[0],
            long=self._traffic[1],
            reported=cache(lambda: TRAFFIC * shown),
            counts=counts,
            movable=movable,
        )
