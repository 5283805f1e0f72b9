"""Grants what strategies propose, or holds it back for a person or a window."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from trimtab.plan import Held, Move, Plan, ShedWish
from trimtab.reasons import ORDERED
from trimtab.round.disposal import Wanted, grant
from trimtab.round.proposals import Proposals, ask_strategies
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.view import View


def dispose(
    proposed: Proposals,
    state: RoundState,
    settings: Settings,
    rng: np.random.Generator,
    urgent: tuple[Move, ...],
) -> tuple[Plan, RoundState]:
    """The moves granted and refused; the ``urgent`` ones have used up a part of the budgets."""
    if not proposed.wishes:
        return Plan(), state
    # What is only shown uses up no budget.
    spending = replace(state, handed={}) if settings.round.observe_only else state
    wanted = Wanted(proposed.wishes, proposed.cooling, spent=len(urgent), moved=urgent)
    plan, histories = grant(proposed.view, wanted, spending, settings, rng)
    return plan, replace(state, histories=histories)


def observing(settings: Settings) -> Settings:
    """The settings with which strategies make a plan that is not carried out."""
    return replace(settings, round=replace(settings.round, observe_only=True))


def hold_back(plan: Plan, moves: tuple[Move, ...]) -> Plan:
    """The plan with only what people asked for; what strategies want, such as the last ``moves``,
    is held."""
    return replace(
        plan,
        moves=plan.moves[: len(plan.moves) - len(moves)],
        splits=tuple(each for each in plan.splits if each.reason in ORDERED),
        merges=tuple(each for each in plan.merges if each.reason in ORDERED),
        held=Held(
            moves,
            tuple(each for each in plan.splits if each.reason not in ORDERED),
            tuple(each for each in plan.merges if each.reason not in ORDERED),
        ),
    )


def propose(  # noqa: PLR0913 - what `ask_strategies` takes, and the draws
    view: View,
    state: RoundState,
    instead: Sequence[ShedWish] | None,
    fixed: Collection[int],
    settings: Settings,
    rng: np.random.Generator,
) -> Held:
    """What strategies want for the bundle rows that are not ``fixed``, on a ``view`` in which the
    round's own moves are under way. What they learn from it is not kept."""
    state = replace(state, asked={}, halves={}, approved_merges={}, asked_merges={})
    settings = observing(settings)
    proposed, state = ask_strategies(view, state, settings, instead, fixed)
    decided, _ = dispose(proposed, state, settings, rng, ())
    return Held(decided.moves, proposed.splits, proposed.merges)
