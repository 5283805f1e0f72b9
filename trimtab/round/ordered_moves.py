"""Moves that people ask for, and those of plans that they approve: each is granted or refused by
the rules of any other, in the next round, which need not be a regular one.

An approved move goes from where the plan found its bundle to where the plan wants it, or not at
all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from trimtab.names import rows_by_name
from trimtab.plan import Plan, Refusal, ShedWish
from trimtab.reasons import SPENT, Reason, Rule
from trimtab.round.ordered_bundles import OrderedBundle, find_ordered
from trimtab.state.round_state import ApprovedMove, RoundState
from trimtab.view import View


class OrderedMoves(NamedTuple):
    """The wishes for ordered moves, and those refused already."""

    wishes: tuple[ShedWish, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def take_ordered_moves(view: View, state: RoundState) -> tuple[OrderedMoves, RoundState]:
    """The moves that operators ask for, and approved ones of other bundles; and the state
    without both."""
    bundles = {*state.asked_moves, *state.approved}
    ordered = find_ordered(view, rows_by_name(view.bundles.names, bundles), bundles)
    brokers = {name: row for row, name in enumerate(view.brokers.names)}
    wishes: list[ShedWish] = []
    refusals: list[Refusal] = []
    for bundle, to in sorted(state.asked_moves.items()):
        owner = ordered[bundle].owner
        answer = _judge_asked(ordered[bundle], to, brokers)
        if isinstance(answer, Rule):
            refusals.append(Refusal(bundle, owner, answer, to or None))
        else:
            wishes.append(ShedWish(answer, brokers[owner], Reason.ASKED, brokers.get(to)))
    besides = {wish.bundle for wish in wishes}
    fit = {name for name, row in brokers.items() if view.brokers.available[row]}
    for bundle, move in sorted(state.approved.items()):
        twice = ordered[bundle].row in besides
        answer = Rule.TWICE if twice else _judge_approved(ordered[bundle], move, fit)
        if isinstance(answer, Rule):
            refusals.append(Refusal(bundle, move.source, answer, move.destination))
        else:
            ends = brokers[move.source], brokers[move.destination]
            wishes.append(ShedWish(answer, ends[0], Reason.APPROVED, ends[1]))
    state = replace(state, asked_moves={}, approved={})
    return OrderedMoves(tuple(wishes), tuple(refusals)), state


def keep_unspent(plan: Plan, before: RoundState, state: RoundState) -> RoundState:
    """The state with the approved moves that only a budget has put off, to be asked for again."""
    put_off = {each.bundle for each in plan.refusals if each.rule in SPENT}
    again = {bundle: move for bundle, move in before.approved.items() if bundle in put_off}
    return replace(state, approved=state.approved | again) if again else state


def _judge_asked(bundle: OrderedBundle, to: str, brokers: Collection[str]) -> int | Rule:
    """The bundle's row; or the rule against its move ``to`` a broker, or anywhere if that is
    empty."""
    if bundle.pinned:
        return Rule.PINNED
    known = not to or to in brokers
    return bundle.row if known or isinstance(bundle.row, Rule) else Rule.UNFIT_DESTINATION


def _judge_approved(bundle: OrderedBundle, move: ApprovedMove, fit: Collection[str]) -> int | Rule:
    """The bundle's row, or the rule against its move; ``fit`` are the available brokers."""
    if isinstance(bundle.row, Rule):
        return bundle.row
    if bundle.pinned:
        return Rule.PINNED
    if bundle.owner != move.source:
        return Rule.UNOWNED
    return bundle.row if move.destination in fit else Rule.UNFIT_DESTINATION
