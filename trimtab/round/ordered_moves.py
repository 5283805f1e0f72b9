"""Moves that people ask for, and those of plans that they approve: each is granted or refused by
the rules of any other, in the next round, which need not be a regular one.

An approved move goes from where the plan found its bundle to where the plan wants it, or not at
all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from trimtab.names import rows_of
from trimtab.ownership import State
from trimtab.plan import Plan, Refusal, ShedWish
from trimtab.reasons import SPENT, Reason, Rule
from trimtab.state.round_state import ApprovedMove, RoundState
from trimtab.view import View


class OrderedMoves(NamedTuple):
    """The wishes for ordered moves, and those refused already."""

    wishes: tuple[ShedWish, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def take_ordered_moves(view: View, state: RoundState) -> tuple[OrderedMoves, RoundState]:
    """The moves that operators ask for and, but for the same bundles, approved ones; and the state
    without both."""
    names = view.bundles.names
    row_of = {names[row]: row for row in rows_of(names, {*state.asked_moves, *state.approved})}
    brokers = {name: row for row, name in enumerate(view.brokers.names)}
    wishes: list[ShedWish] = []
    refusals: list[Refusal] = []
    for bundle, to in sorted(state.asked_moves.items()):
        row = row_of.get(bundle)
        if row is None or (to and to not in brokers) or view.controls.pin_of(bundle):
            rule = find_absence(view, bundle) if row is None else Rule.UNFIT_DESTINATION
            rule = Rule.PINNED if view.controls.pin_of(bundle) else rule
            refusals.append(Refusal(bundle, owner_of(view, bundle, row), rule, to or None))
            continue
        source = int(view.bundles.owner[row])
        wishes.append(ShedWish(row, source, Reason.ASKED, brokers.get(to)))
    besides = {wish.bundle for wish in wishes}
    for bundle, move in sorted(state.approved.items()):
        row = row_of.get(bundle)
        obstacle = Rule.TWICE if row in besides else _find_obstacle(view, bundle, row, move)
        if row is None or obstacle is not None:
            rule = obstacle or Rule.UNOWNED
            refusals.append(Refusal(bundle, move.source, rule, move.destination))
            continue
        source, destination = brokers[move.source], brokers[move.destination]
        wishes.append(ShedWish(row, source, Reason.APPROVED, destination))
    state = replace(state, asked_moves={}, approved={})
    return OrderedMoves(tuple(wishes), tuple(refusals)), state


def keep_unspent(plan: Plan, before: RoundState, state: RoundState) -> RoundState:
    """The state with the approved moves that only a budget has put off, to be asked for again."""
    put_off = {each.bundle for each in plan.refusals if each.rule in SPENT}
    again = {bundle: move for bundle, move in before.approved.items() if bundle in put_off}
    return replace(state, approved=state.approved | again) if again else state


def _find_obstacle(view: View, bundle: str, row: int | None, move: ApprovedMove) -> Rule | None:
    """The rule against an approved move of the bundle in view row ``row``, if there is one."""
    if row is None:
        return find_absence(view, bundle)
    brokers = view.brokers
    if view.controls.pin_of(bundle):
        return Rule.PINNED
    if brokers.names[view.bundles.owner[row]] != move.source:
        return Rule.UNOWNED
    fit = move.destination in brokers.names
    fit = fit and bool(brokers.available[brokers.names.index(move.destination)])
    return None if fit else Rule.UNFIT_DESTINATION


def find_absence(view: View, bundle: str) -> Rule:
    """Why a bundle that an operator names is not in the view."""
    record = view.records.get(bundle)
    if record is None or record.owner is None or record.state is State.DELETED:
        return Rule.UNOWNED
    if record.state is not State.OWNED:
        return Rule.IN_FLIGHT
    return Rule.UNREPORTED if record.owner in view.brokers.names else Rule.OWNER_LOST


def owner_of(view: View, bundle: str, row: int | None) -> str:
    """The owner's name, empty if there is none; ``row`` is the bundle's in the view."""
    if row is not None:
        return view.brokers.names[int(view.bundles.owner[row])]
    record = view.records.get(bundle)
    return (record.owner if record is not None else None) or ""
