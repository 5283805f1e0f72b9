"""What the strategies of a past round were shown, for its explanations."""

from __future__ import annotations

from dataclasses import replace

from trimtab.names import rows_of
from trimtab.plan import Plan, parts_of
from trimtab.reasons import ORDERED
from trimtab.round.holding import find_holding
from trimtab.round.proposals import hold
from trimtab.round.urgent import carry_out, smooth_averages
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState, begun
from trimtab.view import View


def show_to_strategies(
    view: View, state: RoundState, plan: Plan, settings: Settings, now_ms: int
) -> View:
    """The view that `decide` had after the urgent part of ``plan``, with what must not move marked;
    its strategy saw the available part. ``view`` and ``state`` are the inputs of `decide`."""
    state = begun(state, settings, now_ms)
    brokers, state = smooth_averages(view.brokers, state, settings.weights)
    view = replace(view, brokers=brokers)
    ordered = tuple(move for move in plan.moves if move.reason in ORDERED)
    view = carry_out(view, Plan(moves=ordered, repairs=plan.repairs))
    splitting = [split.bundle for split in plan.splits]
    named = {*state.recent, *state.asked, *splitting, *parts_of(plan.merges)}
    fixed = find_holding(view.bundles, view.controls, settings, view.now_ms).fixed
    rows = rows_of(view.bundles.names, named)
    return hold(view, [*view.in_flight.tolist(), *fixed, *rows], splitting)
