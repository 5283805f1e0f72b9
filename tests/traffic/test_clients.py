"""Producers and consumers on real connections, whose brokers come and go."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from simulation.traffic.client import Client, TooOld
from simulation.traffic.frames import (
    VERSION,
    Connect,
    Elsewhere,
    FromBroker,
    Part,
    Produce,
    Producing,
    Receipt,
    Retry,
    encode,
    of_broker,
)
from simulation.traffic.producer import Producer
from simulation.traffic.standing import Step
from tests.support.waiting import eventually
from tests.traffic.inbox import Inbox, all_stored, arrived, attached, send, talking, texts
from tests.traffic.town import BUNDLE, TOPIC, Home, Town, town
from trimtab.migration.migration import Target


def home(of: Town, number: int) -> Home:
    return of.homes[number]


def test_what_is_sent_arrives_once_and_in_order(client: Client) -> None:
    inbox, stored = Inbox(), list[str]()
    attached(client, inbox)
    producer = client.producer(TOPIC, "p", stored.append)
    send(client, producer, *range(500))
    arrived(inbox, 500)
    assert inbox.got == texts(*range(500))
    all_stored(producer)
    assert stored == texts(*range(500))


def test_a_consumer_gets_no_more_than_it_can_hold(client: Client) -> None:
    inbox = Inbox(acknowledges=False)
    consumer = attached(client, inbox)
    producer = client.producer(TOPIC, "p")
    send(client, producer, *range(250))
    all_stored(producer)
    eventually(lambda: len(inbox.got) == 100, "a window of messages", 20)
    client.acknowledge(consumer, 99)
    eventually(lambda: len(inbox.got) == 200, "another one", 20)
    assert inbox.got == texts(*range(200))


def test_clients_are_sent_to_the_owner_by_other_brokers(blue: Town, client: Client) -> None:
    for number in (0, 1):
        blue.give(home(blue, number))
        inbox = Inbox()
        attached(client, inbox, f"s-{number}")
        send(client, client.producer(TOPIC, f"p-{number}"), number)
        arrived(inbox, 1)
        assert inbox.got == texts(number)


def test_clients_follow_a_topic_that_moves_while_they_send(blue: Town, client: Client) -> None:
    inbox = Inbox()
    attached(client, inbox)
    producer = client.producer(TOPIC, "p")
    for number in range(60):
        if number % 20 == 10:
            blue.give(home(blue, number // 20 % 2))
        send(client, producer, number)
    arrived(inbox, 60)
    assert inbox.got == texts(*range(60))


def test_a_consumer_that_only_waits_notices_that_its_broker_has_lost_the_topic(
    blue: Town, client: Client
) -> None:
    inbox = Inbox()
    consumer = attached(client, inbox)
    before = client.place_of(consumer)
    blue.give(home(blue, 1))
    place = eventually(lambda: client.place_of(consumer) not in (None, before), "it moved", 20)
    assert place


def test_clients_find_another_broker_when_theirs_is_gone(blue: Town, client: Client) -> None:
    inbox, _, producer = talking(client)
    gone = home(blue, 0)
    gone.kill()
    send(client, producer, 1)
    # The records still name the one that is gone: its clients say that it does not answer.
    avoided = eventually(lambda: blue.avoided, "somebody says so", 20)
    assert {each.broker for each in avoided} == {gone.name}
    blue.give(home(blue, 1))
    arrived(inbox, 2)
    assert inbox.got == texts(0, 1)


def test_a_second_consumer_of_a_subscription_takes_over(client: Client) -> None:
    first, second = Inbox(), Inbox()
    attached(client, first)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    arrived(first, 1)
    with Client(client._home, "second") as other:
        other.consumer(TOPIC, "s", second)
        # Both want it: each takes over from the other, and what arrives comes to one of them.
        send(client, producer, 1, 2, 3)
        eventually(lambda: len(first.got) + len(second.got) >= 4, "all messages", 20)
    assert {*first.got, *second.got} == set(texts(0, 1, 2, 3))


def test_a_producer_that_is_made_again_numbers_on(blue: Town) -> None:
    got = Inbox()
    with Client(blue.url, "reader") as reader:
        attached(reader, got)
        for start in (0, 3):
            with Client(blue.url, "writer") as writer:
                producer = writer.producer(TOPIC, "p")
                send(writer, producer, start, start + 1, start + 2)
                all_stored(producer)
        arrived(got, 6)
    assert got.got == texts(*range(6))


def test_a_client_that_is_too_old_is_told_the_version_that_it_needs(tmp_path: Path) -> None:
    with (
        town(tmp_path, "strict", needs=3) as one,
        Client(one.url, "old", version=2) as old,
    ):
        producer = old.producer(TOPIC, "p")
        refused = eventually(lambda: old.refused, "it is refused", 20)
        assert "version 2 is too old" in str(refused)
        assert "takes 3 and later" in str(refused)
        with pytest.raises(TooOld):
            old.send(producer, "k", "v")


def test_what_is_no_client_is_cut_off(blue: Town) -> None:
    for said in (b"GET / HTTP/1.1\r\n\r\n", b'{"is":"ack"}\n', b'{"is":"send"}\n', b"\xff\n"):
        with socket.create_connection(("127.0.0.1", home(blue, 0).server.port), 5) as line:
            line.sendall(said)
            assert line.recv(1) == b""


SHORT = "t/ns/orders"


def conversation(of: Town, *lines: bytes) -> list[FromBroker]:
    """What a broker says to each line of a client that is written from scratch."""
    address = ("127.0.0.1", home(of, 0).server.port)
    with socket.create_connection(address, 5) as line, line.makefile("rb") as said:
        line.sendall(encode([Connect(VERSION, "bare")]) + b"".join(each + b"\n" for each in lines))
        return of_broker([said.readline() for _ in range(len(lines) + 1)])[1:]


def test_a_topic_is_one_by_its_short_and_by_its_whole_name(blue: Town, client: Client) -> None:
    inbox = Inbox()
    attached(client, inbox)
    producer = client.producer(SHORT, "p")
    send(client, producer, 0)
    all_stored(producer)
    opened = f'{{"is":"produce","topic":"{SHORT}","name":"bare"}}'
    sent = f'{{"is":"send","topic":"{SHORT}","name":"bare","sequence":0,"key":"","value":"1"}}'
    answers = conversation(blue, opened.encode(), sent.encode())
    assert set(answers) == {Producing(TOPIC, "bare", -1), Receipt(TOPIC, "bare", 0)}
    arrived(inbox, 2)
    assert list(home(blue, 0).broker.topics_of(BUNDLE)) == [TOPIC]


@pytest.mark.parametrize(
    ("kind", "part", "wrong", "says"),
    [
        ("produce", Part.PRODUCER, '"topic":"a/b","avoid":null', "is not topic or tenant"),
        ("produce", Part.PRODUCER, f'"topic":"{TOPIC}","avoid":"b:1"', r"\$\.avoid"),
        ("subscribe", Part.CONSUMER, f'"topic":"{TOPIC}","avoid":["b:1",7]', r"\$\.avoid"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_the_reason_and_the_rest_goes_on(
    blue: Town, kind: str, part: Part, wrong: str, says: str
) -> None:
    """The connection serves other topics of the client too."""
    asked = f'{{"is":"{kind}","name":"x",{wrong}}}'
    fine = f'{{"is":"produce","topic":"{TOPIC}","name":"p","avoid":["127.0.0.1:1",[1,2]]}}'
    refused, opened = conversation(blue, asked.encode(), fine.encode())
    assert isinstance(refused, Retry)
    assert (refused.name, refused.part) == ("x", part)
    assert re.search(says, refused.says)
    assert opened == Producing(TOPIC, "p", -1)


def test_a_client_waits_until_it_is_known_where_clients_find_the_owner(blue: Town) -> None:
    """The owner's id is the address of its admin interface."""
    blue.give(home(blue, 1))
    blue.tells_urls = False
    asked = encode([Produce(TOPIC, "p")]).strip()
    [answer] = conversation(blue, asked)
    assert isinstance(answer, Retry)
    assert answer.says == f"{home(blue, 1).name} has not said yet where clients find it"
    blue.tells_urls = True
    [answer] = conversation(blue, asked)
    assert isinstance(answer, Elsewhere)
    assert answer.url == home(blue, 1).url


def closed_on(blue: Town, green: Town, *steps: Step) -> None:
    """Take a topic through steps as an agent does, and leave its clients to find out."""
    log = home(blue, 0).log
    with home(blue, 0).broker.desk.lock, log.transaction():
        topic = log.find(TOPIC, blue.epoch)
        assert topic is not None
        for step in steps:
            topic = log.step(topic, step, green.urls)


def terminated_after_one(blue: Town, green: Town, client: Client) -> Producer:
    """The client's producer of a topic that was terminated after its first message."""
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    all_stored(producer)
    closed_on(blue, green, Step.TERMINATE)
    return producer


def test_a_producer_is_redirected_at_once_and_sends_nothing_twice(
    blue: Town, green: Town, client: Client
) -> None:
    producer = client.producer(TOPIC, "p")
    send(client, producer, *range(50))
    eventually(lambda: home(blue, 0).log.names(BUNDLE), "it exists", 20)
    closed_on(blue, green, Step.TERMINATE)
    send(client, producer, *range(50, 100))
    all_stored(producer)
    here, there = (home(each, 0).log.read(TOPIC, 0, 200) for each in (blue, green))
    assert [entry.value for entry in (*here, *there)] == texts(*range(100))
    assert there
    assert client.redirects == {(TOPIC, ""): green.url}


def test_a_consumer_reads_the_rest_before_it_is_redirected(
    blue: Town, green: Town, client: Client
) -> None:
    slow = Inbox(acknowledges=False)
    consumer = attached(client, slow)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0, 1)
    eventually(lambda: len(slow.got) == 2, "two messages", 20)
    with home(green, 0).broker.desk.lock, home(green, 0).log.transaction():
        topic = home(green, 0).log.make(TOPIC, green.epoch)
        home(green, 0).log.subscribe(topic, "s", 0)
    closed_on(blue, green, Step.TERMINATE)
    send(client, producer, 2)
    all_stored(producer)
    # Its broker closes it; it comes again, and is taken, as it has not done with what is here.
    home(blue, 0).broker.desk.attached.close_where(lambda _: True, "for this test")
    eventually(lambda: client.place_of(consumer), "it is attached again", 20)
    assert consumer.cluster == "blue"
    client.acknowledge(consumer, 1)
    eventually(lambda: home(blue, 0).broker.backlog(TOPIC) == {"s": 0}, "it is drained", 20)
    home(blue, 0).broker.desk.attached.close_where(lambda _: True, "for this test")
    eventually(lambda: len(slow.got) == 3, "the message on the other cluster", 20)
    assert consumer.cluster == "green"
    assert slow.got == texts(0, 1, 2)


def test_a_new_subscription_of_a_terminated_topic_is_made_on_the_other_cluster(
    blue: Town, green: Town, client: Client
) -> None:
    terminated_after_one(blue, green, client)
    inbox = Inbox()
    assert attached(client, inbox).cluster == "green"


def test_a_new_producer_of_a_terminated_topic_is_redirected_when_it_is_opened(
    blue: Town, green: Town, client: Client
) -> None:
    """Its broker decides, not a message that it sends."""
    terminated_after_one(blue, green, client)
    with Client(blue.url, "late") as late:
        other = late.producer(TOPIC, "q")
        eventually(lambda: late.place_of(other), "it is open", 20)
        assert late.redirects == {(TOPIC, ""): green.url}
        send(late, other, 1)
        all_stored(other)
    here, there = (home(each, 0).log.read(TOPIC, 0, 9) for each in (blue, green))
    assert ([e.value for e in here], [e.value for e in there]) == (texts(0), texts(1))


def test_a_broker_that_starts_again_redirects_as_before(
    blue: Town, green: Town, client: Client
) -> None:
    """It has it from its storage: no agent says it again."""
    terminated_after_one(blue, green, client)
    for each in blue.homes:
        each.kill()
        each.start()
    with Client(blue.url, "late") as late:
        other = late.producer(TOPIC, "q")
        send(late, other, 1)
        all_stored(other)
    here, there = (home(each, 0).log.read(TOPIC, 0, 9) for each in (blue, green))
    assert ([e.value for e in here], [e.value for e in there]) == (texts(0), texts(1))


def test_a_new_topic_of_a_migrated_scope_is_made_on_the_other_cluster(
    blue: Town, green: Town, client: Client
) -> None:
    blue.new_topics = green.urls
    inbox = Inbox()
    assert attached(client, inbox).cluster == "green"
    send(client, client.producer(TOPIC, "p"), 0)
    arrived(inbox, 1)
    assert not home(blue, 0).log.names(BUNDLE)


def test_a_redirect_is_kept_and_later_connections_go_there_directly(
    blue: Town, green: Town, client: Client
) -> None:
    producer = terminated_after_one(blue, green, client)
    inbox = Inbox()
    assert attached(client, inbox).cluster == "green"
    send(client, producer, 1)
    all_stored(producer)
    for each in blue.homes:
        each.kill()
    green.homes[0].kill()
    green.homes[0].start()
    other = client.producer(TOPIC, "q")
    send(client, other, 2)
    all_stored(other)
    arrived(inbox, 2)
    assert inbox.got == texts(1, 2)


def test_a_consumer_does_not_follow_the_redirect_of_its_topic_s_producers(
    blue: Town, green: Town, client: Client
) -> None:
    """It did: after a lost connection it read the other cluster's messages before the rest of its
    own, and then some of them again."""
    inbox = Inbox(acknowledges=False)
    consumer = attached(client, inbox)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    arrived(inbox, 1)
    closed_on(blue, green, Step.TERMINATE)
    send(client, producer, 1)
    all_stored(producer)
    blue.homes[0].kill()
    blue.homes[0].start()
    eventually(lambda: client.place_of(consumer), "it is attached again", 20)
    assert consumer.cluster == "blue"
    assert client.redirects == {(TOPIC, ""): green.url}


def test_a_topic_that_was_given_back_is_found_at_home_again(
    blue: Town, green: Town, client: Client
) -> None:
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    all_stored(producer)
    closed_on(blue, green, Step.TERMINATE, Step.REMOVE)
    inbox = Inbox()
    consumer = attached(client, inbox)
    assert consumer.cluster == "green"
    # Green is gone with what it knew: only home can say that the topic is back.
    closed_on(blue, green, Step.REOPEN)
    for each in green.homes:
        each.kill()
    eventually(lambda: consumer.cluster == "blue", "it is at home", 30)
    send(client, producer, 1)
    arrived(inbox, 1)
    assert inbox.got == texts(1)


def test_a_client_that_knows_no_redirect_is_told_which_version_does(
    blue: Town, green: Town
) -> None:
    with Client(blue.url, "old", version=1) as old:
        producer = terminated_after_one(blue, green, old)
        send(old, producer, 1)
        refused = eventually(lambda: old.refused, "it is refused", 20)
        assert "clients before version 2 cannot follow" in str(refused)


def test_a_client_takes_the_redirect_s_url_for_the_connections_that_it_uses(
    blue: Town, green: Town
) -> None:
    with Client(blue.url, "secret", tls=True) as client:
        producer = terminated_after_one(blue, green, client)
        send(client, producer, 1)
        eventually(lambda: client.redirects, "it is redirected", 20)
        assert client.redirects == {(TOPIC, ""): green.urls.brokerServiceUrlTls}


def test_a_redirect_without_a_url_for_this_client_leaves_it_where_it_is(blue: Town) -> None:
    """It ended the thread that opens connections, also for topics that do not migrate."""
    broker = blue.homes[0].broker
    with Client(blue.url, "plain") as client:
        producer = client.producer(TOPIC, "p")
        send(client, producer, 0)
        all_stored(producer)
        nowhere = Target(brokerServiceUrlTls="pulsar+ssl://green:6651")
        broker.terminate(TOPIC, nowhere)
        eventually(lambda: producer.failures > 1, "it asks again", 20)
        other = client.producer(f"{TOPIC}-2", "q")
        send(client, other, 0)
        all_stored(other)
        assert client.redirects == {}


def test_a_withheld_topic_makes_producers_wait(blue: Town, client: Client) -> None:
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    all_stored(producer)
    home(blue, 0).broker.hold(TOPIC)
    send(client, producer, 1, 2)
    eventually(lambda: producer.failures > 1, "it is put off", 20)
    assert producer.waiting == 2
    home(blue, 0).broker.reopen(TOPIC)
    all_stored(producer)
    assert [e.value for e in home(blue, 0).log.read(TOPIC, 0, 9)] == texts(0, 1, 2)


def test_clusters_of_one_name_have_two_logs(tmp_path: Path) -> None:
    """A consumer took the first entries of green for those that it had read on blue."""
    for each in ("one", "two"):
        (tmp_path / each).mkdir()
    with (
        town(tmp_path / "one", "prod") as here,
        town(tmp_path / "two", "prod") as there,
        Client(here.url, "test") as client,
    ):
        inbox, consumer, producer = talking(client)
        send(client, producer, 1)
        arrived(inbox, 2)
        broker = here.homes[0].broker
        broker.create_on(there.urls, TOPIC)
        broker.terminate(TOPIC, there.urls)
        eventually(lambda: broker.backlog(TOPIC) == {"s": 0}, "it is drained", 20)
        broker.redirect(TOPIC, "s", there.urls)
        send(client, producer, 2, 3)
        arrived(inbox, 4)
        assert (inbox.got, consumer.cluster) == (texts(0, 1, 2, 3), "prod")
