"""Names the rule of a round that asked its strategy and changed nothing; reads its hits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trimtab.plan import Plan
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.shedding import STRATEGIES
from trimtab.state.round_state import RoundState

_NOISE: Final = 2.0
"""Multiple of ``planner.target`` up to which the range counts as balanced: reported usage has noise
that the planner's prediction has not. Lower: a fleet that came to rest is not called balanced;
higher: one that is not, is."""


def find_idle_rule(plan: Plan, state: RoundState, settings: Settings, now_ms: int) -> Rule:
    """A rule of `IDLE` for a plan with a summary; ``state``: after the strategy was asked."""
    name = settings.round.shedding
    strategy = STRATEGIES[name]
    history = state.histories.of(name, strategy.history)
    if strategy.learning(history):
        return Rule.LEARNING
    if plan.summary["usage_range"] <= _NOISE * settings.planner.target:
        return Rule.BALANCED
    return Rule.CHANGING if strategy.waiting(history, now_ms) else Rule.NO_PROPOSAL


def read_hits(state: RoundState, settings: Settings) -> Mapping[str, tuple[int, int]]:
    """The active strategy's hit counters after the round: the count, and that at which it acts."""
    name = settings.round.shedding
    strategy = STRATEGIES[name]
    return strategy.hits(state.histories.of(name, strategy.history), settings)
