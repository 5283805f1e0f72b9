"""The view that a round has of a world, straight from its columns.

resources and traffic = what the loads that a broker's bundles show need together
                        (`simulation.scenarios.world.needs`)
A bundle that its owner has not reported yet is left out, as `trimtab.intake.assemble` does;
`simulation.scenarios.reports.lateness` makes reports late. A bundle's last statistics are those of
the newest report, where the job's may be as old as the last sample (`trimtab.intake.fold`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from simulation.load_model import LOAD_MANAGER
from simulation.scenarios.reports.lateness import Lateness
from simulation.scenarios.reports.statistics import Smoothed, Statistics
from simulation.scenarios.world.needs import IDLE, LIMITS
from simulation.scenarios.world.state import World
from trimtab.arrays import CPU, Bools, Counts, Floats, Ints
from trimtab.load import percentages
from trimtab.settings import RoundSettings
from trimtab.view import Brokers, Bundles, View, available_part

CLUSTER: Final = "scenario"
_DEFAULTS: Final = RoundSettings()


class Reports:
    """Builds views of one world, once a cycle."""

    def __init__(self, world: World, settings: RoundSettings = _DEFAULTS) -> None:
        """A broker that is silent by these ``settings`` is left out, with its bundles."""
        self._world, self._settings = world, settings
        self.lateness = Lateness(world)
        self.statistics = Statistics(world, self.lateness.cycles)
        self._limits = LIMITS * world.capacity
        self._idle = IDLE * world.capacity
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
        silent = self.silent()
        whole = world.up.all() and not world.draining.any() and not silent.any()
        return view if whole else self._without(view, silent)

    def silent(self) -> Bools:
        """(n,) brokers that are up and left out."""
        return self.lateness.silent(self._settings)

    def _without(self, view: View, silent: Bools) -> View:
        """The view without absent brokers; some others may not receive."""
        world = self._world
        here = world.up.copy()
        here[world.owner] = True
        here &= ~silent
        view = available_part(replace(view, brokers=replace(view.brokers, available=here)))
        available = (world.up & ~world.draining)[here]
        return replace(view, brokers=replace(view.brokers, available=available))

    def _brokers(self, shown: Floats, seen: Bools | None) -> Brokers:
        world, n = self._world, len(self._world.brokers)
        if seen is None:
            carried = world.by_kind(world.owner, shown, world.kind)
            topics, listed = self._holdings()
        else:
            carried, topics, listed = self.lateness.carried(self.statistics.drawn, shown, seen)
        used = world.needs.used @ carried + self._idle
        used[CPU] += world.busy * self._limits[CPU]
        resources, traffic = percentages(used, self._limits), world.needs.traffic @ carried
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
            each = world.needs.traffic[:, world.kind]
            self._traffic = each * statistics.short, each * statistics.long
        if self._fixed is None or self._fixed[0] is not world.topics:
            topics = world.topics.astype(np.int32)
            counts = np.stack((topics, topics, topics, 0 * topics))
            self._fixed = world.topics, counts, np.ones(topics.size, np.bool_)
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
            reported=cache(lambda: world.needs.traffic[:, world.kind] * shown),
            counts=counts,
            movable=movable,
        )
