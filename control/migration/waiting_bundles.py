"""The bundles that a migration waits for: no broker serves them, or none has named their topics.

a migration that comes further     nothing is read
one that stands still              its bundles, in pages, until enough are found:
  no broker serves one             none of its topics takes a step, whether they are named or not
  served, and not named            its broker is slow, or offers no port for migrations
Bundles of which no topic is left to move may be among the former: they are rare, and to be cured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final

from sinks.redis.leasing.leases import Leases
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import OwnershipStore
from trimtab.migration.life import UNDER_WAY
from trimtab.migration.migration import Migration
from trimtab.migration.topic_life import MAY_ENLIST
from trimtab.ownership import SERVING, State
from trimtab.wire.ownership import NO_RECORD, Record

STILL_MS: Final = 10_000
"""How long it has come no further before bundles are read. Longer: a person who asks is not told;
shorter: each look at a migration that moves reads them."""
MOST_NAMED: Final = 5
"""Bundles that are told."""
MOST_PAGES: Final = 100
"""Pages that are read: 100,000 bundles, in about a second."""
_PART: Final = 500
"""Records that a call reads: it blocks the server for less than a millisecond."""


class Cause(StrEnum):
    """Why a bundle's topics take no step, or are not counted yet."""

    QUARANTINED = "quarantined"
    """Owner after owner died: no broker gets it until somebody readmits it."""
    NO_OWNER = "no-owner"
    NO_LEASE = "no-lease"
    """Its owner is not alive."""
    NOT_LOADED = "not-loaded"
    """Its owner has not confirmed that it serves it."""
    NOT_NAMED = "not-named"
    """Its owner has not named its topics of the waves so far."""


@dataclass(frozen=True, slots=True)
class WaitingBundle:
    """A bundle that a migration waits for."""

    bundle: str
    cause: Cause
    owner: str = ""


class WaitingBundles:
    """Finds them in one Redis; raises StoreUnavailable and Misconfigured."""

    def __init__(self, migrations: Migrations, store: OwnershipStore, leases: Leases) -> None:
        self._migrations, self._store, self._leases = migrations, store, leases

    def find(self, migration: Migration, now_ms: int) -> tuple[WaitingBundle, ...]:
        """The first of them by name, those first that no broker serves; none if the migration has
        come further lately, or has ended."""
        if migration.state not in UNDER_WAY or now_ms - migration.moved < STILL_MS:
            return ()
        unserved, unnamed = list[WaitingBundle](), list[WaitingBundle]()
        for page in islice(self._migrations.bundles_in(migration), MOST_PAGES):
            for each in self._waiting_in(migration, page):
                (unnamed if each.cause is Cause.NOT_NAMED else unserved).append(each)
            if len(unserved) >= MOST_NAMED:
                break
        return tuple((unserved + unnamed)[:MOST_NAMED])

    def _waiting_in(
        self, migration: Migration, page: Mapping[str, bool]
    ) -> Iterator[WaitingBundle]:
        names, records = list(page), dict[str, Record]()
        for start in range(0, len(names), _PART):
            part = names[start : start + _PART]
            records |= self._store.records_named(migration.cluster, part)
        owners = sorted({each.owner for each in records.values() if each.owner is not None})
        alive = self._leases.held(migration.cluster, owners)
        for bundle, is_named in page.items():
            record = records.get(bundle, NO_RECORD)
            cause = _unserved(record, record.owner in alive)
            if cause is None and not is_named and migration.state in MAY_ENLIST:
                cause = Cause.NOT_NAMED
            if cause is not None and record.state is not State.DELETED:
                yield WaitingBundle(bundle, cause, record.owner or "")


def _unserved(record: Record, is_alive: bool) -> Cause | None:
    """Why no broker serves a bundle; None if one does."""
    if record.state is State.QUARANTINED:
        return Cause.QUARANTINED
    if record.owner is None:
        return Cause.NO_OWNER
    if not is_alive:
        return Cause.NO_LEASE
    return None if record.state in SERVING else Cause.NOT_LOADED
