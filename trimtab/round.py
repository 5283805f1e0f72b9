"""One decision for one cluster: strategies propose, the round disposes.

decide(view, state, settings, now, rng):
  count the round; forget moves older than the grace period
  say why and stop if it is paused, disabled, cannot be computed, or has fewer than two brokers
  hide from the strategy what is cooling down or in flight, and brokers that are not available
  ask the shedder; for each wish, in its order:
    refuse it if it repeats a bundle, is not movable, would take a broker's last bundle, or is over
    budget; find it a broker, or refuse it; note the move, so that the next wish sees it
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from trimtab.disposal import Disposal
from trimtab.load import usage
from trimtab.placement import PLACERS
from trimtab.placement.least_resource_usage import LeastResourceUsageHistory
from trimtab.placement.request import Projection
from trimtab.placement.round_robin import RoundRobinHistory
from trimtab.plan import Plan
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.shedding import SHEDDERS
from trimtab.shedding.avg import AvgHistory
from trimtab.shedding.threshold import ThresholdHistory
from trimtab.view import View, available_part

MIN_BROKERS: Final = 2
"""With fewer there is nowhere to go."""


@dataclass(frozen=True, slots=True)
class Histories:
    """What each strategy that remembers remembers; a field is the strategy's name with underscores.

    A new field needs a default: a state written before it existed must still be read.
    """

    threshold: ThresholdHistory = field(default_factory=ThresholdHistory)
    avg: AvgHistory = field(default_factory=AvgHistory)
    least_resource_usage: LeastResourceUsageHistory = field(
        default_factory=LeastResourceUsageHistory
    )
    round_robin: RoundRobinHistory = field(default_factory=RoundRobinHistory)

    def of(self, strategy: str) -> Any:
        """A strategy's history, None if it keeps none."""
        return getattr(self, strategy.replace("-", "_"), None)

    def having(self, strategy: str, history: Any) -> Histories:
        """These histories with one strategy's replaced."""
        if history is None:
            return self
        return replace(self, **{strategy.replace("-", "_"): history})


@dataclass(frozen=True, slots=True)
class RoundState:
    """What a cluster's rounds remember from one to the next."""

    number: int = 0
    paused: bool = False
    histories: Histories = field(default_factory=Histories)
    recent: dict[str, int] = field(default_factory=dict)
    """Bundle to the time (ms) a round moved it, while its grace period lasts."""


def decide(
    view: View, state: RoundState, settings: Settings, now_ms: int, rng: np.random.Generator
) -> tuple[Plan, RoundState]:
    """The round's plan and the state after it; the caller seeds ``rng`` from (cluster, round)."""
    state = _begun(state, settings, now_ms)
    obstacle = _obstacle(view, state, settings)
    if obstacle is not None:
        return Plan(skipped=obstacle, summary=_summary(view, settings)), state
    seen = available_part(_without_recent(view, state.recent))
    name = settings.round.shedding
    wishes, history = SHEDDERS[name](seen, state.histories.of(name), settings)
    histories = state.histories.having(name, history)
    plan = Plan(skipped=Rule.BALANCED)
    if wishes:
        name, projection = settings.round.placement, Projection(seen)
        placer = PLACERS[name](seen, projection, histories.of(name), settings)
        plan = Disposal(seen, projection, placer, settings, rng).plan(wishes, state.recent)
        histories = histories.having(name, placer.remembered())
    plan = replace(plan, summary=_summary(seen, settings))
    state = replace(state, histories=histories)
    if not settings.round.observe_only:
        state = replace(state, recent=state.recent | {move.bundle: now_ms for move in plan.moves})
    return plan, state


def _begun(state: RoundState, settings: Settings, now_ms: int) -> RoundState:
    # Strictly before: a bundle moved exactly a grace period ago still stays, as in Pulsar.
    horizon = now_ms - settings.round.grace_period * 1000
    recent = {bundle: moved for bundle, moved in state.recent.items() if moved >= horizon}
    return replace(state, number=state.number + 1, recent=recent)


def _obstacle(view: View, state: RoundState, settings: Settings) -> Rule | None:
    if state.paused:
        return Rule.PAUSED
    if not settings.round.enabled:
        return Rule.DISABLED
    if not _computable(view):
        return Rule.UNCOMPUTABLE
    if np.count_nonzero(view.brokers.available) < MIN_BROKERS:
        return Rule.TOO_FEW_BROKERS
    return None


def _computable(view: View) -> bool:
    brokers, bundles = view.brokers, view.bundles
    columns = (brokers.resources, brokers.traffic, bundles.short, bundles.long)
    # A sum is finite only if every value is, and needs no column of booleans.
    return all(math.isfinite(column.sum()) for column in columns)


def _summary(view: View, settings: Settings) -> dict[str, float]:
    loads = usage(view.brokers.resources, settings.weights)[view.brokers.available]
    figures = {"brokers": float(len(loads)), "bundles": float(len(view.bundles.names))}
    if loads.size and np.isfinite(loads).all():
        low, high = float(loads.min()), float(loads.max())
        mean = float(loads.mean())
        figures |= {
            "usage_min": low,
            "usage_mean": mean,
            "usage_max": high,
            "usage_range": high - low,
        }
    return figures


def _without_recent(view: View, recent: dict[str, int]) -> View:
    """The view with bundles that are cooling down or in flight marked as not movable."""
    movable = view.bundles.movable & (view.intended == view.bundles.owner)
    if recent:
        movable[[row for row, name in enumerate(view.bundles.names) if name in recent]] = False
    return replace(view, bundles=replace(view.bundles, movable=movable))
