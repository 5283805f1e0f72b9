"""What a regular round adds: ordered splits and merges, and what strategies want.

splits and merges that people order are granted or refused; their bundles stay for the rest of the
  round, as do pinned ones and those whose changes wait
the strategies propose, and each wish is granted or refused
where all waits for a person or a window, the strategies are asked as if observing, and the plan
  holds what they want
where some namespaces wait, a plan for them alone is made after this one, and held
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trimtab.model import BeingSplit
from trimtab.plan import Move, Plan, ShedWish
from trimtab.round.disposal import Wanted, grant
from trimtab.round.holding import Holding
from trimtab.round.ordered_bundles import find_ordered
from trimtab.round.ordered_reshaping import Limits, judge_reshaping, list_reshaped
from trimtab.round.proposals import ask_strategies
from trimtab.round.urgent import carry_out
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.view import View


class Asked(NamedTuple):
    """How a round asks the strategies."""

    holding: Holding
    instead: Sequence[ShedWish] | None
    """The wishes to take while no shedder may be asked; None: ask the shedder."""
    urgent: tuple[Move, ...] = ()
    """The moves that the round has granted already: they have used up a part of the budgets."""
    held: Collection[int] = ()
    """Rows of the bundles that strategies must leave alone."""


def plan_regular(
    view: View, state: RoundState, settings: Settings, rng: np.random.Generator, asked: Asked
) -> tuple[Plan, RoundState]:
    """The regular part of the plan, and the state after it; ``view`` has the available brokers
    only, and the urgent part under way."""
    holding, observing = asked.holding, _observing(settings)
    orders = list_reshaped(state)
    found = find_ordered(view, orders) if orders else {}
    limits = Limits(BeingSplit(view.splitting), view.sizes, settings.split.max_bundles)
    ordered = judge_reshaping(found, limits, state)
    state = replace(state, asked={}, approved_merges={}, asked_merges={})
    splitting = view.splitting.union(each.bundle for each in ordered.splits)
    shown = replace(view, sizes=ordered.sizes, splitting=splitting)
    now = asked._replace(held=[*ordered.rows, *holding.fixed])
    asking = observing if holding.all_wait else settings
    wanted, after = _plan_wanted(shown, state, asking, rng, now)
    if holding.all_wait:
        wanted = Plan(refusals=wanted.refusals, held=wanted.as_held)
    elif holding.waiting.any():
        # What strategies learn from the second plan is not kept, and children have had their turn.
        under_way, before = carry_out(view, wanted), replace(state, halves={})
        later = asked._replace(urgent=(), held=holding.free)
        waiting, _ = _plan_wanted(under_way, before, observing, rng, later)
        wanted = replace(wanted, held=waiting.as_held)
    return replace(
        wanted,
        refusals=ordered.refusals + wanted.refusals,
        splits=ordered.splits + wanted.splits,
        merges=ordered.merges + wanted.merges,
    ), after


def _plan_wanted(
    view: View, state: RoundState, settings: Settings, rng: np.random.Generator, asked: Asked
) -> tuple[Plan, RoundState]:
    """What strategies want, granted or refused."""
    proposed, state = ask_strategies(view, state, settings, asked.instead, asked.held)
    plan = Plan(refusals=proposed.refusals, splits=proposed.splits, merges=proposed.merges)
    if not proposed.wishes:
        return plan, state
    # What is only shown uses up no budget.
    spending = replace(state, handed={}) if settings.round.observe_only else state
    urgent = asked.urgent
    wanted = Wanted(proposed.wishes, proposed.cooling, spent=len(urgent), moved=urgent)
    granted, histories = grant(proposed.view, wanted, spending, settings, rng)
    plan = replace(plan, moves=granted.moves, refusals=plan.refusals + granted.refusals)
    return plan, replace(state, histories=histories)


def _observing(settings: Settings) -> Settings:
    """The settings with which strategies make a plan that is not carried out."""
    return replace(settings, round=replace(settings.round, observe_only=True))
