"""What a cluster's rounds remember from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final
from zlib import crc32

import numpy as np

from trimtab.load_model.history import PlannerHistory
from trimtab.model import merge_names
from trimtab.placement.least_resource_usage import LeastResourceUsageHistory
from trimtab.placement.round_robin import RoundRobinHistory
from trimtab.plan import Plan
from trimtab.settings import Settings, WeightSettings
from trimtab.shedding.avg import AvgHistory
from trimtab.shedding.threshold import ThresholdHistory
from trimtab.shedding.transfer import TransferHistory
from trimtab.splitting.triggers.instantaneous import SplitHistory
from trimtab.state.breaker_state import Breaker
from trimtab.state.broker_averages import BrokerAverages
from trimtab.state.hand_overs import HandOvers
from trimtab.state.ledger_state import Ledger
from trimtab.wire.columns import pack, unpack

_SHARED: Final = {"planned": "trimtab", "least-predicted-usage": "trimtab"}
"""Strategies that share another strategy's history."""
_STRAIGHT_BACK_MS: Final = 3_600_000
"""For how long it is remembered which broker a bundle left. Shorter: bundles bounce; longer: more
to remember, and plans with fewer bundles to choose from."""


@dataclass(frozen=True, slots=True)
class Histories:
    """The history of each strategy that keeps one; a field has its strategy's name (underscores).

    A new field needs a default: a state written before it existed must still be read.
    """

    trimtab: PlannerHistory = field(default_factory=PlannerHistory)
    threshold: ThresholdHistory = field(default_factory=ThresholdHistory)
    avg: AvgHistory = field(default_factory=AvgHistory)
    transfer: TransferHistory = field(default_factory=TransferHistory)
    least_resource_usage: LeastResourceUsageHistory = field(
        default_factory=LeastResourceUsageHistory
    )
    round_robin: RoundRobinHistory = field(default_factory=RoundRobinHistory)
    instantaneous: SplitHistory = field(default_factory=SplitHistory)

    own: dict[str, bytes] = field(default_factory=dict)
    """Packed histories of shedders that bring their own, by the shedder's name."""

    def of(self, strategy: str, kind: type | None = None) -> Any:
        """The history of a strategy; None if it keeps none. ``kind`` is the class of the history,
        for a shedder that brings its own."""
        if kind is None:
            return getattr(self, _field(strategy), None)
        packed = self.own.get(strategy)
        return kind() if packed is None else unpack(packed, kind)

    def fresh(self, strategy: str) -> Histories:
        """These histories with none of one strategy.

        The planner's stays: its figures carry their times, and other strategies share it.
        """
        others = {name: packed for name, packed in self.own.items() if name != strategy}
        empty = getattr(Histories(), strategy.replace("-", "_"), None)
        changed = {} if empty is None or strategy == "trimtab" else {_field(strategy): empty}
        return replace(self, own=others, **changed)

    def having(self, strategy: str, history: Any, kind: type | None = None) -> Histories:
        """These histories with one strategy's replaced; ``kind`` as in `of`."""
        if history is None:
            return self
        if kind is None:
            return replace(self, **{_field(strategy): history})
        return replace(self, own=self.own | {strategy: pack(history)})


def _field(strategy: str) -> str:
    return _SHARED.get(strategy, strategy.replace("-", "_"))


@dataclass(frozen=True, slots=True)
class AskedSplit:
    """How an operator wants a bundle split."""

    algorithm: str = ""
    """Empty: the setting's."""
    positions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovedMove:
    """Where an approved plan takes a bundle from, and to."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class RoundState:
    """What a cluster's rounds remember from one to the next."""

    number: int = 0
    paused: bool = False
    histories: Histories = field(default_factory=Histories)
    recent: dict[str, int] = field(default_factory=dict)
    """Bundle to the time (ms) a round moved it, while its grace period lasts."""
    left: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Bundle to the broker that a round last moved it from, and when (ms); kept for an hour."""
    relieved: dict[str, int] = field(default_factory=dict)
    """Broker to the time (ms) a round last took a bundle off it."""
    averages: BrokerAverages = field(default_factory=BrokerAverages)
    halves: dict[str, int] = field(default_factory=dict)
    """Children of splits that wait for a place, to since when (ms)."""
    asked: dict[str, AskedSplit] = field(default_factory=dict)
    """Bundles whose split operators ask for; the next round that asks strategies decides."""
    asked_moves: dict[str, str] = field(default_factory=dict)
    """Bundles that operators want moved, each to a broker, or where placement finds best if that is
    empty; the next round in which ownership is in no doubt decides."""
    approved: dict[str, ApprovedMove] = field(default_factory=dict)
    """Bundles that an approved plan moves, until a round has decided."""
    approved_merges: dict[str, str] = field(default_factory=dict)
    """Bundles that an approved plan merges, each with its neighbour above; the next round that asks
    strategies decides."""
    asked_merges: dict[str, str] = field(default_factory=dict)
    """Merges that operators ask for."""
    handed: HandOvers = field(default_factory=dict)
    """The moves that budgets count."""
    ledger: Ledger = field(default_factory=Ledger)
    breaker: Breaker = field(default_factory=Breaker)
    strategies: tuple[str, ...] = ()
    """The shedder and the placer of the last round; none before the first."""
    weights: WeightSettings | None = None
    """The last round's weights; None before the first."""
    forgiven: bool = False
    """Whether an operator let rounds go on: the next one forgets the plans that missed. Histories
    are not at hand between rounds (`trimtab.state.memory.Learnt`)."""

    def draws(self, cluster: str) -> np.random.Generator:
        """The random generator of the round with this state; a repeated round draws the same."""
        return np.random.default_rng([crc32(cluster.encode()), self.number])


def begun(state: RoundState, settings: Settings, now_ms: int) -> RoundState:
    """The state for the next round: numbered, and without finished cooldowns and waits.

    A strategy that the last round did not use starts without a history: its counts of rounds in a
    row and its averages ended when it was replaced. With other weights usage means something else:
    no earlier plan is judged by it, and the planner learns its costs again.
    """
    # Strictly before: a bundle moved exactly a grace period ago still stays, as in Pulsar.
    horizon = now_ms - settings.round.grace_period * 1000
    recent = {bundle: moved for bundle, moved in state.recent.items() if moved >= horizon}
    left = {b: last for b, last in state.left.items() if now_ms - last[1] <= _STRAIGHT_BACK_MS}
    children = {bundle: since for bundle, since in state.halves.items() if since >= horizon}
    strategies = (settings.round.shedding, settings.round.placement)
    histories = state.histories
    for name in strategies:
        if state.strategies and name not in state.strategies:
            histories = histories.fresh(name)
    if state.forgiven:
        histories = replace(histories, trimtab=replace(histories.trimtab, misses=0))
    ledger = state.ledger
    if state.weights not in (None, settings.weights):
        histories = replace(histories, trimtab=histories.trimtab.without_usage())
        ledger = replace(ledger, plans=())
    held_back = settings.breaker.enabled and state.breaker.until_ms > now_ms
    return replace(
        state,
        number=state.number + 1,
        strategies=strategies,
        histories=histories,
        recent=recent,
        left=left,
        halves=children,
        breaker=state.breaker if held_back else state.breaker.closed(),
        ledger=ledger,
        weights=settings.weights,
        forgiven=False,
    )


def start_cooldowns(plan: Plan, state: RoundState, now_ms: int) -> RoundState:
    """The state with the plan's bundles cooling down from now on."""
    changed = [*(move.bundle for move in plan.moves), *(split.bundle for split in plan.splits)]
    for merge in plan.merges:
        changed += [*merge.parts, merge_names(*merge.parts)]
    return replace(
        state,
        recent=state.recent | dict.fromkeys(changed, now_ms),
        left=state.left | {move.bundle: (move.source, now_ms) for move in plan.moves},
        relieved=state.relieved | {move.source: now_ms for move in plan.moves},
    )
