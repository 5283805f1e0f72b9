"""Merges a bundle with its neighbour above: the store makes one of two, the broker follows.

ask the store for the merged bundle: from then on both parts no longer exist
  refused, as one of them has changed: report of each remaining one that it stays as it is
tell the broker, and serve the merged bundle
"""

from __future__ import annotations

import msgspec

from agent.commands.obeying import Obeyed, Obeyer
from trimtab.model import NO_EPOCH, merge_names
from trimtab.ownership import Event, State
from trimtab.wire.command import Command
from trimtab.wire.ownership import Neighbour, TransitionOutcome


def merge(obeyer: Obeyer, command: Command) -> Obeyed:
    """Obey a command to merge a bundle with ``command.neighbour``."""
    lower, upper = command.bundle, command.neighbour
    if upper is None:
        return obeyer.report(command, Event.DECLINE)
    upper_record, whole = obeyer.store.record(obeyer.cluster, upper), merge_names(lower, upper)
    if upper_record is not None:
        # From here on no older record gives it back to this broker.
        obeyer.seen.note(upper, upper_record)
    neighbour = Neighbour(upper, NO_EPOCH if upper_record is None else upper_record.epoch)
    outcome = obeyer.retire(command, (whole,), neighbour)
    if not outcome.accepted:
        return _decline(obeyer, command, outcome)
    obeyer.holdings.drop(lower)
    obeyer.holdings.drop(upper)
    if {lower, upper} <= set(obeyer.broker.bundles()):
        obeyer.broker.merge((lower, upper), whole)
    return obeyer.follow(outcome)


def _decline(obeyer: Obeyer, command: Command, refused: TransitionOutcome) -> Obeyed:
    """Keep both parts, each by its own report: either may have changed alone."""
    obeyer.follow(refused)
    known = {refused.bundle: refused.record, **refused.others}
    merging = {
        bundle: record
        for bundle, record in known.items()
        if record is not None and record.state is State.MERGING and obeyer.serves_by(record)
    }
    # The upper one may be in another merge by now, which is not this command's.
    begun_by = next((record.by for record in merging.values()), "")
    for bundle, record in merging.items():
        if record.by == begun_by:
            declined = msgspec.structs.replace(command, bundle=bundle, epoch=record.epoch)
            obeyer.report(declined, Event.DECLINE)
    return Obeyed.DECLINED
