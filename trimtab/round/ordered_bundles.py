"""What a view has of the bundles that people ask to change, or approve a change of."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from trimtab.model import Epoch
from trimtab.names import rows_by_name
from trimtab.ownership import State
from trimtab.reasons import Rule
from trimtab.view import View
from trimtab.wire.ownership import Record


class OrderedBundle(NamedTuple):
    """A bundle that people name in an order."""

    row: int | Rule
    """Its row in the view, or why it is not there."""
    owner: str
    """Its broker; empty without one."""
    pinned: bool
    epoch: Epoch
    in_flight: bool = False
    movable: bool = False


def find_ordered(view: View, bundles: Collection[str]) -> dict[str, OrderedBundle]:
    """What the view has of each of the ``bundles``."""
    row_of = rows_by_name(view.bundles.names, bundles)
    return {bundle: _find(view, bundle, row_of.get(bundle)) for bundle in bundles}


def _find(view: View, bundle: str, row: int | None) -> OrderedBundle:
    pinned = view.controls.pin_of(bundle) is not None
    if row is None:
        record = view.records.get(bundle)
        owner = (record.owner if record is not None else None) or ""
        absence = _find_absence(record, view.brokers.names)
        return OrderedBundle(absence, owner, pinned, view.epoch(bundle))
    owner_row = int(view.bundles.owner[row])
    return OrderedBundle(
        row=row,
        owner=view.brokers.names[owner_row],
        pinned=pinned,
        epoch=view.epoch(bundle),
        in_flight=bool(view.intended[row] != owner_row),
        movable=bool(view.bundles.movable[row]),
    )


def _find_absence(record: Record | None, brokers: Collection[str]) -> Rule:
    """Why a bundle with this record is not in a view of these brokers."""
    if record is None or record.owner is None or record.state is State.DELETED:
        return Rule.UNOWNED
    if record.state is not State.OWNED:
        return Rule.IN_FLIGHT
    return Rule.UNREPORTED if record.owner in brokers else Rule.OWNER_LOST
