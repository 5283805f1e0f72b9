"""Topics migrate between clusters of real connections: nothing is lost, doubled or disordered."""

from __future__ import annotations

import json
import socket
import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from agent.migration.port import CannotMigrate, Migrating, TopicLost
from control.migration.cycles import Going
from control.migration.green import green_flaws, green_notes
from control.migration.green_admin import ask
from deploy.ports import LOOPBACK
from simulation.traffic.checker import judge, read
from simulation.traffic.client import Client
from simulation.traffic.consumer import Consumer
from simulation.traffic.crowd import SUBSCRIPTION, Crowd, Diary
from simulation.traffic.frames import (
    VERSION,
    Connect,
    Connected,
    Migrated,
    Part,
    Produce,
    Producing,
    Subscribe,
    Subscribed,
    encode,
    of_broker,
)
from simulation.traffic.migrating import MigratingBroker
from simulation.traffic.topic_log import Topic
from tests.faults.proxy import Proxy
from tests.support.green_server import green as answering
from tests.support.waiting import eventually
from tests.traffic.inbox import Inbox, all_stored, arrived, attached, send, talking, texts
from tests.traffic.moving import At, Mover, Trip
from tests.traffic.town import BUNDLE, TOPIC, Town, town
from trimtab.migration.migration import Target


@pytest.fixture
def broker(blue: Town) -> MigratingBroker:
    return blue.homes[0].broker


def stood(of: Town) -> Topic:
    home = of.owner
    assert home is not None
    return home.broker.known(TOPIC)


def test_the_broker_offers_all_that_an_agent_asks(broker: MigratingBroker) -> None:
    assert isinstance(broker, Migrating)


def test_resources_come_first_and_are_made_once(
    blue: Town, green: Town, broker: MigratingBroker, client: Client
) -> None:
    attached(client, Inbox(), "one")
    attached(client, Inbox(), "two")
    for _ in range(2):
        broker.create_on(green.urls, TOPIC)
    assert green.homes[0].broker.backlog(TOPIC) == {"one": 0, "two": 0}
    assert stood(blue).standing == "active"


def test_green_is_asked_at_any_of_its_brokers(
    green: Town, broker: MigratingBroker, client: Client
) -> None:
    attached(client, Inbox())
    green.give(green.homes[1])
    broker.create_on(green.urls, TOPIC)
    assert green.homes[1].broker.backlog(TOPIC) == {"s": 0}
    green.give(green.homes[0])
    green.homes[1].kill()
    broker.create_on(green.urls, TOPIC)


def test_an_example_cluster_can_be_green_of_a_plan(blue: Town, green: Town) -> None:
    """By all that the control plane asks before it begins."""
    own = [home.name for home in blue.homes]
    assert list(green_flaws(green.urls, own, ["t"], ask, Going("t/ns"))) == []
    assert list(green_notes(green.urls, 1.0, 0.85, ask)) == []
    [(rule, said)] = green_flaws(blue.urls, own, ["t"], ask, Going("t/ns"))
    assert (rule, said.endswith("green is blue")) == ("invalid-target", True)


def test_where_clients_would_be_sent_must_be_green(tmp_path: Path, blue: Town, green: Town) -> None:
    """They would come back here for ever, or create their topics again on a third cluster."""
    own = [host for home in blue.homes for host in (home.name, home.url.partition("://")[2])]
    again = blue.homes[1].url.replace(LOOPBACK, "localhost")

    def flaws(url: str) -> list[tuple[str, str]]:
        to = Target(serviceUrl=green.urls.serviceUrl, brokerServiceUrl=url)
        return [(rule, said) for rule, said in green_flaws(to, own, ["t"], ask, Going("t/ns"))]

    assert flaws(green.url) == flaws(green.homes[1].url.replace(LOOPBACK, "localhost")) == []
    assert flaws(again) == [
        (
            "invalid-target",
            f"brokerServiceUrl: {again} is a broker of the cluster that is left, by another name: "
            "green is blue",
        )
    ]
    with town(tmp_path, "teal") as teal:
        [(rule, said)] = flaws(teal.url)
    assert rule == "invalid-target"
    assert said.startswith(
        f"brokerServiceUrl: {teal.url} is not what green says of itself: {green.url}; "
    )
    for home in green.homes:
        home.server.stop()
    assert flaws(green.url) == [
        ("unreachable-target", f"brokerServiceUrl: nobody listens at {green.url}")
    ]


def test_green_that_does_not_answer_or_serves_nothing_is_a_reason(
    green: Town, broker: MigratingBroker, client: Client
) -> None:
    attached(client, Inbox())
    green.give(None)
    with pytest.raises(CannotMigrate, match="503"):
        broker.create_on(green.urls, TOPIC)
    for home in green.homes:
        home.kill()
    with pytest.raises(CannotMigrate, match="green does not answer"):
        broker.create_on(green.urls, TOPIC)


def test_producers_are_redirected_at_once_and_consumers_when_they_are_done(
    green: Town, broker: MigratingBroker, client: Client
) -> None:
    slow = Inbox(acknowledges=False)
    consumer = attached(client, slow)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    arrived(slow, 1)
    broker.create_on(green.urls, TOPIC)
    broker.terminate(TOPIC, green.urls)
    eventually(lambda: client.redirects, "the producer is told without asking", 20)
    send(client, producer, 1)
    all_stored(producer)
    with pytest.raises(CannotMigrate, match="has 1 entries left"):
        broker.redirect(TOPIC, "s", green.urls)
    assert consumer.cluster == "blue"
    client.acknowledge(consumer, 0)
    eventually(lambda: broker.backlog(TOPIC) == {"s": 0}, "it is done", 20)
    broker.redirect(TOPIC, "s", green.urls)
    broker.redirect(TOPIC, "s", green.urls)
    arrived(slow, 2)
    assert (consumer.cluster, slow.got) == ("green", texts(0, 1))
    assert broker.backlog(TOPIC) == {}


def test_a_redirect_names_the_producer_or_the_consumer_and_every_url_of_green(
    blue: Town, green: Town, broker: MigratingBroker
) -> None:
    """On a bare connection, as a client that is written from scratch would read it."""
    port = blue.homes[0].server.port
    with socket.create_connection((LOOPBACK, port), 20) as line, line.makefile("rb") as lines:
        asked = (Connect(VERSION, "bare"), Produce(TOPIC, "p"), Subscribe(TOPIC, "s"))
        line.sendall(encode(asked))
        said = of_broker([lines.readline() for _ in asked])
        assert [type(each) for each in said] == [Connected, Producing, Subscribed]
        broker.create_on(green.urls, TOPIC)
        broker.terminate(TOPIC, green.urls)
        assert of_broker([lines.readline()]) == [Migrated(TOPIC, "p", Part.PRODUCER, green.urls)]
        broker.redirect(TOPIC, "s", green.urls)
        assert of_broker([lines.readline()]) == [Migrated(TOPIC, "s", Part.CONSUMER, green.urls)]
    urls = green.urls.urls()
    assert urls.keys() == {"serviceUrl", "brokerServiceUrl", "brokerServiceUrlTls"}


def test_a_next_owner_that_is_told_before_it_serves_does_it_with_its_first_change(
    blue: Town, green: Town, broker: MigratingBroker, client: Client
) -> None:
    """As after a crash between the record and what follows from it."""
    inbox, _, producer = talking(client)
    broker.create_on(green.urls, TOPIC)
    other = blue.homes[1].broker
    other.terminate(TOPIC, green.urls)
    assert stood(blue).standing == "active"
    blue.give(blue.homes[1])
    send(client, producer, 1)
    arrived(inbox, 2)
    assert (stood(blue).standing, stood(green).next) == ("terminated", 1)
    other.remove(TOPIC, green.urls)
    other.remove(TOPIC, green.urls)
    other.terminate(TOPIC, green.urls)
    assert other.topics_of(BUNDLE) == []
    blue.give(blue.homes[0])
    with pytest.raises(CannotMigrate, match="not served here"):
        other.backlog(TOPIC)


def test_what_a_rollback_left_to_the_next_owner_is_done_when_it_lists_its_topics(
    blue: Town, green: Town, broker: MigratingBroker, client: Client
) -> None:
    attached(client, Inbox())
    broker.create_on(green.urls, TOPIC)
    broker.terminate(TOPIC, green.urls)
    broker.remove(TOPIC, green.urls)
    other = blue.homes[1].broker
    other.reopen(TOPIC)
    blue.give(blue.homes[1])
    assert other.topics_of(BUNDLE) == [TOPIC]
    assert stood(blue).standing == "active"


def test_a_bundle_that_leaves_takes_what_was_told_of_its_topics_with_it(
    blue: Town, green: Town, client: Client
) -> None:
    attached(client, Inbox())
    other = blue.homes[1].broker
    other.terminate(TOPIC, green.urls)
    other.hold(TOPIC)
    other.unload(BUNDLE)
    other.load(BUNDLE)
    blue.give(blue.homes[1])
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    all_stored(producer)
    assert stood(blue).next == 1


def test_a_topic_that_green_has_not_written_comes_back_with_its_clients(
    blue: Town, green: Town, broker: MigratingBroker, client: Client
) -> None:
    inbox, consumer, producer = talking(client)
    moved(broker, green, consumer)
    for _ in range(2):
        assert broker.take_back(TOPIC, green.urls)
    broker.reopen(TOPIC)
    eventually(lambda: consumer.cluster == "blue" and client.place_of(consumer), "it is back", 30)
    send(client, producer, 1)
    arrived(inbox, 2)
    assert inbox.got == texts(0, 1)
    assert stood(blue).written
    assert not stood(green).written
    # And off again: green makes it again.
    moved(broker, green, consumer)
    send(client, producer, 2)
    arrived(inbox, 3)
    assert inbox.got == texts(0, 1, 2)
    assert not broker.take_back(TOPIC, green.urls)
    send(client, producer, 3)
    arrived(inbox, 4)


def moved(broker: MigratingBroker, green: Town, consumer: Consumer) -> None:
    """Take the topic over whole, with its consumer."""
    broker.create_on(green.urls, TOPIC)
    broker.terminate(TOPIC, green.urls)
    eventually(lambda: broker.backlog(TOPIC) == {"s": 0}, "it is drained", 20)
    broker.redirect(TOPIC, "s", green.urls)
    broker.remove(TOPIC, green.urls)
    eventually(lambda: consumer.cluster == "green", "it is on green", 20)


def test_a_green_that_knows_no_give_back_keeps_its_topics(
    broker: MigratingBroker, client: Client
) -> None:
    """As a real Pulsar: nothing is ended there that could have been written."""
    attached(client, Inbox())
    with ThreadingHTTPServer((LOOPBACK, 0), BaseHTTPRequestHandler) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        target = Target(serviceUrl=f"http://{LOOPBACK}:{other.server_address[1]}")
        with pytest.raises(CannotMigrate, match="give-back: 501"):
            broker.take_back(TOPIC, target)
        other.shutdown()


@pytest.mark.parametrize("says", [[], {"ended": 1}, "ended"])
def test_a_green_that_answers_something_else_keeps_its_topics(
    broker: MigratingBroker, client: Client, says: object
) -> None:
    """The agent's thread goes on: it is a step that failed."""
    attached(client, Inbox())
    path = f"{TOPIC.replace('://', '/')}/give-back"
    with answering({path: says}) as url, pytest.raises(CannotMigrate, match="does not say whether"):
        broker.take_back(TOPIC, Target(serviceUrl=url))


def test_what_another_region_sends_goes_to_green_and_is_read_in_order(
    green: Town, broker: MigratingBroker, client: Client
) -> None:
    """Its replicator is a producer as others are."""
    inbox = Inbox(acknowledges=False)
    consumer = attached(client, inbox)
    replicator = client.producer(TOPIC, "pulsar.repl.west")
    send(client, replicator, 0)
    arrived(inbox, 1)
    broker.create_on(green.urls, TOPIC)
    broker.terminate(TOPIC, green.urls)
    send(client, replicator, 1)
    all_stored(replicator)
    assert stood(green).next == 1
    client.acknowledge(consumer, 0)
    eventually(lambda: broker.backlog(TOPIC) == {"s": 0}, "it is drained", 20)
    broker.redirect(TOPIC, "s", green.urls)
    arrived(inbox, 2)
    assert inbox.got == texts(0, 1)


def test_producers_wait_while_other_regions_lack_messages(
    green: Town, broker: MigratingBroker, client: Client
) -> None:
    region = Inbox(acknowledges=False)
    replicator = attached(client, region, "pulsar.repl.west")
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    arrived(region, 1)
    assert broker.replication_backlog(TOPIC) == {"west": 1}
    broker.hold(TOPIC)
    send(client, producer, 1)
    eventually(lambda: producer.failures, "it is put off", 20)
    client.acknowledge(replicator, 0)
    eventually(lambda: broker.replication_backlog(TOPIC) == {"west": 0}, "the region has all", 20)
    broker.create_on(green.urls, TOPIC)
    broker.terminate(TOPIC, green.urls)
    all_stored(producer)
    assert stood(green).next == 1
    assert region.got == texts(0)


def test_a_subscription_that_began_on_green_comes_back_with_its_topic(
    blue: Town, green: Town, broker: MigratingBroker, client: Client
) -> None:
    """Its consumer, away for a restart, missed all that was written until it was back."""
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    all_stored(producer)
    broker.create_on(green.urls, TOPIC)
    broker.terminate(TOPIC, green.urls)
    with Client(blue.url, "new") as other:
        began = other.consumer(TOPIC, "began", Inbox())
        eventually(lambda: other.place_of(began), "it is attached on green", 20)
    broker.remove(TOPIC, green.urls)
    # Again: the answer may be lost.
    for _ in range(2):
        assert broker.take_back(TOPIC, green.urls)
    broker.reopen(TOPIC)
    send(client, producer, 1, 2)
    all_stored(producer)
    inbox = Inbox()
    client.consumer(TOPIC, "began", inbox)
    arrived(inbox, 2)
    assert inbox.got == texts(1, 2)


def test_a_green_that_is_blue_gets_no_topic_and_gives_back_all(
    blue: Town, broker: MigratingBroker, client: Client
) -> None:
    """The plan refuses it; what was begun all the same ended nowhere, and a rollback left it so."""
    inbox, _, producer = talking(client)
    with pytest.raises(CannotMigrate, match="green is the cluster that is left"):
        broker.create_on(blue.urls, TOPIC)
    assert stood(blue).standing == "active"
    broker.terminate(TOPIC, blue.urls)
    broker.redirect(TOPIC, "s", blue.urls)
    broker.remove(TOPIC, blue.urls)
    assert broker.take_back(TOPIC, blue.urls)
    broker.reopen(TOPIC)
    send(client, producer, 1)
    arrived(inbox, 2)
    assert inbox.got == texts(0, 1)


def test_a_topic_that_blue_has_lost_is_served_by_green_again(
    blue: Town, green: Town, broker: MigratingBroker, client: Client
) -> None:
    """Green may have ended it already, and an answer been lost: nobody would serve it."""
    inbox = Inbox()
    consumer = attached(client, inbox)
    moved(broker, green, consumer)
    lose(blue.path)
    for ended in (False, True):
        if ended:
            assert green.homes[0].broker.give_back(TOPIC, blue.urls).ended
        with pytest.raises(TopicLost, match=f"{TOPIC} is not in the file of blue"):
            broker.take_back(TOPIC, green.urls)
        assert stood(green).standing == "active"
        assert green.homes[0].broker.backlog(TOPIC) == {"s": 0}
    blue.give(None)
    # The broker that serves it may know it.
    with pytest.raises(CannotMigrate, match="not served here"):
        broker.take_back(TOPIC, green.urls)


def test_a_green_that_does_not_look_itself_is_asked_for_messages_of_before(
    broker: MigratingBroker, client: Client
) -> None:
    """As Pulsar: it only says that the topic is there."""
    attached(client, Inbox())
    path = TOPIC.replace("://", "/")
    there = {path: 409, f"{path}/stats": {"msgInCounter": 3}}
    made = {"tenants/t": 204, "namespaces/t/ns": 409}
    says = "has a topic of this name with 3 messages"
    with answering(made | there) as url, pytest.raises(CannotMigrate, match=says):
        broker.create_on(Target(serviceUrl=url), TOPIC)


def lose(file: Path) -> None:
    """As a disk does that is restored without the newest topics."""
    with closing(sqlite3.connect(file)) as topics:
        topics.execute("DELETE FROM topics WHERE name = ?", (TOPIC,))
        topics.commit()


def test_a_topic_that_somebody_tried_on_green_does_not_begin_until_it_is_deleted_there(
    blue: Town, green: Town, broker: MigratingBroker, client: Client
) -> None:
    """Green took blue's messages for those of the trial, with a receipt for each."""
    with Client(green.url, "trial") as other:
        trial = other.producer(TOPIC, "p")
        send(other, trial, *range(100, 110))
        all_stored(trial)
    inbox, consumer, producer = talking(client)
    for _ in range(2):
        with pytest.raises(CannotMigrate, match=r"has 10 messages .*: delete"):
            broker.create_on(green.urls, TOPIC)
    assert stood(blue).standing == "active"
    with urlopen(deletion(green), timeout=20) as answer:
        assert answer.status == 204
    # Again, as the next owner does: it is of this migration now.
    for _ in range(2):
        broker.create_on(green.urls, TOPIC)
    broker.terminate(TOPIC, green.urls)
    send(client, producer, 1, 2)
    eventually(lambda: broker.backlog(TOPIC) == {"s": 0}, "it is drained", 20)
    broker.redirect(TOPIC, "s", green.urls)
    arrived(inbox, 3)
    assert (inbox.got, consumer.cluster) == (texts(0, 1, 2), "green")
    # Its record may be lost, and what its producers write there is its own.
    broker.create_on(green.urls, TOPIC)
    with pytest.raises(HTTPError, match="412"):
        urlopen(deletion(blue), timeout=20)


def test_the_server_that_does_not_answer_is_named_and_not_the_one_that_leads_there(
    green: Town, broker: MigratingBroker, client: Client
) -> None:
    talking(client)
    dead, leads = green.homes
    dead.kill()
    with pytest.raises(CannotMigrate, match=f"{dead.web}: .*refused") as raised:
        broker.create_on(Target(serviceUrl=leads.web), TOPIC)
    assert leads.web not in str(raised.value)


def test_an_admin_path_that_names_no_topic_is_refused(blue: Town) -> None:
    asked = Request(f"{blue.homes[0].web}/admin/v2/persistent/t/ns/", method="PUT")
    with pytest.raises(HTTPError, match="412"):
        urlopen(asked, timeout=20)


def deletion(of: Town) -> Request:
    """As Pulsar's command asks for it."""
    path = "/admin/v2/persistent/t/ns/orders?force=true"
    return Request(f"{of.homes[0].web}{path}", method="DELETE")


def test_a_consumer_reads_a_topic_that_was_deleted_and_created_again_from_its_beginning(
    green: Town,
) -> None:
    with Client(green.url, "trial") as client:
        inbox, _, producer = talking(client)
        send(client, producer, 1)
        arrived(inbox, 2)
        assert green.homes[0].broker.delete(TOPIC)
        eventually(lambda: green.homes[0].broker.desk.find(TOPIC), "it is made again", 20)
        eventually(lambda: green.homes[0].broker.backlog(TOPIC) == {"s": 0}, "with its reader", 20)
        send(client, producer, 2)
        arrived(inbox, 3)
    assert inbox.got == texts(0, 1, 2)


def test_no_subscription_is_made_while_a_topic_is_held(
    green: Town, broker: MigratingBroker, client: Client
) -> None:
    """Green has those that there were: what is written there would be lost for this one."""
    first, late = Inbox(), Inbox()
    attached(client, first, "first")
    broker.create_on(green.urls, TOPIC)
    broker.hold(TOPIC)
    consumer = client.consumer(TOPIC, "late", late)
    eventually(lambda: consumer.failures, "it is put off", 20)
    assert broker.backlog(TOPIC).keys() == {"first"}
    broker.terminate(TOPIC, green.urls)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    all_stored(producer)
    eventually(lambda: green.homes[0].broker.backlog(TOPIC).keys() == {"first", "late"}, "both", 20)


@pytest.mark.parametrize("seed", range(3))
def test_topics_migrate_while_brokers_of_both_clusters_die(
    tmp_path: Path, blue: Town, green: Town, client: Client, seed: int
) -> None:
    trip = Trip(tmp_path, blue, green, client, seed)
    mover = Mover(blue, green, trip.names)
    trip.until(lambda: mover.count(At.GREEN) == len(trip.names), mover.step)
    verdict = trip.settle()
    assert verdict.ok, verdict
    assert trip.kills
    eventually(lambda: trip.crowd.clusters() == {"green": len(trip.names)}, "all are on green", 30)
    assert trip.blue.homes[0].broker.topics_of(BUNDLE) == []


@pytest.mark.parametrize("seed", range(2))
def test_a_rollback_half_way_brings_back_what_green_has_not_written(
    tmp_path: Path, blue: Town, green: Town, client: Client, seed: int
) -> None:
    trip = Trip(tmp_path, blue, green, client, seed)
    mover = Mover(blue, green, trip.names)
    loud = trip.names[:6]
    trip.until(lambda: mover.count(At.GREEN) >= 6, mover.step, loud)

    def judged() -> bool:
        return all(each is At.BLUE or name in mover.stays for name, each in mover.at.items())

    trip.until(judged, mover.back, loud)
    trip.until(lambda: all(mover.at[each] is At.GREEN for each in mover.stays), mover.finish, loud)
    verdict = trip.settle()
    assert verdict.ok, verdict
    assert mover.stays <= set(loud)
    at_blue = set(trip.names) - mover.stays
    right = {name: "blue" if name in at_blue else "green" for name in trip.names}
    eventually(
        lambda: {each.topic: each.cluster for each in trip.crowd.consumers} == right,
        "all are where they belong",
        30,
    )
    there = green.homes[0].broker
    assert not any(there.known(each).written for each in there.topics_of(BUNDLE) if each in at_blue)


class RedirectsTooEarly(MigratingBroker):
    """Broken: what a subscription has still to read does not count."""

    def backlog(self, topic: str) -> dict[str, int]:
        with self._changing(topic) as known:
            left = self.desk.log.backlogs(known)
            for name in left:
                self.desk.log.acknowledge(known, name, known.next)
        return dict.fromkeys(left, 0)


class ForgetsWhatIsStored(MigratingBroker):
    """Broken: its redirects do not say what is stored here already."""

    def terminate(self, topic: str, target: Target) -> None:
        with self._changing(topic) as known:
            self.desk.log._file.execute("DELETE FROM producers WHERE topic = ?", (known.id,))
        super().terminate(topic, target)


class TakesBackWhatIsWritten(MigratingBroker):
    """Broken: it does not ask green."""

    def take_back(self, topic: str, target: Target) -> bool:  # noqa: ARG002 - as broken
        return True


@pytest.mark.parametrize(("kind", "fault"), [(MigratingBroker, ""), (RedirectsTooEarly, "lost")])
def test_a_consumer_that_is_away_loses_nothing(
    tmp_path: Path, green: Town, kind: type[MigratingBroker], fault: str
) -> None:
    with town(tmp_path, "blue", kind=kind) as blue:
        diary, names = Diary(tmp_path / "diary"), [TOPIC]
        with Client(blue.url, "reader") as reader:
            crowd = Crowd(reader, names, diary)
            eventually(lambda: crowd.attached() == 1, "its subscription is made", 20)
        mover = Mover(blue, green, names)
        with Client(blue.url, "writer") as writer:
            sender = Crowd(writer, [], diary)
            sender.begin(names)
            sender.send(5, names)
            eventually(lambda: sender.unstored() == 0, "five are stored", 20)
            for _ in range(4):
                mover.step(TOPIC)
            assert (mover.at[TOPIC] is At.GREEN) == bool(fault)
            sender.send(5, names)
            eventually(lambda: sender.unstored() == 0, "five more are stored", 20)
        with Client(blue.url, "reader") as reader:
            crowd = Crowd(reader, names, diary)
            while mover.at[TOPIC] is not At.GREEN:
                mover.step(TOPIC)
            eventually(lambda: crowd.got() >= 5, "what is there has come", 20)
            if not fault:
                eventually(lambda: crowd.got() == 10, "all has come", 20)
        diary.close()
        assert faults(tmp_path) == ({fault: 5} if fault else {})


@pytest.mark.parametrize(
    ("kind", "fault"), [(MigratingBroker, ""), (ForgetsWhatIsStored, "duplicated")]
)
def test_what_is_stored_without_a_receipt_is_not_stored_again(
    tmp_path: Path, green: Town, kind: type[MigratingBroker], fault: str
) -> None:
    with (
        town(tmp_path, "blue", brokers=1, kind=kind) as blue,
        Proxy(int(blue.url.rpartition(":")[2])) as link,
        Client(f"pulsar://{LOOPBACK}:{link.port}", "crowd") as client,
    ):
        diary, names = Diary(tmp_path / "diary"), [TOPIC]
        crowd = Crowd(client, names, diary)
        eventually(lambda: crowd.attached() == 1, "its consumer is attached", 20)
        crowd.begin()
        crowd.send(1)
        eventually(lambda: crowd.missing() == 0, "it has come", 20)
        link.hold(up=False)
        crowd.send(5)
        broker = blue.homes[0].broker
        eventually(lambda: broker.known(TOPIC).next == 6, "five more are stored", 20)
        broker.create_on(green.urls, TOPIC)
        broker.terminate(TOPIC, green.urls)
        link.cut()
        link.release()
        link.mend()
        mover = Mover(blue, green, names)
        mover.at[TOPIC] = At.TERMINATED

        def is_moved() -> bool:
            mover.step(TOPIC)
            return mover.at[TOPIC] is At.GREEN and crowd.missing() == 0

        eventually(is_moved, "all have come", 20)
        eventually(lambda: crowd.got() >= (11 if fault else 6), "and come again", 20)
        diary.close()
        assert faults(tmp_path) == ({fault: 5} if fault else {})


@pytest.mark.parametrize(
    ("kind", "fault"), [(MigratingBroker, ""), (TakesBackWhatIsWritten, "lost")]
)
def test_what_green_has_taken_is_read_after_a_rollback(
    tmp_path: Path, green: Town, kind: type[MigratingBroker], fault: str
) -> None:
    with town(tmp_path, "blue", kind=kind) as blue:
        diary, names = Diary(tmp_path / "diary"), [TOPIC]
        with Client(blue.url, "reader") as reader:
            crowd = Crowd(reader, names, diary)
            eventually(lambda: crowd.attached() == 1, "its subscription is made", 20)
        mover = Mover(blue, green, names)
        while mover.at[TOPIC] is not At.GREEN:
            mover.step(TOPIC)
        with Client(blue.url, "writer") as writer:
            sender = Crowd(writer, [], diary)
            sender.begin(names)
            sender.send(3, names)
            eventually(lambda: sender.unstored() == 0, "three are on green", 20)
        mover.back(TOPIC)
        assert mover.stays == (set() if fault else {TOPIC})
        with Client(blue.url, "back") as client:
            crowd = Crowd(client, names, diary)
            eventually(lambda: crowd.attached() == 1, "it is attached again", 20)
            if not fault:
                eventually(lambda: crowd.got() == 3, "three have come", 20)
        diary.close()
        assert faults(tmp_path) == ({fault: 3} if fault else {})


def faults(folder: Path) -> dict[str, int]:
    """The kinds of faults that the checker finds in a diary, with their numbers."""
    verdict = judge(read([folder / "diary"]), [SUBSCRIPTION])
    return {kind: len(found) for kind, found in verdict.faults() if found}


def test_the_stats_of_a_topic_say_that_it_has_migrated(
    blue: Town, green: Town, broker: MigratingBroker, client: Client
) -> None:
    slow = Inbox(acknowledges=False)
    attached(client, slow)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    arrived(slow, 1)
    assert stats(blue) == {
        "msgInCounter": 1,
        "migrated": False,
        "subscriptions": {"s": {"msgBacklog": 1}},
    }
    broker.create_on(green.urls, TOPIC)
    broker.terminate(TOPIC, green.urls)
    assert stats(blue)["migrated"] is True
    assert stats(green)["migrated"] is False


def stats(of: Town) -> dict[str, object]:
    with urlopen(f"{of.homes[0].web}/admin/v2/persistent/t/ns/orders/stats", timeout=20) as answer:
        found: dict[str, object] = json.load(answer)
    return found


def test_a_report_has_the_traffic_of_each_bundle(broker: MigratingBroker, client: Client) -> None:
    inbox = Inbox()
    attached(client, inbox)
    producer = client.producer(TOPIC, "p")
    send(client, producer, *range(20))
    arrived(inbox, 20)
    stats = broker.load_report().last_stats
    assert isinstance(stats, dict)
    assert stats[BUNDLE].msg_rate_in > 0
    assert stats[BUNDLE].msg_rate_out == stats[BUNDLE].msg_rate_in
    assert broker.load_report().msg_rate_in == 0
