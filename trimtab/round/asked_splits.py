"""Splits that operators ask for: each is granted or refused by a rule in the next round.

They come before the trigger's, whatever `split.enabled` says, and need not wait for a cool-down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trimtab.model import namespace_of
from trimtab.names import rows_of
from trimtab.ownership import State
from trimtab.plan import Refusal, SplitWish
from trimtab.reasons import Reason, Rule
from trimtab.settings import Settings
from trimtab.splitting.triggers.limits import Busy
from trimtab.state.round_state import RoundState
from trimtab.view import View


def decide_asked(
    view: View, state: RoundState, settings: Settings
) -> tuple[Sequence[SplitWish], tuple[Refusal, ...], View, RoundState]:
    """The splits granted, the refusals, the view with the namespaces' sizes after them, and the
    state without what is decided."""
    if not state.asked:
        return (), (), view, state
    names, sizes = view.bundles.names, dict(view.sizes)
    busy = Busy(names, view.splitting)
    row_of = {names[row]: row for row in rows_of(names, state.asked)}
    wishes, refusals = [], []
    for bundle, asked in sorted(state.asked.items()):
        row, namespace = row_of.get(bundle), namespace_of(bundle)
        size = sizes.get(namespace, settings.split.max_bundles) + max(1, len(asked.positions))
        rule = _find_obstacle(view, busy, bundle, row)
        if rule is None and size > settings.split.max_bundles:
            rule = Rule.FULL_NAMESPACE
        if row is None or rule is not None:
            refusals.append(Refusal(bundle, owner_of(view, bundle, row), rule or Rule.UNOWNED))
            continue
        sizes[namespace] = size
        wishes.append(SplitWish(row, Reason.ASKED, None, asked.algorithm, asked.positions))
    return wishes, tuple(refusals), replace(view, sizes=sizes), replace(state, asked={})


def _find_obstacle(view: View, busy: Busy, bundle: str, row: int | None) -> Rule | None:
    if row is None:
        return find_absence(view, bundle)
    if view.intended[row] != view.bundles.owner[row] or busy.involves(row):
        return Rule.IN_FLIGHT
    if view.controls.pin_of(bundle):
        return Rule.PINNED
    return None if view.bundles.movable[row] else Rule.NOT_MOVABLE


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
