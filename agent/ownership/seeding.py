"""Agrees with the store on ownership, before a broker serves and after its lease lapsed.

for each bundle that is held here, or whose record names this broker as owner:
  claim it at its record's epoch
  accepted: load it and serve
  refused since another has it: unload it
  refused though it named the record's epoch, as no request can change that record: leave it
  refused for another reason: begin again
A claim gives a bundle a new epoch even if this broker owns it already. So no earlier request that
arrives late can take away a bundle that it serves from now on.

Each bundle is served as soon as the store has accepted its claim and it is loaded. Bundles are
claimed in pages, and the lease is renewed between bundles: loading may take longer than the lease.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agent.broker import CannotLoad
from agent.commands.obeying import Obeyer
from agent.ownership.forgetting import Records, forgettable
from sinks.errors import Closed
from trimtab.ownership import Event, State
from trimtab.wire.ownership import Record, Refused, Transition, TransitionOutcome

PAGE: Final = 16
"""Claims in a call: it blocks the server for a millisecond. If a whole fleet starts at once each
broker waits for all others' pages: with longer ones, a thousand brokers would time out before they
get their answers."""


def seed(obeyer: Obeyer, now_ms: int, renew: Callable[[], object]) -> set[str]:
    """Make broker and records agree; raises StoreUnavailable or Closed, and may be repeated.

    ``now_ms`` is the store's time. ``renew`` is called between bundles, and keeps the lease; its
    errors end the seeding. Returns the bundles whose records the broker may forget, once
    it is sure that the store was open until now: an emptied one knows of no bundle.
    """
    held = set(obeyer.broker.bundles())
    seen = obeyer.seen.all()
    records = obeyer.store.records_of(obeyer.cluster, obeyer.broker_id, held.union(seen))
    mine = {bundle for bundle, record in records.items() if record.owner == obeyer.broker_id}
    bundles = sorted(mine | held)
    refused = 0
    for start in range(0, len(bundles), PAGE):
        refused += _agree(obeyer, bundles[start : start + PAGE], records, renew)
    if refused:
        raise Closed(f"{refused} of {obeyer.broker_id}'s claims were refused, and are made again")
    return forgettable(obeyer, records, mine | held, now_ms)


def look_again(obeyer: Obeyer, renew: Callable[[], object]) -> None:
    """Stop serving the bundles that the records give to other brokers, and claim those that they
    give to this broker and that it does not serve. Raises StoreUnavailable or Closed.

    A rebuilt store may have newer records than this broker knew, and may have lost its commands.
    """
    held = obeyer.holdings.bundles()
    records = obeyer.store.records_of(obeyer.cluster, obeyer.broker_id, held)
    for bundle, record in records.items():
        if record.owner == obeyer.broker_id:
            if not obeyer.holdings.holds(bundle):
                renew()
                obeyer.take_back(bundle, record)
        elif obeyer.holdings.holds(bundle):
            renew()
            if obeyer.seen.note(bundle, record):
                obeyer.stop_serving(bundle)


def _agree(
    obeyer: Obeyer, bundles: list[str], records: Records, renew: Callable[[], object]
) -> int:
    """Claim a page of bundles, then make the broker follow the store's answers; returns how many
    are this broker's still, and were refused."""
    asked = []
    for bundle in bundles:
        renew()
        asked.append(_claim(obeyer, bundle, records.get(bundle)))
    refused = 0
    for claim, outcome in zip(asked, obeyer.store.apply_all(obeyer.cluster, asked), strict=True):
        renew()
        refused += _must_repeat(obeyer, claim, outcome)
    return refused


def _must_repeat(obeyer: Obeyer, claim: Transition, outcome: TransitionOutcome) -> bool:
    """Follow the answer to a claim; whether the claim is to be made again.

    Not if it named the record's own epoch and is out of date all the same: the generation is above
    the store's, so somebody damaged the record, and every claim would be refused.
    """
    if obeyer.follow_claim(outcome):
        return False
    record = outcome.record
    if record is None or outcome.reason is not Refused.STALE_EPOCH or record.epoch != claim.expect:
        return True
    obeyer.frozen(claim.bundle, record)
    return False


def _claim(obeyer: Obeyer, bundle: str, known: Record | None) -> Transition:
    """The broker's request for a bundle, or its answer that it cannot load an assigned one."""
    event = Event.CLAIM
    if known is not None and known.owner == obeyer.broker_id and known.state is State.ASSIGNING:
        # Its command is still in the stream, or was lost with the store's last writes.
        try:
            obeyer.load(bundle)
        except CannotLoad:
            event = Event.DECLINE
    return obeyer.claiming(bundle, known, event)
