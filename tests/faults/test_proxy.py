"""The links that the other tests break do what they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
import redis

from deploy.redis_server import RedisServer
from sinks.redis.server.connections import redis_client
from tests.faults.proxy import Proxy


@pytest.fixture
def link(redis_server: RedisServer) -> Iterator[Proxy]:
    with Proxy(redis_server.port, seed=1) as proxy:
        yield proxy


@pytest.fixture
def client(link: Proxy, redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis_client(redis_server.url.replace(str(redis_server.port), str(link.port))) as client:
        yield client


def test_what_was_held_back_arrives_after_all(
    client: redis.Redis, link: Proxy, redis_server: RedisServer
) -> None:
    client.set("proxy", "before")
    link.hold(down=False)
    with pytest.raises(redis.TimeoutError):
        client.set("proxy", "held")
    with redis_client(redis_server.url) as beside:
        assert beside.get("proxy") == b"before"
        link.release()
        client.ping()
        assert beside.get("proxy") == b"held"


def test_an_answer_may_be_lost_where_the_question_was_not(client: redis.Redis, link: Proxy) -> None:
    client.delete("count")
    link.hold(up=False)
    with pytest.raises(redis.TimeoutError):
        client.incr("count")
    link.release()
    assert client.get("count") == b"1"


def test_what_was_held_back_is_lost_in_a_cut(client: redis.Redis, link: Proxy) -> None:
    client.set("proxy", "before")
    link.hold()
    with suppress(redis.TimeoutError):
        client.set("proxy", "lost")
    link.cut()
    with pytest.raises(redis.ConnectionError):
        client.ping()
    link.mend()
    link.release()
    assert client.get("proxy") == b"before"


def test_a_slow_link_carries_all(client: redis.Redis, link: Proxy) -> None:
    link.slow(0.01, jitter=0.01, rate=1e6)
    big = b"x" * 100_000
    client.set("big", big)
    assert client.get("big") == big
    assert link.up.passed > len(big) < link.down.passed
