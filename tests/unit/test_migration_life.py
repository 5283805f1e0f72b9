"""The life of a migration: what people and gates may do with it."""

from __future__ import annotations

import pytest

from tests.support.migrations import RUNNING
from trimtab.migration.life import (
    CLAIMING,
    TRANSITIONS,
    UNDER_WAY,
    MigrationEvent,
    MigrationState,
    allows,
)
from trimtab.migration.migration import Counts, Migration, Target, Wave
from trimtab.wire.columns import pack, unpack


def test_a_migration_is_paused_resumed_and_completed() -> None:
    paused = RUNNING.after(MigrationEvent.PAUSE, why="lunch")
    resumed = paused.after(MigrationEvent.RESUME, why="")
    assert (paused.state, resumed) == ("paused", RUNNING)
    assert resumed.after(MigrationEvent.FINISH, ended=7).state == "completed"


def test_a_completed_migration_can_be_rolled_back_once() -> None:
    done = RUNNING.after(MigrationEvent.FINISH)
    back = done.after(MigrationEvent.ROLL_BACK)
    assert back.state == "rolling-back"
    assert back.after(MigrationEvent.FINISH).state == "rolled-back"
    assert TRANSITIONS[MigrationState.ROLLED_BACK] == {}


@pytest.mark.parametrize("state", MigrationState)
def test_only_a_rolled_back_migration_leaves_its_topics_to_others(state: MigrationState) -> None:
    assert (state in CLAIMING) is (state is not MigrationState.ROLLED_BACK)
    assert allows(state, MigrationEvent.FINISH) is (state in UNDER_WAY)


def test_a_migration_survives_the_checkpoint() -> None:
    whole = Migration(
        "m",
        "blue",
        "public/orders",
        Target(serviceUrl="http://green:8080"),
        MigrationState.PAUSED,
        (Wave(("public/orders",), 0.1),),
        counts=(Counts(active=2), Counts(migrated=1)),
        why="too many errors",
    )
    assert unpack(pack(whole), Migration) == whole


def test_a_target_names_the_urls_that_are_set() -> None:
    both = Target(serviceUrl="http://g:8080", serviceUrlTls="https://g:8443")
    assert (both.web, list(both.urls())) == ("https://g:8443", ["serviceUrl", "serviceUrlTls"])
