"""Agreeing with the store on who owns what, before a broker serves and after its lease lapsed.

for each bundle that is held here, or whose record names this broker as owner:
  claim it from where its record stands
  accepted: load it and serve
  refused since another has it: unload it
A claim of what is this broker's already gives it a new epoch. So nothing that was asked before, and
may yet arrive, can take from it what it serves from now on.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from agent.broker import CannotLoad
from agent.obeying import Obeyer
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event, State
from trimtab.wire.ownership import Record, Transition

_KEPT_MS: Final = 3_600_000


def seed(obeyer: Obeyer) -> None:
    """Bring broker and records together; raises StoreUnavailable or Closed, and may be repeated."""
    records = obeyer.store.records(obeyer.cluster)
    mine = {bundle for bundle, record in records.items() if record.owner == obeyer.broker_id}
    for bundle in sorted(mine.union(obeyer.broker.bundles())):
        obeyer.settle(bundle, _agreed(obeyer, bundle, records.get(bundle)))
    _forget(obeyer, records, mine)


def _forget(obeyer: Obeyer, records: Mapping[str, Record], mine: Set[str]) -> None:
    """What others have had for long: by now the journal topic has it, and this broker need not."""
    newest = max((record.since for record in records.values()), default=0)
    obeyer.seen.forget(
        bundle
        for bundle, seen in obeyer.seen.all().items()
        if bundle not in mine
        and bundle in records
        and records[bundle].epoch >= seen.epoch
        and newest - records[bundle].since > _KEPT_MS
    )


def _agreed(obeyer: Obeyer, bundle: str, known: Record | None) -> Record | None:
    """The record as it stands after this broker asked for the bundle."""
    event = Event.CLAIM
    if known is not None and known.owner == obeyer.broker_id and known.state is State.ASSIGNING:
        # Its command waits in the stream, or is lost with the store's last writes.
        try:
            obeyer.load(bundle)
        except CannotLoad:
            event = Event.DECLINE
    expect = known.epoch if known else NO_EPOCH
    asked = Transition(
        id=f"{obeyer.broker_id}/{bundle}/{expect.generation}.{expect.counter}/{event.value}",
        bundle=bundle,
        event=event,
        expect=expect,
        broker=obeyer.broker_id,
        actor=obeyer.broker_id,
    )
    return obeyer.store.apply(obeyer.cluster, asked).record
