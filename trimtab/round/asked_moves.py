"""Moves that operators ask for: each is granted or refused by a rule in the next round, which need
not be a regular one."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from trimtab.doubt import Doubt
from trimtab.names import rows_of
from trimtab.plan import Refusal, ShedWish
from trimtab.reasons import Reason, Rule
from trimtab.round.asked_splits import find_absence, owner_of
from trimtab.state.round_state import RoundState
from trimtab.view import View


class AskedMoves(NamedTuple):
    """The wishes for asked moves, those refused already, and the state without both."""

    wishes: tuple[ShedWish, ...]
    refusals: tuple[Refusal, ...]
    state: RoundState


def take_asked(view: View, state: RoundState) -> AskedMoves:
    """Take what operators asked to move; while ownership is in doubt it waits."""
    if not state.asked_moves or view.trouble.doubt is not Doubt.STABLE:
        return AskedMoves((), (), state)
    names = view.bundles.names
    row_of = {names[row]: row for row in rows_of(names, state.asked_moves)}
    brokers = {name: row for row, name in enumerate(view.brokers.names)}
    wishes, refusals = [], []
    for bundle, to in sorted(state.asked_moves.items()):
        row = row_of.get(bundle)
        if row is None or (to and to not in brokers) or view.controls.pin_of(bundle):
            rule = find_absence(view, bundle) if row is None else Rule.UNFIT_DESTINATION
            rule = Rule.PINNED if view.controls.pin_of(bundle) else rule
            refusals.append(Refusal(bundle, owner_of(view, bundle, row), rule, to or None))
            continue
        source = int(view.bundles.owner[row])
        wishes.append(ShedWish(row, source, Reason.ASKED, brokers.get(to)))
    return AskedMoves(tuple(wishes), tuple(refusals), replace(state, asked_moves={}))
