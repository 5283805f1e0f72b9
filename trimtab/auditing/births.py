"""Judges new bundles: a split makes them of one, a merge of two neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trimtab.auditing.rules import ENDING, RuleBreach, ViolationKind, server, stands
from trimtab.model import parse_bundle
from trimtab.wire.ownership import Change


def flaw_of_birth(
    child: Change, moment: Iterable[Change], before: Callable[[Change], Change | None]
) -> RuleBreach | None:
    """What is wrong with a new bundle: its parents must end with it and have had its owner.

    ``moment``: the namespace's changes of the same time. ``before``: the change that a bundle's
    history has before this one.
    """
    made_of = _made_of(child, moment)
    ending = ENDING.get(len(made_of))
    if ending is None:
        detail = f"it is made of {len(made_of)} bundles; one is divided, or two are merged"
        return RuleBreach(ViolationKind.STEP, detail)
    for gone in made_of:
        if gone.record.epoch > child.record.epoch:
            return RuleBreach(ViolationKind.BACKWARD, f"its epoch is below that of {gone.bundle}")
        last = before(gone)
        if last is not None and server(last.record) != child.record.owner:
            detail = f"{server(last.record)} served {gone.bundle}, which it is made of"
            return RuleBreach(ViolationKind.TWO_OWNERS, detail)
        if last is not None and last.record.state is not ending:
            return RuleBreach(
                ViolationKind.STEP, f"{gone.bundle}, which it is made of, was not {ending}"
            )
    return None


def _made_of(child: Change, moment: Iterable[Change]) -> list[Change]:
    """The bundle that was split, or the neighbours that were merged; empty if neither."""
    low, high = span = parse_bundle(child.bundle)[1]
    gone = {
        parse_bundle(change.bundle)[1]: change for change in moment if not stands(change.record)
    }
    gone.pop(span, None)
    whole = [change for (start, end), change in gone.items() if start <= low and high <= end]
    if whole:
        return whole[:1]
    parts = sorted(part for part in gone if low <= part.low and part.high <= high)
    tile = [low, *(part.high for part in parts)] == [*(part.low for part in parts), high]
    return [gone[part] for part in parts] if tile else []
