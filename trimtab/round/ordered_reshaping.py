"""Splits and merges that people ask for, and merges of plans that they approve: each is granted or
refused by a rule in the next round.

They come before the trigger's and the merger's, whatever `split.enabled` says, and need not wait
for a cool-down.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from trimtab.model import BeingSplit, InvalidName, merge_names, namespace_of
from trimtab.plan import Merge, Refusal, Split
from trimtab.reasons import Reason, Rule
from trimtab.round.ordered_bundles import OrderedBundle
from trimtab.state.round_state import RoundState


class Limits(NamedTuple):
    """What limits splits, besides the bundles themselves."""

    busy: BeingSplit
    sizes: Mapping[str, int]
    """How many bundles each namespace has."""
    most: int
    """How many it may have."""


class OrderedReshaping(NamedTuple):
    """The splits and merges that were granted, and the refusals of the others."""

    splits: tuple[Split, ...]
    merges: tuple[Merge, ...]
    refusals: tuple[Refusal, ...]
    sizes: Mapping[str, int]
    """How many bundles each namespace has after the splits."""
    rows: frozenset[int]
    """Rows of the bundles that the round leaves alone otherwise."""


def list_reshaped(state: RoundState) -> set[str]:
    """The bundles that people want split or merged."""
    wanted = state.approved_merges | state.asked_merges
    return {*state.asked, *wanted, *wanted.values()}


def judge_reshaping(
    ordered: Mapping[str, OrderedBundle], limits: Limits, state: RoundState
) -> OrderedReshaping:
    """What is granted and refused of what the ``state`` has; ``ordered``: each of its bundles."""
    splits, denied, sizes = _judge_splits(ordered, limits, state)
    merges, unmerged = _judge_merges(ordered, state)
    # What was refused stays too: it must not be merged in the very round.
    concerned = {*state.asked, *(part for merge in merges for part in merge.parts)}
    rows = (ordered[bundle].row for bundle in concerned)
    return OrderedReshaping(
        splits=tuple(splits),
        merges=tuple(merges),
        refusals=(*denied, *unmerged),
        sizes=sizes,
        rows=frozenset(row for row in rows if isinstance(row, int)),
    )


def _judge_splits(
    ordered: Mapping[str, OrderedBundle], limits: Limits, state: RoundState
) -> tuple[list[Split], list[Refusal], dict[str, int]]:
    """The splits granted, the refusals, and the namespaces' sizes after them."""
    sizes, most = dict(limits.sizes), limits.most
    splits, refusals = [], []
    for bundle, asked in sorted(state.asked.items()):
        namespace, found = namespace_of(bundle), ordered[bundle]
        size = sizes.get(namespace, most) + max(1, len(asked.positions))
        rule = _find_split_rule(bundle, found, limits.busy)
        if rule is None and size > most:
            rule = Rule.FULL_NAMESPACE
        if rule is not None:
            refusals.append(Refusal(bundle, found.owner, rule))
            continue
        sizes[namespace] = size
        how = asked.algorithm, asked.positions
        splits.append(Split(bundle, found.owner, Reason.ASKED, found.epoch, *how))
    return splits, refusals, sizes


def _find_split_rule(bundle: str, found: OrderedBundle, busy: BeingSplit) -> Rule | None:
    """The rule against a split, if there is one."""
    if isinstance(found.row, Rule):
        return found.row
    if found.in_flight or busy.involves(bundle):
        return Rule.IN_FLIGHT
    if found.pinned:
        return Rule.PINNED
    return None if found.movable else Rule.NOT_MOVABLE


def _judge_merges(
    ordered: Mapping[str, OrderedBundle], state: RoundState
) -> tuple[list[Merge], list[Refusal]]:
    """The merges granted and the refusals."""
    merges, refusals = [], []
    for lower, upper in sorted((state.approved_merges | state.asked_merges).items()):
        parts = ordered[lower], ordered[upper]
        rule = _find_merge_rule(lower, upper, ordered, state.asked)
        if rule is not None:
            # The owner of a bundle that is not in the view is not certain.
            owner = "" if isinstance(parts[0].row, Rule) else parts[0].owner
            refusals.append(Refusal(lower, owner, rule))
        else:
            reason = Reason.ASKED if lower in state.asked_merges else Reason.APPROVED
            epochs = parts[0].epoch, parts[1].epoch
            merges.append(Merge(lower, upper, parts[0].owner, reason, *epochs))
    return merges, refusals


def _find_merge_rule(
    lower: str, upper: str, ordered: Mapping[str, OrderedBundle], splitting: Collection[str]
) -> Rule | None:
    """The rule against a merge, if there is one; ``splitting`` has the bundles that people want
    split."""
    for part in (lower, upper):
        rule = _find_part_rule(ordered[part], part in splitting)
        if rule is not None:
            return rule
    try:
        merge_names(lower, upper)
    except InvalidName:
        return Rule.UNOWNED
    return None if ordered[lower].owner == ordered[upper].owner else Rule.UNOWNED


def _find_part_rule(part: OrderedBundle, splitting: bool) -> Rule | None:
    if isinstance(part.row, Rule):
        return part.row
    if part.pinned:
        return Rule.PINNED
    free = part.movable and not part.in_flight and not splitting
    return None if free else Rule.NOT_MOVABLE
