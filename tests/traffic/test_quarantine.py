"""A bundle whose owners died one after another is quarantined, and its topics take no step.

A migration of it waits for a person: it says for what, and goes on once the bundle is readmitted.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from control.migration.waiting_bundles import STILL_MS, Cause, WaitingBundles
from sinks.errors import SinkError
from sinks.redis.leasing.leases import Leases
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import OwnershipStore
from tests.support.waiting import eventually
from tests.traffic.land import Land, bundles, crowded, land
from tests.traffic.watching import PATIENCE_S, await_clusters, await_state, names, settle
from trimtab.migration.life import MigrationState
from trimtab.ownership import MOST_FALLS, SERVING, State
from trimtab.wire.ownership import Record

BUNDLE = bundles("t/ns-0", 2)[0]


def record(it: Land) -> Record:
    def look() -> Record | None:
        with suppress(SinkError):
            return OwnershipStore(it.client).record(it.blue.name, BUNDLE)
        return None

    return eventually(look, "the bundle has a record", PATIENCE_S)


def kill_owners(it: Land) -> None:
    """Until no broker gets the bundle any more."""
    for _ in range(2 * MOST_FALLS):
        before = record(it)
        if before.state is State.QUARANTINED:
            return
        owner = next(each for each in it.blue.brokers if each.name == before.owner)
        owner.kill()

        def is_elsewhere(before: Record = before) -> bool:
            now = record(it)
            return now.state is State.QUARANTINED or (
                now.state in SERVING and now.owner != before.owner
            )

        eventually(is_elsewhere, "the bundle has another owner", PATIENCE_S)
        owner.start()
        eventually(owner.answers, f"{owner.name} answers", PATIENCE_S)
    raise AssertionError(f"not quarantined: {record(it)}")


@pytest.mark.slow
def test_a_migration_names_a_quarantined_bundle_and_goes_on_once_it_is_readmitted(
    tmp_path: Path,
) -> None:
    topics = names(12, 1)
    with land(tmp_path, namespaces=1) as it:
        kill_owners(it)
        it.readmits = False
        it.migrate(len(topics), 1)
        client = it.client
        waiting = WaitingBundles(Migrations(client), OwnershipStore(client), Leases(client))

        def what_it_waits_for() -> list[tuple[str, Cause]]:
            known = it.migration()
            later_ms = time.time_ns() // 1_000_000 + STILL_MS
            found = () if known is None else waiting.find(known, later_ms)
            return [(each.bundle, each.cause) for each in found]

        wanted = [(BUNDLE, Cause.QUARANTINED)]
        eventually(lambda: what_it_waits_for() == wanted, "it says what it waits for", PATIENCE_S)
        assert it.is_in(MigrationState.RUNNING)
        it.readmit()
        with crowded(it, topics, 60.0) as crowd:
            await_state(it, MigrationState.COMPLETED, Random(1), PATIENCE_S)
            settle(crowd)
            await_clusters(crowd, {"green": len(topics)})
        verdict = crowd.verdict()
    assert verdict.ok, verdict
