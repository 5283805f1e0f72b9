"""Answers say where brokers listen, as the brokers' load reports do."""

from __future__ import annotations

import pytest
from redis import Redis

from agent.lookup.client import LookupClient
from agent.lookup.directory import URLS_FOR_S
from sinks.redis.service_urls import KEPT_S, UrlStore
from tests.agent.looking_up import TOPIC, Scene, owned
from tests.agent.turned_by_hand import Host
from trimtab.wire.keys import urls_key
from trimtab.wire.lookup import Answer, AnswerKind, ServiceUrls
from trimtab.wire.reports.decode import decode

A, B, C = "a:8080", "b:8080", "c:8080"
PLAIN = {"web_service_url": "http://a:8080", "pulsar_service_url": "pulsar://a:6650"}
TLS = {"web_service_url_tls": "https://a:8443", "pulsar_service_url_tls": "pulsar+ssl://a:6651"}
ALL = ServiceUrls(
    web="http://a:8080",
    web_tls="https://a:8443",
    pulsar="pulsar://a:6650",
    pulsar_tls="pulsar+ssl://a:6651",
)


@pytest.fixture
def scene(client: Redis, cluster: str) -> Scene:
    return Scene(client, cluster)


def listening(scene: Scene, **urls: str | None) -> Host:
    """Broker A, whose agent has reported."""
    host = Host(scene.client, scene.cluster, A)
    host.broker.urls = urls
    host.agent.turn()
    return host


def test_an_owners_urls_are_in_the_answer(scene: Scene) -> None:
    listening(scene, **PLAIN, **TLS)
    scene.put(owned(A))
    assert scene.lookup().lookup(TOPIC).urls == ALL


def test_a_broker_that_is_redirected_to_is_named_with_its_urls(scene: Scene) -> None:
    listening(scene, **PLAIN, **TLS)
    scene.hint(A)
    scene.put(None)
    answer = scene.lookup(decides=False).lookup(TOPIC)
    assert (answer.kind, answer.broker, answer.urls) == (AnswerKind.REDIRECT, A, ALL)


def test_urls_that_a_broker_does_not_have_stay_absent(scene: Scene) -> None:
    listening(scene, **TLS, web_service_url=None, pulsar_service_url="")
    scene.put(owned(A))
    urls = scene.lookup().lookup(TOPIC).urls
    assert urls == ServiceUrls(web_tls="https://a:8443", pulsar_tls="pulsar+ssl://a:6651")


@pytest.mark.parametrize("value", [None, b"{}", b"[", b'{"web":1}', b"\xff"])
def test_without_readable_urls_the_answer_has_none(scene: Scene, value: bytes | None) -> None:
    if value is not None:
        scene.client.set(urls_key(scene.cluster, A), value)
    scene.put(owned(A))
    answer = scene.lookup().lookup(TOPIC)
    assert (answer.kind, answer.urls) == (AnswerKind.CONNECT, None)


def test_a_key_of_a_wrong_type_fails_no_lookup(scene: Scene) -> None:
    scene.client.hset(urls_key(scene.cluster, A), "web", "x")
    scene.put(owned(A))
    assert scene.lookup().lookup(TOPIC).urls is None


def test_urls_that_change_are_told_at_the_next_report_and_read_within_a_minute(
    scene: Scene,
) -> None:
    host = listening(scene, web_service_url="http://old")
    scene.put(owned(A))
    lookup = scene.lookup()
    lookup.lookup(TOPIC)

    host.broker.urls = {"web_service_url": "http://new"}
    host.clock.advance(6.0)
    host.agent.turn()
    assert lookup.lookup(TOPIC).urls == ServiceUrls(web="http://old")
    scene.now += URLS_FOR_S
    assert lookup.lookup(TOPIC).urls == ServiceUrls(web="http://new")


def test_urls_are_told_again_before_they_end(scene: Scene) -> None:
    host = listening(scene, **PLAIN)
    key = urls_key(scene.cluster, A)
    assert 0 < scene.client.ttl(key) <= KEPT_S
    scene.client.delete(key)
    host.agent.turn()
    assert not scene.client.exists(key)
    host.clock.advance(3600.0)
    host.agent.turn()
    assert scene.client.exists(key)


def test_a_client_gets_an_owners_urls_and_those_of_brokers_on_the_way() -> None:
    b = ServiceUrls(pulsar="pulsar://b:6650")
    answers = [
        Answer(kind=AnswerKind.REDIRECT, broker=B, urls=b),
        Answer(kind=AnswerKind.CONNECT, bundle="t/ns/0x00000000_0xffffffff", broker=A, urls=ALL),
    ]
    client = LookupClient(lambda *_, **__: answers.pop(0))
    assert client.owner_of(TOPIC).urls == ALL
    assert (client.urls_of(A), client.urls_of(B), client.urls_of(C)) == (ALL, b, None)


def test_a_report_of_a_broker_without_plain_urls_is_read() -> None:
    report = (
        b'{"webServiceUrl":null,"webServiceUrlTls":"https://a:8443","pulsarServiceUrl":null,'
        b'"cpu":{"usage":10.0,"limit":100.0}}'
    )
    assert decode(report).topics == 0


def test_urls_are_read_as_they_were_written(scene: Scene) -> None:
    store = UrlStore(scene.client)
    store.write(scene.cluster, A, ALL)
    assert (store.read(scene.cluster, A), store.read(scene.cluster, B)) == (ALL, None)
