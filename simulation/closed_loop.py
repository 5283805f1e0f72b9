"""A fleet and the round that balances it, in one process, in simulated time, without servers.

each step:
  every broker reports as often as in one round interval; snapshots are folded as in the job
  the round decides on the view of the snapshots and the records
  every move is carried out at once
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from simulation.broker import SimulatedBroker
from simulation.load_model import LoadModel
from trimtab.intake.assemble import Holdings, assemble
from trimtab.intake.fold import Arrival, fold
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.plan import Move, Plan
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.wire.ownership import Record
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import encode

EPOCH_MS = 1_800_000_000_000
CLUSTER = "closed-loop"


@dataclass(frozen=True, slots=True)
class Pace:
    """Intervals in seconds."""

    report_interval: float = 1.0
    intake: IntakeSettings = field(default_factory=IntakeSettings)


@dataclass(frozen=True, slots=True)
class LoopCycle:
    """One round: usage range over the brokers after its moves (fraction, free of noise)."""

    number: int
    range: float
    plan: Plan


class ClosedLoop:
    """A fleet that a round balances in a loop; the same model and settings give the same steps."""

    def __init__(self, model: LoadModel, settings: Settings, pace: Pace | None = None) -> None:
        self._settings = settings
        self._pace = pace or Pace()
        self._now_ms = EPOCH_MS
        self._brokers = {
            name: SimulatedBroker(model, row, model.owned_at_start(row), lambda: self._now_ms)
            for row, name in enumerate(model.brokers)
        }
        self._records = {
            bundle: Record(state=State.OWNED, epoch=Epoch(1, 1), owner=name)
            for name, broker in self._brokers.items()
            for bundle in broker.bundles()
        }
        self._snapshots: dict[str, Snapshot] = {}
        self._sequence = 0
        self._state = RoundState()
        self._rng = np.random.default_rng(model.profile.seed)

    def usages(self) -> dict[str, float]:
        """Expected usage of each broker now, a fraction."""
        return {name: broker.usage() for name, broker in self._brokers.items()}

    def range(self) -> float:
        """Usage of the hottest less that of the coldest broker."""
        usages = self.usages().values()
        return max(usages) - min(usages)

    def steps(self, rounds: int) -> Iterator[LoopCycle]:
        """Run that many rounds."""
        for _ in range(rounds):
            self._report()
            plan = self._decide()
            for move in plan.moves:
                self._carry_out(move)
            yield LoopCycle(self._state.number, self.range(), plan)

    def _report(self) -> None:
        pace = self._pace
        for _ in range(max(1, round(self._settings.round.interval / pace.report_interval))):
            self._now_ms += round(1000 * pace.report_interval)
            self._sequence += 1
            for name, broker in self._brokers.items():
                report = decode(encode(broker.load_report()))
                arrival = Arrival(self._now_ms, broker.started_ms, self._sequence, report)
                snapshot, _ = fold(self._snapshots.get(name), name, [arrival], pace.intake)
                assert snapshot is not None
                self._snapshots[name] = snapshot

    def _decide(self) -> Plan:
        view, _ = assemble(CLUSTER, list(self._snapshots.values()), Holdings(self._records))
        plan, self._state = decide(view, self._state, self._settings, self._now_ms, self._rng)
        return plan

    def _carry_out(self, move: Move) -> None:
        self._brokers[move.source].unload(move.bundle)
        self._brokers[move.destination].load(move.bundle)
        epoch = Epoch(move.epoch.generation, move.epoch.counter + 3)
        self._records[move.bundle] = Record(state=State.OWNED, epoch=epoch, owner=move.destination)
