"""Whole clusters migrate while their brokers, their drivers and Redis are killed."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import Final

import pytest

from simulation.traffic.checker import Verdict
from tests.support.waiting import eventually
from tests.traffic.land import Land, crowded, land
from tests.traffic.watching import PATIENCE_S, await_clusters, await_state, names, settle
from trimtab.migration.life import MigrationState
from trimtab.wire.intent import IntentKind

WAVES: Final = 4


def migrated(it: Land, topics: list[str], rate: float, rng: Random, pause_s: float) -> Verdict:
    """What became of the messages of a cluster that has migrated whole."""
    with crowded(it, topics, rate) as crowd:
        it.migrate(len(topics), WAVES)
        for wave in range(WAVES):
            await_state(it, MigrationState.RUNNING, rng, pause_s, wave)
            it.shake(rng)
        await_state(it, MigrationState.COMPLETED, rng, pause_s)
        assert it.counts().migrated == len(topics)
        settle(crowd)
        await_clusters(crowd, {"green": len(topics)})
    return crowd.verdict()


def test_a_cluster_migrates_while_brokers_drivers_and_redis_are_killed(tmp_path: Path) -> None:
    topics = names(60, 3)
    with land(tmp_path, namespaces=3) as it:
        verdict = migrated(it, topics, 200.0, Random(1), PATIENCE_S)
    assert verdict.ok, verdict
    assert verdict.got > len(topics)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_topics_migrate(tmp_path: Path) -> None:
    topics = names(10_000, 10)
    with land(tmp_path, namespaces=10, brokers=3) as it:
        began = time.monotonic()
        verdict = migrated(it, topics, 500.0, Random(3), 30.0)
        print(f"{verdict}\nkilled {it.kills} in {time.monotonic() - began:.0f} s")
    assert verdict.ok, verdict
    assert verdict.got > len(topics)


@pytest.mark.slow
def test_a_rollback_half_way_brings_every_client_of_an_unwritten_topic_back(
    tmp_path: Path,
) -> None:
    rng, topics, loud = Random(2), names(60, 3), 30
    with land(tmp_path, namespaces=3) as it, crowded(it, topics, 200.0, loud) as crowd:
        it.migrate(len(topics), WAVES)
        it.shake(rng)
        await_state(it, MigrationState.RUNNING, rng, PATIENCE_S, WAVES // 2)
        it.tell(IntentKind.MIGRATION_ROLL_BACK)
        it.shake(rng)
        await_state(it, MigrationState.ROLLED_BACK, rng, PATIENCE_S)
        eventually(lambda: it.counts().stays == it.counts().migrated, "the others are on green")
        settle(crowd)
        stays = it.counts().stays
        await_clusters(crowd, {"green": stays, "blue": len(topics) - stays})
        assert 0 < stays <= loud
    verdict = crowd.verdict()
    assert verdict.ok, verdict
