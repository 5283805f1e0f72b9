"""What would become of the present fleet with other brokers: rounds on its newest load reports.

start from each broker's newest report and from the records
add brokers that are like a present one and empty; let removed and drained ones count as draining
for each round, until two in a row move nothing:
  every broker reports twice; the round decides, by the cluster's settings
  every move is carried out at once: the bundle takes its share of its broker's load with it, in
  proportion to its bytes a second
Nothing is sent: the real fleet is not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import numpy as np

from control.changed_reports import empty_like, move_load
from trimtab.explaining.shortages import find_shortages
from trimtab.intake.assemble import Holdings, assemble
from trimtab.intake.fold import Arrival, fold
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.load import usage
from trimtab.nearby import nearby
from trimtab.ownership import State
from trimtab.plan import Move
from trimtab.policies import Policies
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.view import View
from trimtab.wire.ownership import Record
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import LocalBrokerData, encode

MOST_BUNDLES: Final = 100_000
"""Bundles of a fleet that is tried: with more, each round takes seconds."""
_MOST_ROUNDS: Final = 20
_CALM: Final = 2
"""Rounds without a move after which nothing more is expected."""


class Impossible(ValueError):
    """The fleet cannot be tried so; the text says why."""


class Figures(msgspec.Struct, frozen=True):
    """Usage (fractions) of the brokers that may have bundles."""

    brokers: int
    usage_min: float
    usage_mean: float
    usage_max: float
    usage_range: float


class Outlook(msgspec.Struct, frozen=True):
    """What would become of the fleet."""

    before: Figures
    after: Figures
    moves: int
    rounds: int
    left: dict[str, int]
    """Bundles that removed and drained brokers would still have, where that is any."""
    usage: dict[str, float]
    """Usage of each broker afterwards."""
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """How the fleet is to differ from the present one."""

    add: int = 0
    like: str = ""
    """A broker with the hardware of the added ones; empty: the first by name."""
    without: frozenset[str] = frozenset()
    """Brokers that are removed or drained."""


@dataclass(slots=True)
class Fleet:
    """The fleet as it is tried; ``reports`` and ``records`` change with each move."""

    cluster: str
    reports: dict[str, LocalBrokerData]
    records: dict[str, Record]
    settings: Settings
    policies: Policies
    now_ms: int
    _state: RoundState = field(default_factory=RoundState, init=False)
    _snapshots: dict[str, Snapshot] = field(default_factory=dict, init=False)
    _sequence: int = field(default=0, init=False)

    def try_out(self, change: Changed) -> Outlook:
        """Run rounds until nothing more moves; raises Impossible."""
        self._check(change)
        before = self._view(frozenset())
        for number in range(change.add):
            like = change.like or min(self.reports)
            self.reports[f"added-{number + 1}:0"] = empty_like(self.reports[like])
        moves = rounds = calm = 0
        while rounds < _MOST_ROUNDS and calm < _CALM + 1:
            view = self._view(change.without)
            plan, self._state = decide(
                view, self._state, self.settings, self.now_ms, self._state.draws(self.cluster)
            )
            for move in plan.moves:
                self._carry_out(move)
            rounds, moves = rounds + 1, moves + len(plan.moves)
            calm = 0 if plan.moves else calm + 1
        return self._outlook(before, change.without, moves, rounds)

    def _check(self, change: Changed) -> None:
        if len(self.records) > MOST_BUNDLES:
            raise Impossible(
                f"{self.cluster} has {len(self.records)} bundles, and {MOST_BUNDLES} at most are "
                "tried; trimtab simulate has scenarios of any size"
            )
        for broker in {*change.without, *filter(None, [change.like])} - self.reports.keys():
            near = nearby(broker, self.reports)
            raise Impossible(f"{broker}: no load report of such a broker lately; {near}")
        if not self.reports.keys() - change.without:
            raise Impossible("no broker would be left")

    def _view(self, without: frozenset[str]) -> View:
        """What a round sees after two more reports of each broker."""
        interval_ms = max(2, round(1000 * self.settings.round.interval))
        for part in (interval_ms // 2, interval_ms - interval_ms // 2):
            self.now_ms += part
            self._sequence += 1
            for broker, report in self.reports.items():
                arrival = Arrival(self.now_ms, 1, self._sequence, decode(encode(report)))
                found, _ = fold(self._snapshots.get(broker), broker, [arrival], IntakeSettings())
                assert found is not None
                self._snapshots[broker] = found
        sizes: dict[str, int] = {}
        for bundle in self.records:
            namespace = bundle.rpartition("/")[0]
            sizes[namespace] = sizes.get(namespace, 0) + 1
        holdings = Holdings(self.records, sizes=sizes)
        view, _ = assemble(self.cluster, [*self._snapshots.values()], holdings)
        there = np.array([name not in without for name in view.brokers.names], dtype=np.bool_)
        return replace(
            view,
            brokers=replace(view.brokers, available=there),
            trouble=replace(view.trouble, draining=without & set(view.brokers.names)),
            policies=self.policies,
            now_ms=self.now_ms,
        )

    def _carry_out(self, move: Move) -> None:
        move_load(self.reports[move.source], self.reports[move.destination], move.bundle)
        self.records[move.bundle] = msgspec.structs.replace(
            self.records[move.bundle], owner=move.destination
        )

    def _outlook(self, before: View, without: frozenset[str], moves: int, rounds: int) -> Outlook:
        after = self._view(without)
        counts = dict.fromkeys(without, 0)
        for record in self.records.values():
            if record.owner in counts:
                counts[record.owner] += 1
        loads = usage(after.brokers.resources, self.settings.weights)
        return Outlook(
            before=self._figures(before),
            after=self._figures(after),
            moves=moves,
            rounds=rounds,
            left={broker: count for broker, count in sorted(counts.items()) if count},
            usage=dict(zip(after.brokers.names, map(float, loads), strict=True)),
            problems=tuple(find_shortages(after, self.settings)),
        )

    def _figures(self, view: View) -> Figures:
        loads = usage(view.brokers.resources, self.settings.weights)[view.brokers.available]
        low, high = float(loads.min()), float(loads.max())
        return Figures(len(loads), low, float(loads.mean()), high, high - low)


def owned(
    records: Mapping[str, Record], brokers: Mapping[str, LocalBrokerData]
) -> dict[str, Record]:
    """The records of bundles that one of the brokers serves."""
    return {
        bundle: record
        for bundle, record in records.items()
        if record.state is State.OWNED and record.owner in brokers
    }
