"""The true state of the fleet: the load and owner of every bundle, and the brokers that are up.

Columns that a view may still show are replaced, never changed in place: `owner`, `intended`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulation.scenarios.scenario import Scenario
from simulation.scenarios.world.needs import needs_of
from simulation.scenarios.world.population import populate
from trimtab.arrays import Bools, Floats, Ints
from trimtab.names import PackedNames


@dataclass(frozen=True, slots=True)
class Stay:
    """A past stay of a bundle on a broker: from ``arrived_ms`` on, and no longer at ``left_ms``."""

    row: int
    broker: int
    arrived_ms: int
    left_ms: int


@dataclass(frozen=True, slots=True)
class Flight:
    """A move in flight."""

    destination: int
    until_ms: int


class World:
    """n brokers and m bundles; a split increases m, a merge does not change it."""

    def __init__(self, scenario: Scenario) -> None:
        made = populate(scenario)
        n, m = len(made.brokers), made.load.size
        self.scenario = scenario
        self.brokers, self.capacity, self.domain = made.brokers, made.capacity, made.domain
        self.broker_row = {name: row for row, name in enumerate(made.brokers)}
        self.policies = made.policies(scenario)
        self.namespaces, self.namespace, self.group = made.namespaces, made.namespace, made.group
        self.ranges = made.ranges
        self.base = made.load
        """(m,) load without the effect of the time of day."""
        self.solid: Floats = np.zeros(m)
        """(m,) the part of it that is in one topic."""
        self.topics: Ints = np.full(m, scenario.topics)
        self.kind, self.needs = made.kind, needs_of(scenario.kinds, scenario.need)
        """(m,) the kind of each bundle, and what loads of each kind take."""
        self.origin: Ints = np.arange(m)
        """(m,) the initial bundle that it is, or is a part of."""
        self.gone: Bools = np.zeros(m, dtype=np.bool_)
        """(m,) whether the row is empty because its bundle was merged into another."""
        self.heirs: dict[int, int] = {}
        """Rows that are gone, and the row each was merged into."""
        self.owner = self.intended = made.owner
        self.arrived_ms: Ints = np.zeros(m, dtype=np.int64)
        self.up: Bools = np.arange(n) < made.present
        self.draining: Bools = np.zeros(n, dtype=np.bool_)
        self.busy: Floats = np.zeros(n)
        """(n,) the part of each processor that is in use without any load of the broker."""
        self.crashed_ms: dict[int, int] = {}
        """Brokers that are down because they crashed."""
        self.flights: dict[int, Flight] = {}
        self.stays: list[Stay] = []
        """Stays of the last minutes, if reports are late."""
        self.unseen: list[int] = []
        """Rows that their brokers have not seen before; `Statistics` reads and clears it."""
        self.halved: list[tuple[int, int]] = []
        """Rows that were split, each with the row of the other child; cleared in the same way."""
        self.joined: list[tuple[int, int]] = []
        """Rows that were merged, each with the row that it took in; cleared in the same way."""
        self.disturbed = True
        """Whether loads or brokers changed other than by moves; the reader clears it."""
        self.names = PackedNames(self.namespaces, self.namespace, self.ranges)
        self.row = {name: row for row, name in enumerate(self.names)}
        self.sizes = self.count_sizes()
        self._late = scenario.delay.high > 0 or scenario.reports.used
        self._factor: Floats | None = None
        self._own: Floats | None = None
        self._load: Floats | None = None
        self._levels: Floats | None = None
        self._total: float | None = None
        self._capacity_up: float | None = None

    @property
    def load(self) -> Floats:
        """(m,) true load of each bundle in this cycle."""
        if self._load is None:
            load = self.base
            if self._factor is not None:
                load = load * self._factor[self.namespace]
            self._load = load if self._own is None else load * self._own[self.origin]
        return self._load

    @property
    def levels(self) -> Floats:
        """(n,) true usage of each broker, with the bundles where they are now."""
        if self._levels is None:
            self._levels = self.usage_of(self.owner)
        return self._levels

    @property
    def total(self) -> float:
        """All load."""
        if self._total is None:
            self._total = float(self.load.sum())
        return self._total

    @property
    def capacity_up(self) -> float:
        """The capacity of the brokers that are up."""
        if self._capacity_up is None:
            self._capacity_up = float(self.capacity[self.up].sum())
        return self._capacity_up

    def planned(self) -> Floats:
        """(n,) the same once moves in flight have landed."""
        if self.intended is self.owner:
            return self.levels
        return self.usage_of(self.intended)

    def usage_of(self, owner: Ints) -> Floats:
        """(n,) what brokers' usage would be with (m,) ``owner``."""
        carried = self.by_kind(owner, self.load, self.kind)
        return self.needs.usage(carried, self.capacity, self.busy)

    def by_kind(self, owner: Ints, load: Floats, kind: Ints) -> Floats:
        """(k, n) the sums of loads by kind and owner."""
        n, k = len(self.brokers), self.needs.used.shape[1]
        cells = owner if k == 1 else kind * n + owner
        return np.bincount(cells, load, k * n).astype(np.float64).reshape(k, n)

    def disturb(self) -> None:
        """Note that loads or brokers have changed."""
        self.forget_loads()
        self.disturbed = True

    def forget_loads(self) -> None:
        """Compute loads and usages again when they are next read."""
        self._load = self._levels = self._total = self._capacity_up = None

    def set_factor(self, factor: Floats) -> None:
        """Set the (namespaces,) factors that the time of day applies to loads."""
        self._factor = factor
        self.disturb()

    def vary(self, factor: Floats) -> None:
        """Set the factors by which each initial bundle's load changes by itself."""
        self._own = factor
        self.disturb()

    def issue(self, moves: Mapping[int, int], now_ms: int, flight_ms: Iterable[int]) -> None:
        """Start moves, given bundle rows and their destinations; each takes its ``flight_ms``."""
        at_once = {}
        for (row, broker), lasts_ms in zip(moves.items(), flight_ms, strict=True):
            if lasts_ms:
                self.flights[row] = Flight(broker, now_ms + lasts_ms)
            else:
                at_once[row] = broker
        self.give(at_once, now_ms)

    def give(self, moves: Mapping[int, int], at_ms: int) -> None:
        """Give bundles, by row, to the brokers that have them from now on."""
        if moves:
            rows = np.array([*moves], dtype=np.int64)
            if self._late:
                left = zip(rows.tolist(), self.owner[rows].tolist(), strict=True)
                self.stays += [Stay(r, b, int(self.arrived_ms[r]), at_ms) for r, b in left]
            self.owner = self.owner.copy()
            self.owner[rows] = [*moves.values()]
            self.arrived_ms[rows] = at_ms
            self.unseen += moves
            for row in moves:
                self.flights.pop(row, None)
            self._levels = None
        self.aim()

    def land(self, now_ms: int) -> None:
        """Land the moves whose time has come."""
        due = {row: each for row, each in self.flights.items() if each.until_ms <= now_ms}
        for row, flight in due.items():
            del self.flights[row]
            self.give({row: flight.destination}, flight.until_ms)

    def stop(self, broker: int, crashed_ms: int | None) -> None:
        """Stop a broker; with ``crashed_ms`` it crashes, and the others do not expect it."""
        self.up = self.up.copy()
        self.up[broker] = self.draining[broker] = False
        self.flights = {row: f for row, f in self.flights.items() if f.destination != broker}
        self.aim()
        if crashed_ms is not None:
            self.crashed_ms[broker] = crashed_ms
        self.disturb()

    def occupy(self, broker: int, share: float) -> None:
        """Keep this part of a broker's processor busy, beside what it carries."""
        self.busy = self.busy.copy()
        self.busy[broker] = share
        self.disturb()

    def start(self, broker: int) -> None:
        """Start a broker, new or stopped."""
        self.up = self.up.copy()
        self.up[broker] = True
        self.crashed_ms.pop(broker, None)
        self.disturb()

    def orphans(self) -> list[int]:
        """Rows of bundles whose broker is down."""
        if self.up.all():
            return []
        rows: list[int] = np.flatnonzero(~self.up[self.owner] & ~self.gone).tolist()
        return rows

    def parts(self, origins: Sequence[int]) -> list[int]:
        """Rows that hold these initial bundles now."""
        rows = np.flatnonzero(np.isin(self.origin, origins)).tolist()
        return sorted({self._heir(row) for row in rows})

    def _heir(self, row: int) -> int:
        while row in self.heirs:
            row = self.heirs[row]
        return row

    def count_sizes(self) -> dict[str, int]:
        """The number of bundles of each namespace."""
        here = self.namespace[~self.gone]
        counts = np.bincount(here, minlength=len(self.namespaces)).tolist()
        return dict(zip(self.namespaces, counts, strict=True))

    def aim(self) -> None:
        """Update where each bundle will be."""
        self.intended = self.owner
        if self.flights:
            self.intended = self.owner.copy()
            self.intended[[*self.flights]] = [each.destination for each in self.flights.values()]
