"""What the strategies of a past round were shown, for its explanations."""

from __future__ import annotations

from trimtab.names import rows_of
from trimtab.plan import Plan, parts_of
from trimtab.reasons import ORDERED
from trimtab.round.holding import find_holding
from trimtab.round.proposals import hold, hold_moving
from trimtab.round.urgent import carry_out, smooth_averages
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState, begun
from trimtab.view import View


def show_to_strategies(
    view: View, state: RoundState, plan: Plan, settings: Settings, now_ms: int
) -> View:
    """The view that `decide` had after the urgent part of ``plan``, with what must not move marked;
    its strategy saw the available part. ``view`` and ``state`` are the inputs of `decide`."""
    view, state = smooth_averages(view, begun(state, settings, now_ms), settings)
    ordered = tuple(move for move in plan.moves if move.reason in ORDERED)
    view = carry_out(view, Plan(moves=ordered, repairs=plan.repairs))
    names, splitting = view.bundles.names, [split.bundle for split in plan.splits]
    view = hold_moving(view, rows_of(names, {*state.recent, *state.asked}))
    view = hold(view, find_holding(view, settings).fixed)
    return hold(view, rows_of(names, {*splitting, *parts_of(plan.merges)}), splitting)
