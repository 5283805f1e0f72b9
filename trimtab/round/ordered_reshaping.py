"""Splits and merges that people ask for, and merges of plans that they approve: each is granted or
refused by a rule in the next round.

They come before the trigger's and the merger's, whatever `split.enabled` says, and need not wait
for a cool-down.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from trimtab.model import InvalidName, merge_names, namespace_of
from trimtab.names import rows_of
from trimtab.plan import MergeWish, Refusal, SplitWish
from trimtab.reasons import Reason, Rule
from trimtab.round.ordered_moves import find_absence, owner_of
from trimtab.settings import Settings
from trimtab.splitting.triggers.limits import Busy
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
    view: View, state: RoundState, settings: Settings
) -> tuple[OrderedReshaping, View, RoundState]:
    """What is granted and refused, the view with the namespaces' sizes after the splits, and the
    state without what is decided."""
    # What was refused stays too: it must not be merged in the very round.
    concerned = rows_of(view.bundles.names, state.asked)
    splits, denied, view = _take_splits(view, state, settings)
    merges, unmerged = _take_merges(view, state, {*view.in_flight.tolist(), *concerned})
    parts = [row for wish in merges for row in (wish.bundle, wish.neighbour)]
    ordered = OrderedReshaping(
        tuple(splits), tuple(merges), (*denied, *unmerged), frozenset({*concerned, *parts})
    )
    return ordered, view, replace(state, asked={}, approved_merges={}, asked_merges={})


def _take_splits(
    view: View, state: RoundState, settings: Settings
) -> tuple[list[SplitWish], list[Refusal], View]:
    """The splits granted, the refusals, and the view with the namespaces' sizes after them."""
    names, sizes = view.bundles.names, dict(view.sizes)
    busy = Busy(names, view.splitting)
    row_of = {names[row]: row for row in rows_of(names, state.asked)}
    wishes, refusals = [], []
    for bundle, asked in sorted(state.asked.items()):
        row, namespace = row_of.get(bundle), namespace_of(bundle)
        size = sizes.get(namespace, settings.split.max_bundles) + max(1, len(asked.positions))
        rule = _find_split_obstacle(view, busy, bundle, row)
        if rule is None and size > settings.split.max_bundles:
            rule = Rule.FULL_NAMESPACE
        if row is None or rule is not None:
            refusals.append(Refusal(bundle, owner_of(view, bundle, row), rule or Rule.UNOWNED))
            continue
        sizes[namespace] = size
        wishes.append(SplitWish(row, Reason.ASKED, None, asked.algorithm, asked.positions))
    return wishes, refusals, replace(view, sizes=sizes)


def _find_split_obstacle(view: View, busy: Busy, bundle: str, row: int | None) -> Rule | None:
    if row is None:
        return find_absence(view, bundle)
    if view.intended[row] != view.bundles.owner[row] or busy.involves(row):
        return Rule.IN_FLIGHT
    if view.controls.pin_of(bundle):
        return Rule.PINNED
    return None if view.bundles.movable[row] else Rule.NOT_MOVABLE


def _take_merges(
    view: View, state: RoundState, resting: Collection[int]
) -> tuple[list[MergeWish], list[Refusal]]:
    """The merges granted and the refusals; bundle rows ``resting`` must not be merged."""
    wanted = state.approved_merges | state.asked_merges
    names, brokers = view.bundles.names, view.brokers.names
    row_of = {names[row]: row for row in rows_of(names, {*wanted, *wanted.values()})}
    wishes, refusals = [], []
    for lower, upper in sorted(wanted.items()):
        low, high = row_of.get(lower), row_of.get(upper)
        rule = _find_merge_obstacle(view, resting, (lower, low), (upper, high))
        if low is None or high is None or rule is not None:
            owner = "" if low is None else brokers[view.bundles.owner[low]]
            refusals.append(Refusal(lower, owner, rule or Rule.UNOWNED))
        else:
            reason = Reason.ASKED if lower in state.asked_merges else Reason.APPROVED
            wishes.append(MergeWish(low, high, reason))
    return wishes, refusals


def _find_merge_obstacle(
    view: View, resting: Collection[int], *parts: tuple[str, int | None]
) -> Rule | None:
    for bundle, row in parts:
        if row is None:
            return find_absence(view, bundle)
        if view.controls.pin_of(bundle):
            return Rule.PINNED
        if row in resting or not view.bundles.movable[row]:
            return Rule.NOT_MOVABLE
    owners = {int(view.bundles.owner[row]) for _, row in parts if row is not None}
    try:
        merge_names(*(bundle for bundle, _ in parts))
    except InvalidName:
        return Rule.UNOWNED
    return None if len(owners) == 1 else Rule.UNOWNED
