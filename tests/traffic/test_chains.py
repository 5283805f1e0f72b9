"""Topics that go on from green, and that come home: one place takes their writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from agent.migration.port import AskAgain, CannotMigrate, TopicGone
from control.migration.cycles import Going
from control.migration.green import green_flaws
from control.migration.green_admin import ask
from simulation.traffic.client import Client
from simulation.traffic.consumer import Consumer
from simulation.traffic.migrating import MigratingBroker
from simulation.traffic.standing import Standing
from tests.support.green_server import green as answering
from tests.support.waiting import eventually
from tests.traffic.inbox import Inbox, all_stored, arrived, attached, send, texts
from tests.traffic.town import TOPIC, Town, town
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts, Migration, Target


@pytest.fixture
def teal(tmp_path: Path) -> Iterator[Town]:
    with town(tmp_path, "teal") as made:
        yield made


def owner(of: Town) -> MigratingBroker:
    assert of.owner is not None
    return of.owner.broker


def standing(of: Town) -> Standing:
    return owner(of).known(TOPIC).standing


def hand_on(there: Town, here: Town, consumer: Consumer) -> None:
    """Take the topic from one cluster to the next, whole, with its consumer, as agents do."""
    broker = owner(here)
    broker.create_on(there.urls, TOPIC)
    broker.hold(TOPIC)
    broker.terminate(TOPIC, there.urls)
    eventually(lambda: broker.backlog(TOPIC) == {"s": 0}, "it is drained", 20)
    broker.redirect(TOPIC, "s", there.urls)
    here.gone[TOPIC] = there.urls
    broker.remove(TOPIC, there.urls)
    eventually(lambda: consumer.cluster == there.name, f"it is on {there.name}", 20)


def test_a_rollback_leaves_a_topic_that_has_gone_on_from_green_though_green_took_no_write(
    blue: Town, green: Town, teal: Town, client: Client
) -> None:
    """The cluster after it has: blue would have been a second place that takes writes."""
    inbox = Inbox()
    consumer = attached(client, inbox)
    hand_on(green, blue, consumer)
    hand_on(teal, green, consumer)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    all_stored(producer)
    for home in green.homes:
        # Asked of any broker, and again, as its answer may be lost.
        green.give(home)
        with pytest.raises(TopicGone) as gone:
            owner(blue).take_back(TOPIC, green.urls)
        assert gone.value.where == teal.urls.web
    send(client, producer, 1)
    arrived(inbox, 2)
    assert (inbox.got, consumer.cluster) == (texts(0, 1), "teal")
    assert (standing(blue), standing(teal)) == (Standing.REMOVED, Standing.ACTIVE)


def test_a_topic_whose_record_sends_it_on_stays_before_its_broker_has_followed(
    blue: Town, green: Town, teal: Town, client: Client
) -> None:
    hand_on(green, blue, attached(client, Inbox()))
    green.gone[TOPIC] = teal.urls
    with pytest.raises(TopicGone, match=teal.urls.web):
        owner(blue).take_back(TOPIC, green.urls)
    assert standing(green) is Standing.ACTIVE


def test_a_topic_is_not_given_back_while_green_hands_it_on(
    blue: Town, green: Town, teal: Town, client: Client
) -> None:
    """Whichever was first: the other one waits, or does nothing."""
    hand_on(green, blue, attached(client, Inbox()))
    owner(green).hold(TOPIC)
    with pytest.raises(CannotMigrate, match="about to go on"):
        owner(blue).take_back(TOPIC, green.urls)
    owner(green).release(TOPIC)
    owner(green).create_on(teal.urls, TOPIC)
    assert owner(blue).take_back(TOPIC, green.urls)
    with pytest.raises(CannotMigrate, match="was given back"):
        owner(green).hold(TOPIC)


def test_a_topic_that_green_has_written_stays_though_it_was_taken_back_from_the_next_cluster(
    blue: Town, green: Town, teal: Town, client: Client
) -> None:
    inbox = Inbox()
    consumer = attached(client, inbox)
    hand_on(green, blue, consumer)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    arrived(inbox, 1)
    hand_on(teal, green, consumer)
    assert owner(green).take_back(TOPIC, teal.urls)
    green.gone.clear()
    owner(green).reopen(TOPIC)
    assert not owner(blue).take_back(TOPIC, green.urls)
    send(client, producer, 1)
    arrived(inbox, 2)
    assert inbox.got == texts(0, 1)


def test_a_cluster_is_known_by_any_of_its_brokers(blue: Town, green: Town, client: Client) -> None:
    """Blue's next owner was started with another list of them: green's answer is the same."""
    hand_on(green, blue, attached(client, Inbox()))
    assert owner(blue).take_back(TOPIC, green.urls)
    home, lone = blue.urls, blue.homes[0].url
    asked = home.__class__(brokerServiceUrl=lone)
    assert owner(green).give_back(TOPIC, asked).ended


def test_a_topic_is_not_handed_to_a_cluster_whose_record_sends_its_clients_away(
    blue: Town, green: Town, client: Client
) -> None:
    """They went round in a circle for ever, and messages were stored that nobody could read."""
    inbox = Inbox()
    consumer = attached(client, inbox)
    hand_on(green, blue, consumer)
    producer = client.producer(TOPIC, "p")
    for home in blue.homes:
        blue.give(home)
        with pytest.raises(CannotMigrate, match="where a migration from here took it"):
            owner(green).create_on(blue.urls, TOPIC)
    send(client, producer, 0)
    arrived(inbox, 1)
    assert (standing(blue), standing(green)) == (Standing.REMOVED, Standing.ACTIVE)


def test_a_topic_that_only_a_record_knows_is_not_made_by_another_cluster(
    blue: Town, green: Town, client: Client
) -> None:
    """It began on green: the file of blue has nothing of it."""
    attached(client, Inbox())
    green.gone[TOPIC] = blue.urls
    with pytest.raises(CannotMigrate, match="where a migration from here took it"):
        owner(blue).create_on(green.urls, TOPIC)
    with pytest.raises(CannotMigrate, match="does not exist"):
        standing(green)


@pytest.mark.parametrize(
    ("state", "stays", "refused"),
    [
        (MigrationState.COMPLETED, 0, True),
        (MigrationState.ROLLED_BACK, 1, True),
        (MigrationState.ROLLED_BACK, 0, False),
    ],
)
def test_brokers_say_what_migrates_from_them_to_who_would_migrate_there(
    blue: Town, green: Town, state: MigrationState, stays: int, refused: bool
) -> None:
    """A plan whose green was the brokers themselves found no circle."""
    counts = (Counts(migrated=2, stays=stays),)
    blue.migrations = [Migration("m", "blue", "t/ns", green.urls, state, counts=counts)]
    own = [home.name for home in green.homes]
    for scope, met in (("t/ns", refused), (TOPIC, refused), ("t/other", False)):
        found = list(green_flaws(blue.urls, own, ["t"], ask, Going(scope)))
        assert [rule for rule, _ in found] == ["migration-cycle"] * met


def test_a_new_topic_is_not_handed_to_a_cluster_whose_new_topics_begin_elsewhere(
    blue: Town, green: Town, client: Client
) -> None:
    """Green's migration has completed: what was made there all the same would be left there."""
    attached(client, Inbox())

    def ask_again(_topic: str) -> Target | None:
        raise AskAgain("it is not recorded yet")

    for home in green.homes:
        home.broker.follow(partial(green.token, home.name), ask_again)
    with pytest.raises(CannotMigrate, match="new topics go on from there"):
        owner(blue).create_on(green.urls, TOPIC)
    with pytest.raises(CannotMigrate, match="does not exist"):
        standing(green)


def test_a_topic_that_was_written_on_green_before_is_not_handed_over(
    blue: Town, green: Town, client: Client
) -> None:
    """Green took a producer's new messages for those of the trial, and told it that they are
    stored; its consumers got the trial's."""
    inbox = Inbox()
    attached(client, inbox)
    with Client(green.url, "trial") as trial:
        tried = trial.producer(TOPIC, "p")
        send(trial, tried, 7, 8, 9)
        all_stored(tried)
    with pytest.raises(CannotMigrate, match="has 3 messages that were written there before"):
        owner(blue).create_on(green.urls, TOPIC)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    arrived(inbox, 1)
    assert inbox.got == texts(0)


def test_what_green_has_taken_since_it_was_handed_over_keeps_no_step_from_being_done_again(
    blue: Town, green: Town, client: Client
) -> None:
    """Blue's record is lost, and the topic is enlisted again."""
    attached(client, Inbox())
    owner(blue).create_on(green.urls, TOPIC)
    owner(blue).terminate(TOPIC, green.urls)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    all_stored(producer)
    owner(blue).create_on(green.urls, TOPIC)


def test_a_consumer_reads_green_from_its_first_entry_though_both_clusters_have_one_name(
    tmp_path: Path,
) -> None:
    """It took green's first entries for those that it had got from blue, and acknowledged them."""
    (tmp_path / "green").mkdir()
    with (
        town(tmp_path, "prod") as here,
        town(tmp_path / "green", "prod") as there,
        Client(here.url, "test") as client,
    ):
        inbox = Inbox()
        attached(client, inbox)
        producer = client.producer(TOPIC, "p")
        send(client, producer, 0, 1, 2)
        arrived(inbox, 3)
        broker = owner(here)
        broker.create_on(there.urls, TOPIC)
        broker.terminate(TOPIC, there.urls)
        send(client, producer, 3, 4, 5, 6)
        all_stored(producer)
        eventually(lambda: broker.backlog(TOPIC) == {"s": 0}, "it is drained", 20)
        broker.redirect(TOPIC, "s", there.urls)
        arrived(inbox, 7)
        assert inbox.got == texts(*range(7))


PASSING = "non-persistent://t/ns/passing"


def test_a_topic_that_is_not_persistent_migrates_as_others_do(
    blue: Town, green: Town, client: Client
) -> None:
    consumer = client.consumer(PASSING, "s", Inbox())
    eventually(lambda: client.place_of(consumer), "it is attached", 20)
    owner(blue).create_on(green.urls, PASSING)
    assert owner(green).backlog(PASSING) == {"s": 0}


@pytest.mark.parametrize(("topic", "refused"), [(PASSING, False), (TOPIC, True)])
def test_a_green_that_keeps_no_subscription_of_a_topic_that_is_not_persistent_has_it_all_the_same(
    blue: Town, client: Client, topic: str, refused: bool
) -> None:
    """As a Pulsar: its clients make the subscription when they come."""
    consumer = client.consumer(topic, "s", Inbox())
    eventually(lambda: client.place_of(consumer), "it is attached", 20)
    path = topic.replace("://", "/")
    answers: dict[str, object] = {"tenants/t": {}, "namespaces/t/ns": {}, path: {}}
    with answering({**answers, f"{path}/subscription/s": 400}) as url:
        target = Target(serviceUrl=url)
        if refused:
            with pytest.raises(CannotMigrate, match="subscription/s: 400"):
                owner(blue).create_on(target, topic)
        else:
            owner(blue).create_on(target, topic)
