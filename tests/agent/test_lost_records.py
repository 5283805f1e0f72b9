"""Owners whose store was emptied, or went back to earlier records: one cluster takes writes."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.migrating_place import ONE, B, Place
from tests.support.migrations import GREEN
from trimtab.migration.life import MigrationEvent, MigrationState
from trimtab.migration.migration import Counts, Migration
from trimtab.migration.progress import advance
from trimtab.wire.topics import TopicRecord


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_topic_whose_record_is_lost_is_not_written_on_blue_again(place: Place) -> None:
    """Its producers are on green. It is enlisted again, and goes the same way."""
    log = place.storage.topic(ONE, slow=0)
    log.written = 3
    place.migrate()
    place.look()
    place.look()
    place.storage.green[ONE] = 1
    place.store.records.clear()
    log.subscriptions["slow"] = 1
    for _ in range(3):
        place.look()
        assert log.ended
    assert place.state() == "draining"


def test_a_record_that_was_restored_to_an_earlier_one_is_followed(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate()
    place.look()
    earlier, marks = dict(place.store.records), dict(place.store.marks)
    place.look()
    assert place.state() == "migrated"
    place.store.records, place.store.marks = earlier, {}
    place.mover.doubt()
    place.look()
    assert place.state() == "migrated"
    assert place.store.marks == marks


def rolled_back(place: Place, at: int = 0) -> None:
    for state in (MigrationState.ROLLING_BACK, MigrationState.ROLLED_BACK):
        place.migrate(state, at=at)
        place.look()


@pytest.mark.parametrize("state", [MigrationState.ROLLING_BACK, MigrationState.ROLLED_BACK])
def test_a_record_that_was_restored_to_active_in_a_rollback_opens_nothing_on_blue(
    place: Place, state: MigrationState
) -> None:
    """Green has taken a write: blue took more of them as soon as the bundle was loaded again."""
    log = place.storage.topic(ONE, slow=0)
    log.written = 1
    place.migrate(MigrationState.PAUSED)
    place.look()
    earlier = dict(place.store.records)
    place.migrate()
    place.look()
    assert place.state() == "terminated"
    place.storage.green[ONE] = 1
    rolled_back(place)
    assert place.store.records[ONE].stays
    place.store.records = earlier
    place.migrate(state)
    place.owned_by(B)
    assert place.state() == "active"
    assert log.ended
    # The way out: another migration of the topic.
    place.store.known["m"] = replace(place.store.known["m"], state=MigrationState.ROLLED_BACK)
    place.store.known["n"] = Migration("n", "c", ONE, GREEN, at=1)
    log.subscriptions["slow"] = 1
    for _ in range(2):
        place.look()
    assert (place.state(), place.store.records[ONE].migration) == ("migrated", "n")


def test_a_record_from_before_a_later_migration_opens_nothing_on_blue(place: Place) -> None:
    """An earlier migration was rolled back; the store went back to that."""
    log = place.storage.topic(ONE, slow=0)
    log.written = 1
    place.migrate()
    place.look()
    rolled_back(place)
    assert (place.state(), log.ended) == ("active", False)
    earlier = dict(place.store.records)
    place.store.known["n"] = Migration("n", "c", "t/ns", GREEN, at=1)
    place.look()
    assert (place.state(), log.ended) == ("terminated", True)
    place.storage.green[ONE] = 1
    place.store.records = earlier
    place.owned_by(B)
    assert log.ended
    place.look()
    assert (place.state(), log.ended) == ("terminated", True)


def test_a_topic_that_is_back_is_opened_though_a_later_migration_was_rolled_back_before_it_began(
    place: Place,
) -> None:
    """Its owner died between the record and the opening: it was dead on both clusters for good."""
    log = place.storage.topic(ONE, slow=0)
    log.subscriptions["slow"] = 3
    place.migrate()
    place.look()
    rolled_back(place)
    assert (place.state(), log.ended) == ("active", False)
    log.ended = True
    later = Migration("n", "c", "t/ns", GREEN, MigrationState.ROLLED_BACK, at=1)
    left = (Counts(migrated=1, stays=1),)
    for judged in (
        replace(later, why="the store has lost records"),
        # This topic may be the one that stays.
        replace(later, counts=left),
        replace(later, state=MigrationState.ROLLING_BACK),
    ):
        place.store.known["n"] = judged
        place.owned_by(B)
        assert log.ended
    place.store.known["n"] = later
    place.owned_by(B)
    assert not log.ended


def test_a_topic_that_is_back_is_served_although_its_record_went_back_to_before(
    place: Place,
) -> None:
    """It was ended on blue once more when its bundle was loaded, and stayed so."""
    log = place.storage.topic(ONE, slow=0)
    log.written = 1
    place.migrate()
    place.look()
    earlier = dict(place.store.records)
    rolled_back(place)
    assert (place.state(), log.ended) == ("active", False)
    place.store.records = earlier
    place.owned_by(B)
    assert not log.ended
    place.look()
    assert (place.state(), place.store.records[ONE].back, log.ended) == ("active", True, False)


HAPPENS = st.lists(
    st.sampled_from(
        ["look", "look", "crash", "save", "restore", "empty", "read", "write", "back", "again"]
    ),
    max_size=40,
)


@given(HAPPENS)
@settings(max_examples=400)
def test_whatever_the_store_goes_back_to_blue_takes_no_write_once_green_has_one(
    happens: list[str],
) -> None:
    place = Place()
    place.storage.topic(ONE, slow=0).written = 1
    place.migrate()
    saved = _saved(place)
    for number, each in enumerate(happens):
        if each == "save":
            saved = _saved(place)
        elif each in ("restore", "empty"):
            records, sums = saved if each == "restore" else ({}, {})
            place.store.records, place.store.sums = dict(records), copy.deepcopy(sums)
            if number % 2:
                place.mover.doubt()
        else:
            _happen(place, each)
        log = place.storage.blue.get(ONE)
        if place.storage.green.get(ONE) and log is not None:
            assert log.ended, "both clusters accept writes"


def _saved(place: Place) -> tuple[dict[str, TopicRecord], dict[str, Counter[tuple[str, str]]]]:
    return dict(place.store.records), copy.deepcopy(place.store.sums)


def _happen(place: Place, what: str) -> None:
    newest = list(place.store.known)[-1]
    it, log = place.store.known[newest], place.storage.blue.get(ONE)
    if what == "look":
        place.look()
    elif what == "crash":
        place.owned_by(B)
    elif what == "read" and log is not None:
        log.subscriptions = dict.fromkeys(log.subscriptions, log.written)
    elif what == "write":
        _write(place)
    elif what == "back":
        place.store.known[newest] = _further_back(it, place.store.counts(newest))
    elif what == "again" and it.state is MigrationState.ROLLED_BACK:
        name = f"m{it.at + 1}"
        place.store.known[name] = Migration(name, "c", "t/ns", GREEN, at=it.at + 1)


def _further_back(it: Migration, counts: dict[str, Counts]) -> Migration:
    """Rolled back, and ended by what is counted then."""
    total = counts.get("0", Counts())
    if it.state is MigrationState.RUNNING:
        return it.after(MigrationEvent.ROLL_BACK)
    return advance(it, (total,), 0, 0)


def _write(place: Place) -> None:
    """A producer writes where it is sent."""
    log = place.storage.blue.get(ONE)
    if log is not None and not log.ended:
        log.written += ONE not in place.broker.held
    elif ONE in place.storage.green:
        place.storage.green[ONE] += 1
