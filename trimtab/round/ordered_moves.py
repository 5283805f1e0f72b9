"""Moves that people order: that they ask for, of plans that they approve, off brokers that they
drain. Each is granted or refused by the rules of any other, in the next round, which need not be a
regular one.

An approved move goes from where the plan found its bundle to where the plan wants it, or not at
all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from trimtab.plan import Refusal, ShedWish
from trimtab.reasons import Reason, Rule
from trimtab.round.ordered_bundles import OrderedBundle
from trimtab.state.round_state import ApprovedMove, RoundState
from trimtab.view import Brokers, Bundles


class OrderedMoves(NamedTuple):
    """The wishes for ordered moves, and those refused already."""

    wishes: tuple[ShedWish, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def judge_moves(
    ordered: Mapping[str, OrderedBundle], brokers: Brokers, state: RoundState
) -> OrderedMoves:
    """The moves that operators ask for, and approved ones of other bundles."""
    rows = {name: row for row, name in enumerate(brokers.names)}
    wishes: list[ShedWish] = []
    refusals: list[Refusal] = []
    for bundle, to in sorted(state.asked_moves.items()):
        owner = ordered[bundle].owner
        answer = _judge_asked(ordered[bundle], to, rows)
        if isinstance(answer, Rule):
            refusals.append(Refusal(bundle, owner, answer, to or None))
        else:
            wishes.append(ShedWish(answer, rows[owner], Reason.ASKED, rows.get(to)))
    besides = {wish.bundle for wish in wishes}
    fit = {name for name, row in rows.items() if brokers.available[row]}
    for bundle, move in sorted(state.approved.items()):
        twice = ordered[bundle].row in besides
        answer = Rule.TWICE if twice else _judge_approved(ordered[bundle], move, fit)
        if isinstance(answer, Rule):
            refusals.append(Refusal(bundle, move.source, answer, move.destination))
        else:
            ends = rows[move.source], rows[move.destination]
            wishes.append(ShedWish(answer, ends[0], Reason.APPROVED, ends[1]))
    return OrderedMoves(tuple(wishes), tuple(refusals))


def empty_brokers(
    draining: Collection[str], brokers: Sequence[str], bundles: Bundles, besides: Collection[int]
) -> list[ShedWish]:
    """A wish for each movable bundle of a draining broker, without the rows ``besides``."""
    if not draining:
        return []
    emptied = np.array([name in draining for name in brokers], dtype=np.bool_)
    rows = np.flatnonzero(bundles.movable & emptied[bundles.owner]).tolist()
    return [
        ShedWish(row, int(bundles.owner[row]), Reason.DRAINED) for row in rows if row not in besides
    ]


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
