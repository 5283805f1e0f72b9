"""What a view has of the bundles that people ask to change, or approve a change of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from trimtab.ownership import State
from trimtab.reasons import Rule
from trimtab.view import View


class OrderedBundle(NamedTuple):
    """A bundle that people name in an order."""

    bundle: str
    row: int | Rule
    """Its row in the view, or why it is not there."""
    owner: str
    """Its broker; empty without one."""
    pinned: bool
    in_flight: bool = False
    movable: bool = False


def find_ordered(
    view: View, row_of: Mapping[str, int], bundles: Collection[str]
) -> dict[str, OrderedBundle]:
    """What the view has of each of the ``bundles``; ``row_of`` has those that are in the view."""
    return {bundle: _find(view, bundle, row_of.get(bundle)) for bundle in bundles}


def _find(view: View, bundle: str, row: int | None) -> OrderedBundle:
    pinned = view.controls.pin_of(bundle) is not None
    if row is None:
        record = view.records.get(bundle)
        owner = (record.owner if record is not None else None) or ""
        return OrderedBundle(bundle, _find_absence(view, bundle), owner, pinned)
    owner_row = int(view.bundles.owner[row])
    return OrderedBundle(
        bundle=bundle,
        row=row,
        owner=view.brokers.names[owner_row],
        pinned=pinned,
        in_flight=bool(view.intended[row] != owner_row),
        movable=bool(view.bundles.movable[row]),
    )


def _find_absence(view: View, bundle: str) -> Rule:
    """Why a bundle is not in the view."""
    record = view.records.get(bundle)
    if record is None or record.owner is None or record.state is State.DELETED:
        return Rule.UNOWNED
    if record.state is not State.OWNED:
        return Rule.IN_FLIGHT
    return Rule.UNREPORTED if record.owner in view.brokers.names else Rule.OWNER_LOST
