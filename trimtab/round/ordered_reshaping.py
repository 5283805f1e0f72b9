"""Splits and merges that people ask for, and merges of plans that they approve: each is granted or
refused by a rule in the next round.

They come before the trigger's and the merger's, whatever `split.enabled` says, and need not wait
for a cool-down.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from trimtab.model import BeingSplit, InvalidName, merge_names, namespace_of
from trimtab.plan import MergeWish, Refusal, SplitWish
from trimtab.reasons import Reason, Rule
from trimtab.round.ordered_bundles import OrderedBundle, find_ordered
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.view import View


class OrderedReshaping(NamedTuple):
    """The splits and merges that were granted, and the refusals of the others."""

    splits: tuple[SplitWish, ...] = ()
    merges: tuple[MergeWish, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    rows: frozenset[int] = frozenset()
    """Rows of the bundles that the round leaves alone otherwise."""


def take_ordered_reshaping(
    view: View, row_of: Mapping[str, int], state: RoundState, settings: Settings
) -> tuple[OrderedReshaping, View, RoundState]:
    """What is granted and refused, the view with the namespaces' sizes after the splits, and the
    state without what is decided. ``row_of``: the view's row of each such bundle."""
    wanted = state.approved_merges | state.asked_merges
    ordered = find_ordered(view, row_of, {*state.asked, *wanted, *wanted.values()})
    splits, denied, sizes = _take_splits(view, ordered, state, settings)
    merges, unmerged = _take_merges(ordered, wanted, state)
    # What was refused stays too: it must not be merged in the very round.
    concerned = [row_of[bundle] for bundle in state.asked if bundle in row_of]
    parts = [row for wish in merges for row in (wish.bundle, wish.neighbour)]
    taken = OrderedReshaping(
        tuple(splits), tuple(merges), (*denied, *unmerged), frozenset({*concerned, *parts})
    )
    state = replace(state, asked={}, approved_merges={}, asked_merges={})
    return taken, replace(view, sizes=sizes), state


def _take_splits(
    view: View, ordered: Mapping[str, OrderedBundle], state: RoundState, settings: Settings
) -> tuple[list[SplitWish], list[Refusal], dict[str, int]]:
    """The splits granted, the refusals, and the namespaces' sizes after them."""
    sizes, most = dict(view.sizes), settings.split.max_bundles
    busy = BeingSplit(view.splitting)
    wishes, refusals = [], []
    for bundle, asked in sorted(state.asked.items()):
        namespace = namespace_of(bundle)
        size = sizes.get(namespace, most) + max(1, len(asked.positions))
        answer = _judge_split(ordered[bundle], busy)
        if isinstance(answer, int) and size > most:
            answer = Rule.FULL_NAMESPACE
        if isinstance(answer, Rule):
            refusals.append(Refusal(bundle, ordered[bundle].owner, answer))
            continue
        sizes[namespace] = size
        wishes.append(SplitWish(answer, Reason.ASKED, None, asked.algorithm, asked.positions))
    return wishes, refusals, sizes


def _judge_split(bundle: OrderedBundle, busy: BeingSplit) -> int | Rule:
    """The bundle's row, or the rule against its split."""
    if isinstance(bundle.row, Rule):
        return bundle.row
    if bundle.in_flight or busy.involves(bundle.bundle):
        return Rule.IN_FLIGHT
    if bundle.pinned:
        return Rule.PINNED
    return bundle.row if bundle.movable else Rule.NOT_MOVABLE


def _take_merges(
    ordered: Mapping[str, OrderedBundle], wanted: Mapping[str, str], state: RoundState
) -> tuple[list[MergeWish], list[Refusal]]:
    """The merges granted and the refusals; ``wanted``: each lower part, and its upper one."""
    wishes, refusals = [], []
    for lower, upper in sorted(wanted.items()):
        answer = _judge_merge(ordered[lower], ordered[upper], state.asked)
        if isinstance(answer, Rule):
            # The owner of a bundle that is not in the view is not certain.
            owner = "" if isinstance(ordered[lower].row, Rule) else ordered[lower].owner
            refusals.append(Refusal(lower, owner, answer))
        else:
            reason = Reason.ASKED if lower in state.asked_merges else Reason.APPROVED
            wishes.append(MergeWish(*answer, reason))
    return wishes, refusals


def _judge_merge(
    lower: OrderedBundle, upper: OrderedBundle, splitting: Collection[str]
) -> tuple[int, int] | Rule:
    """The rows of both parts, or the rule against their merge; ``splitting`` has the bundles that
    people want split."""
    if isinstance(low := _judge_part(lower, splitting), Rule):
        return low
    if isinstance(high := _judge_part(upper, splitting), Rule):
        return high
    try:
        merge_names(lower.bundle, upper.bundle)
    except InvalidName:
        return Rule.UNOWNED
    return (low, high) if lower.owner == upper.owner else Rule.UNOWNED


def _judge_part(part: OrderedBundle, splitting: Collection[str]) -> int | Rule:
    if isinstance(part.row, Rule):
        return part.row
    if part.pinned:
        return Rule.PINNED
    free = part.movable and not part.in_flight and part.bundle not in splitting
    return part.row if free else Rule.NOT_MOVABLE
