"""What approved plans change, and merges that operators ask for: each is granted or refused by the
rules of any other.

A move goes from where the plan found its bundle to where the plan wants it, or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from trimtab.doubt import Doubt
from trimtab.model import InvalidName, merge_names
from trimtab.names import rows_of
from trimtab.plan import MergeWish, Plan, Refusal, ShedWish
from trimtab.reasons import SPENT, Reason, Rule
from trimtab.round.asked_moves import AskedMoves
from trimtab.round.asked_splits import find_absence
from trimtab.state.round_state import ApprovedMove, RoundState
from trimtab.view import View


def take_approved(view: View, state: RoundState, besides: Collection[int]) -> AskedMoves:
    """The wishes for approved moves, but for bundle rows ``besides``; while ownership is in doubt
    they wait."""
    if not state.approved or view.trouble.doubt is not Doubt.STABLE:
        return AskedMoves((), (), state)
    names = view.bundles.names
    row_of = {names[row]: row for row in rows_of(names, state.approved)}
    brokers = {name: row for row, name in enumerate(view.brokers.names)}
    wishes, refusals = [], []
    for bundle, move in sorted(state.approved.items()):
        row = row_of.get(bundle)
        rule = find_absence(view, bundle) if row is None else _find_obstacle(view, row, move)
        rule = Rule.TWICE if row in besides else rule
        if row is None or rule is not None:
            refusals.append(Refusal(bundle, move.source, rule or Rule.UNOWNED, move.destination))
            continue
        source, destination = brokers[move.source], brokers[move.destination]
        wishes.append(ShedWish(row, source, Reason.APPROVED, destination))
    return AskedMoves(tuple(wishes), tuple(refusals), replace(state, approved={}))


def keep_unspent(plan: Plan, before: RoundState, state: RoundState) -> RoundState:
    """The state with the approved moves that only a budget has put off, to be asked for again."""
    put_off = {each.bundle for each in plan.refusals if each.rule in SPENT}
    again = {bundle: move for bundle, move in before.approved.items() if bundle in put_off}
    return replace(state, approved=state.approved | again) if again else state


def take_merges(
    view: View, state: RoundState
) -> tuple[Sequence[MergeWish], tuple[Refusal, ...], RoundState]:
    """The approved and asked merges that can be made, the refusals of the others, and the state
    without."""
    wanted = state.approved_merges | state.asked_merges
    if not wanted:
        return (), (), state
    names, brokers = view.bundles.names, view.brokers.names
    row_of = {names[row]: row for row in rows_of(names, {*wanted, *wanted.values()})}
    wishes, refusals = [], []
    for lower, upper in sorted(wanted.items()):
        low, high = row_of.get(lower), row_of.get(upper)
        rule = _find_merge_obstacle(view, (lower, low), (upper, high))
        if low is None or high is None or rule is not None:
            owner = "" if low is None else brokers[view.bundles.owner[low]]
            refusals.append(Refusal(lower, owner, rule or Rule.UNOWNED))
        else:
            reason = Reason.ASKED if lower in state.asked_merges else Reason.APPROVED
            wishes.append(MergeWish(low, high, reason))
    return wishes, tuple(refusals), replace(state, approved_merges={}, asked_merges={})


def _find_obstacle(view: View, row: int, move: ApprovedMove) -> Rule | None:
    brokers = view.brokers
    if view.controls.pin_of(view.bundles.names[row]):
        return Rule.PINNED
    if brokers.names[view.bundles.owner[row]] != move.source:
        return Rule.UNOWNED
    fit = move.destination in brokers.names
    fit = fit and bool(brokers.available[brokers.names.index(move.destination)])
    return None if fit else Rule.UNFIT_DESTINATION


def _find_merge_obstacle(view: View, *parts: tuple[str, int | None]) -> Rule | None:
    for bundle, row in parts:
        if row is None:
            return find_absence(view, bundle)
        if view.controls.pin_of(bundle):
            return Rule.PINNED
        if not view.bundles.movable[row]:
            return Rule.NOT_MOVABLE
    owners = {int(view.bundles.owner[row]) for _, row in parts if row is not None}
    try:
        merge_names(*(bundle for bundle, _ in parts))
    except InvalidName:
        return Rule.UNOWNED
    return None if len(owners) == 1 else Rule.UNOWNED
