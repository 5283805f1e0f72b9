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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from trimtab.filters import CAPS, FILTERS, narrowed, reachable
from trimtab.load import usage
from trimtab.model import Epoch
from trimtab.placement import PLACERS
from trimtab.placement.least_resource_usage import LeastResourceUsageHistory
from trimtab.placement.request import Projection, Request
from trimtab.plan import Move, Plan, Refusal, Shed
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.shedding import SHEDDERS
from trimtab.shedding.avg import AvgHistory
from trimtab.shedding.threshold import ThresholdHistory
from trimtab.view import Bools, Ints, View, available_part, is_monitoring

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
    disposal = _Disposal(seen, state.recent, histories, settings, rng)
    plan = replace(disposal.plan(wishes), summary=_summary(seen, settings))
    state = replace(state, histories=disposal.histories)
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


class _Disposal:
    """Grants or refuses the wishes of one round, each in sight of those granted before."""

    def __init__(
        self,
        view: View,
        recent: dict[str, int],
        histories: Histories,
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        self.histories = histories
        self._view, self._recent, self._settings, self._rng = view, recent, settings, rng
        self._planned: set[int] = set()
        self._loads = usage(view.brokers.resources, settings.weights)

    def plan(self, wishes: Sequence[Shed]) -> Plan:
        """Every wish as a move or a refusal."""
        if not wishes:
            return Plan(skipped=Rule.BALANCED)
        self._projection = Projection(self._view)
        self._staying = _staying(self._view)
        moves, refusals = [], []
        for wish in wishes:
            rule = self._objection(wish)
            destination = None if rule else self._destination(wish)
            if destination is None:
                refusals.append(self._refused(wish, rule or Rule.NO_CANDIDATE))
            else:
                moves.append(self._moved(wish, destination))
        return Plan(moves=tuple(moves), refusals=tuple(refusals))

    def _objection(self, wish: Shed) -> Rule | None:
        bundles, budget = self._view.bundles, self._settings.round.max_moves
        if wish.bundle in self._planned:
            return Rule.TWICE
        if not bundles.movable[wish.bundle]:
            return self._immovable(wish.bundle)
        if bundles.owner[wish.bundle] != wish.source:
            return Rule.UNOWNED
        if wish.destination == wish.source:
            return Rule.SAME_BROKER
        if self._staying[wish.source] <= 1:
            return Rule.LAST_BUNDLE
        if budget and len(self._planned) >= budget:
            return Rule.BUDGET
        return None

    def _immovable(self, bundle: int) -> Rule:
        if self._view.intended[bundle] != self._view.bundles.owner[bundle]:
            return Rule.IN_FLIGHT
        recent = self._view.bundles.names[bundle] in self._recent
        return Rule.COOLING_DOWN if recent else Rule.NOT_MOVABLE

    def _destination(self, wish: Shed) -> int | None:
        """A broker row for the wish, in Pulsar's order of asking; None if there is none at all."""
        request = Request(
            view=self._view,
            projection=self._projection,
            bundle=self._view.bundles.names[wish.bundle],
            namespace=int(self._view.bundles.namespace[wish.bundle]),
            source=wish.source,
        )
        allowed = reachable(request)
        if not allowed.any():
            return None
        # Evenness counts bundles, which would undo what the pair was chosen for: it has no say
        # where the shedder placed.
        capped = narrowed(request, allowed, CAPS, self._settings)
        if wish.destination is not None and capped[wish.destination]:
            return wish.destination
        chosen = self._draw(request, narrowed(request, allowed, FILTERS, self._settings))
        if self._loads[chosen] > self._settings.round.overloaded_threshold:
            chosen = self._draw(request, allowed)
        return chosen

    def _draw(self, request: Request, candidates: Bools) -> int:
        name = self._settings.round.placement
        rows: Ints = np.flatnonzero(candidates)
        best, history = PLACERS[name](request, rows, self.histories.of(name), self._settings)
        self.histories = self.histories.having(name, history)
        return int(best[self._rng.integers(len(best))])

    def _moved(self, wish: Shed, destination: int) -> Move:
        names = self._view.brokers.names
        self._planned.add(wish.bundle)
        self._staying[wish.source] -= 1
        self._staying[destination] += 1
        self._projection.add(wish.bundle, wish.source, destination)
        generation, counter = self._view.bundles.epoch[:, wish.bundle].tolist()
        return Move(
            bundle=self._view.bundles.names[wish.bundle],
            source=names[wish.source],
            destination=names[destination],
            reason=wish.reason,
            epoch=Epoch(generation, counter),
        )

    def _refused(self, wish: Shed, rule: Rule) -> Refusal:
        names = self._view.brokers.names
        return Refusal(
            bundle=self._view.bundles.names[wish.bundle],
            source=names[wish.source],
            rule=rule,
            destination=None if wish.destination is None else names[wish.destination],
        )


def _staying(view: View) -> Ints:
    """(n,) bundles each broker will have that count as its own: heartbeat and SLA ones do not.

    Pulsar counts those, so its "sole bundle" protection never holds on a broker that has any.
    """
    names, brokers = view.bundles.names, len(view.brokers.names)
    bound = np.flatnonzero(~view.bundles.movable).tolist()
    bound = [row for row in bound if is_monitoring(names[row])]
    counts = np.bincount(view.intended, minlength=brokers)
    return counts - np.bincount(view.intended[bound], minlength=brokers)
