"""Agreeing with the store on who owns what, before a broker serves and after its lease lapsed.

for each bundle that is held here, or whose record names this broker as serving:
  claim it from where its record stands
  accepted, or refused since it is this broker's already: load it and serve
  refused since another has it: unload it
"""

from __future__ import annotations

from agent.obeying import Obeyer
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event
from trimtab.wire.ownership import Record, Transition


def seed(obeyer: Obeyer) -> None:
    """Bring broker and records together; raises StoreUnavailable or Closed, and may be repeated."""
    records = obeyer.store.records(obeyer.cluster)
    mine = {bundle for bundle, record in records.items() if obeyer.serves_by(record)}
    for bundle in sorted(mine.union(obeyer.broker.bundles())):
        known = records.get(bundle)
        obeyer.settle(bundle, _claim(obeyer, bundle, known.epoch if known else NO_EPOCH))


def _claim(obeyer: Obeyer, bundle: str, expect: Epoch) -> Record | None:
    """The record as it stands after this broker asked for the bundle.

    Asked even of a bundle that is this broker's by its record: reading does not tell that the store
    is closed, and records of a closed one may be older than what other brokers act on.
    """
    claim = Transition(
        id=f"{obeyer.broker_id}/{bundle}/{expect.generation}.{expect.counter}/{Event.CLAIM.value}",
        bundle=bundle,
        event=Event.CLAIM,
        expect=expect,
        broker=obeyer.broker_id,
        actor=obeyer.broker_id,
    )
    return obeyer.store.apply(obeyer.cluster, claim).record
