"""New topics that clients ask for while their scope migrates begin on green, and stay there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.migration.new_topics import MOST_WAITING
from agent.migration.port import AskAgain
from agent.migration.records import LOST_S
from sinks.errors import StoreUnavailable
from tests.support.migrating_place import BUNDLE, ONE, TWO, A, B, Place
from tests.support.migrations import GREEN
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts
from trimtab.model import LONGEST_NAME
from trimtab.wire.topics import TopicCall, TopicOutcome


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_new_topic_is_created_on_green_and_one_of_pulsars_own_is_not(place: Place) -> None:
    place.migrate()
    place.look()
    assert place.asked(ONE) is AskAgain
    place.look()
    assert place.asked(ONE) == GREEN
    assert place.asked("persistent://t/other/one") is None
    assert place.asked("persistent://t/ns/__change_events") is None


def test_a_new_topic_is_recorded_as_one_that_stays_before_its_client_is_sent_away(
    place: Place,
) -> None:
    """After a rollback its other clients made it on blue, and the first ones stayed on green."""
    place.migrate()
    place.look()
    assert place.asked(ONE) is AskAgain
    assert place.state() == "unknown"
    place.mover.look(lambda: None)
    assert (place.state(), place.store.records[ONE].stays) == ("migrated", True)
    assert place.asked(ONE) == GREEN
    assert place.store.counts("m")["0"] == Counts(migrated=1, stays=1, began=1)
    for state in (MigrationState.ROLLING_BACK, MigrationState.ROLLED_BACK):
        place.migrate(state)
        assert place.look() == []
        assert place.asked(ONE) == GREEN
        assert place.asked(TWO) is None


@pytest.mark.parametrize("state", [MigrationState.PAUSED, MigrationState.COMPLETED])
def test_new_topics_are_recorded_until_a_rollback(place: Place, state: MigrationState) -> None:
    place.migrate(state)
    place.look()
    assert place.asked(ONE) is AskAgain
    place.mover.look(lambda: None)
    assert place.asked(ONE) == GREEN


def test_a_rollback_before_the_record_leaves_a_new_topic_on_blue(place: Place) -> None:
    """The owner believes that the migration runs; the store knows better."""
    place.migrate()
    place.look()
    assert place.asked(ONE) is AskAgain
    place.store.known = {"m": replace(place.store.known["m"], state=MigrationState.ROLLING_BACK)}
    place.mover.look(lambda: None)
    assert place.state() == "unknown"
    assert place.asked(ONE) is AskAgain
    place.look()
    assert place.asked(ONE) is None


def test_a_topic_that_was_created_here_meanwhile_is_not_recorded_as_new(place: Place) -> None:
    """Before the owner read that the migration runs."""
    place.migrate()
    place.look()
    assert place.asked(ONE) is AskAgain
    place.storage.topic(ONE)
    place.mover.look(lambda: None)
    assert place.state() == "unknown"
    place.look()
    assert (place.state(), place.store.records[ONE].stays) == ("terminated", False)


def test_an_owner_that_crashed_before_or_after_the_record_redirects_when_it_is_asked_again(
    place: Place,
) -> None:
    place.migrate()
    place.look()
    assert (place.asked(ONE), place.asked(TWO)) == (AskAgain, AskAgain)
    place.owned_by(B)
    assert place.asked(ONE) is AskAgain
    place.mover.look(lambda: None)
    place.owned_by(A)
    assert place.asked(ONE) == GREEN
    assert place.asked(TWO) is AskAgain


def test_a_lost_answer_to_the_record_of_a_new_topic_is_found_by_the_next_question(
    place: Place,
) -> None:
    place.migrate()
    place.look()
    assert place.asked(ONE) is AskAgain
    place.store.lost = 1
    with pytest.raises(StoreUnavailable):
        place.mover.look(lambda: None)
    assert place.asked(ONE) is AskAgain
    place.mover.look(lambda: None)
    assert place.asked(ONE) == GREEN
    assert place.store.counts("m")["0"] == Counts(migrated=1, stays=1, began=1)


def test_a_topic_that_users_deleted_and_ask_for_again_is_new(place: Place) -> None:
    place.storage.topic(ONE)
    place.migrate(MigrationState.PAUSED)
    place.look()
    assert place.state() == "active"
    del place.storage.blue[ONE]
    assert place.asked(ONE) is AskAgain
    place.mover.look(lambda: None)
    assert (place.asked(ONE), place.state()) == (GREEN, "migrated")
    assert place.store.counts("m")["0"] == Counts(migrated=1, stays=1, began=1)


def test_a_topic_in_a_bundle_of_another_owner_is_not_recorded(place: Place) -> None:
    place.migrate()
    place.look()
    assert place.asked(ONE) is AskAgain
    place.holdings.drop(BUNDLE)
    place.mover.look(lambda: None)
    assert place.store.records == {}
    assert place.mover.next_at > place.clock.now


def test_a_client_that_invents_names_fills_neither_the_store_nor_the_owner(place: Place) -> None:
    place.store.most_new = 5
    place.migrate()
    place.look()
    for number in range(2 * MOST_WAITING):
        assert place.asked(f"{ONE}-{number}") is AskAgain
    assert place.asked("persistent://t/ns/" + "x" * LONGEST_NAME) is AskAgain
    asked = list[int]()
    change = place.store.change

    def counting(cluster: str, call: TopicCall) -> tuple[TopicOutcome, ...]:
        asked.append(len(call.changes))
        return change(cluster, call)

    place.store.change = counting  # type: ignore[method-assign]
    place.mover.look(lambda: None)
    assert asked == [MOST_WAITING]
    assert len(place.store.records) == 5
    with pytest.raises(AskAgain, match="as many topics of its namespace as may"):
        place.mover.green_for(f"{ONE}-7")
    # The store is not asked for every name again, until the next look: some may be gone by then.
    place.mover.look(lambda: None)
    assert asked == [MOST_WAITING]
    place.store.most_new = 6
    place.look()
    assert place.asked(f"{ONE}-7") is AskAgain
    place.mover.look(lambda: None)
    assert (place.asked(f"{ONE}-7"), asked) == (GREEN, [MOST_WAITING, 1])


def test_a_name_that_is_too_long_is_written_down_nowhere(place: Place) -> None:
    place.migrate()
    place.look()
    prefix = "persistent://t/ns/"
    long, longest = (prefix + "ü" * ((LONGEST_NAME - len(prefix)) // 2 + more) for more in (1, 0))
    for topic in (long, longest):
        assert place.asked(topic) is AskAgain
    place.look()
    assert list(place.store.records) == [longest]
    assert (place.asked(long), place.asked(longest)) == (AskAgain, GREEN)


def test_a_store_that_lost_its_migrations_has_no_topic_created_on_blue(place: Place) -> None:
    """It was emptied; the job's next round writes them again."""
    place.migrate()
    place.look()
    place.store.known, running = {}, place.store.known
    place.look()
    assert place.asked(ONE) is AskAgain
    place.mover.look(lambda: None)
    assert place.state() == "unknown"
    place.store.known = running
    assert place.asked(ONE) is AskAgain
    place.mover.look(lambda: None)
    assert place.asked(ONE) == GREEN


def test_a_migration_that_the_store_lost_is_not_believed_for_ever(
    place: Place,
) -> None:
    """It ended while its owner could not read that, and then the store was emptied."""
    place.migrate()
    place.look()
    place.store.known = {}
    place.clock.advance(LOST_S - 1)
    place.look()
    assert place.asked(ONE) is AskAgain
    place.clock.advance(1)
    place.look()
    assert place.asked(ONE) is None


def test_records_are_read_once_there_is_a_migration_again(place: Place) -> None:
    """The bundle was loaded from a store that had lost all migrations, but not the topics."""
    place.storage.topic(ONE)
    place.migrate()
    place.look()
    place.look()
    place.store.known, running = {}, place.store.known
    place.owned_by(B)
    assert place.asked(ONE) is None
    place.store.known = running
    place.look()
    assert place.asked(ONE) == GREEN


STATES = {
    "pause": MigrationState.PAUSED,
    "go on": MigrationState.RUNNING,
    "complete": MigrationState.COMPLETED,
    "back": MigrationState.ROLLING_BACK,
}
"""What people and the job do, in this order: nothing follows a rollback but its end."""
HAPPENS = st.lists(
    st.sampled_from(["look", "part", "crash", "move", "lose", "ask", "ask", "delete", *STATES]),
    max_size=40,
)


LAST = ("ask", "back", "look", "end", "move", "ask", "look", "ask")


@given(HAPPENS)
@settings(max_examples=300)
def test_whatever_happens_no_topic_is_made_on_blue_once_its_client_was_sent_to_green(
    happens: list[str],
) -> None:
    place, sent = Place(), False
    place.migrate()
    for each in [
        *happens,
        *["ask", "look", "ask", "back", "look", "end", "move", "ask", "look", "ask"],
    ]:
        place.store.lost = int(each == "lose")
        try:
            _happen(place, each)
        except StoreUnavailable:
            place.store.lost = 0
        if each == "ask" and TWO not in place.storage.blue:
            answer = place.asked(TWO)
            assert not sent or answer == GREEN
            record = place.store.records.get(TWO)
            sent = sent or (answer == GREEN and record is not None and record.stays)
            if answer is None:
                place.storage.topic(TWO)
        assert not (sent and TWO in place.storage.blue)
    record = place.store.records.get(TWO)
    assert (record is not None and record.stays) == sent


def _happen(place: Place, what: str) -> None:
    known = place.store.known["m"].state
    if what in STATES:
        if known is not MigrationState.ROLLING_BACK:
            place.migrate(STATES[what])
    elif what == "end":
        place.migrate(MigrationState.ROLLED_BACK)
    elif what in ("look", "lose"):
        place.look()
    elif what == "part":
        place.mover.look(lambda: None)
    elif what in ("crash", "move"):
        place.owned_by(A if what == "crash" else B)
    elif what == "delete":
        place.storage.blue.pop(TWO, None)
