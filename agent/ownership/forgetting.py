"""Forgets a broker's records of bundles that others have owned for long, or that ended.

Otherwise a broker that runs for months keeps a record of every bundle that it ever had, and sends
them all to each closed store.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from agent.commands.obeying import Obeyer
from trimtab.wire.ownership import Record

PAGE: Final = 500
"""Bundles that a look reads: it blocks the server for a millisecond."""

_KEPT_MS: Final = 3_600_000
_ENDED_MS: Final = 8 * 24 * 3_600_000
"""A day more than the store keeps the record of a bundle that ended (`sinks.redis.pruning`)."""

Records = Mapping[str, Record]


class Forgetter:
    """Looks at a page of the old records each time, in turn; for the agent's thread."""

    def __init__(self, obeyer: Obeyer) -> None:
        self._obeyer = obeyer
        self._after = ""

    def look(self, now_ms: int) -> list[str]:
        """Bundles of the next page whose records may be forgotten; ``now_ms`` is the store's time.

        Forget them only once it is certain that the store was open until now: an emptied store
        knows of no bundle, and all would seem to have ended. Raises StoreUnavailable.
        """
        obeyer = self._obeyer
        held = {*obeyer.holdings.bundles(), *obeyer.broker.bundles()}
        old = sorted(
            bundle
            for bundle, record in obeyer.seen.all().items()
            if bundle > self._after and bundle not in held and now_ms - record.since > _KEPT_MS
        )
        page = old[:PAGE]
        self._after = page[-1] if len(old) > PAGE else ""
        if not page:
            return []
        records = obeyer.store.records_of(obeyer.cluster, obeyer.broker_id, page)
        mine = {bundle for bundle, record in records.items() if record.owner == obeyer.broker_id}
        may_go = forgettable(obeyer, records, held | mine, now_ms)
        return [bundle for bundle in page if bundle in may_go]


def forgettable(obeyer: Obeyer, records: Records, mine: Set[str], now_ms: int) -> set[str]:
    """Bundles that others have owned for so long that the journal's topic has their records, and
    those that ended so long ago that the store has dropped their records."""
    return {
        bundle
        for bundle, seen in obeyer.seen.all().items()
        if bundle not in mine and _is_old(seen, records.get(bundle), now_ms)
    }


def _is_old(seen: Record, known: Record | None, now_ms: int) -> bool:
    if known is None:
        return now_ms - seen.since > _ENDED_MS
    return known.epoch >= seen.epoch and now_ms - known.since > _KEPT_MS
