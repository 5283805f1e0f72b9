"""What is measured of lookups is a lookup of every topic, and an HGET of each one's record."""

from __future__ import annotations

import pytest

from benchmarks import lookup
from deploy.redis_server import RedisServer
from sinks.redis.server.connections import redis_client


def test_both_sides_are_asked_for_the_same_bundles(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "TURNS", 2)
    with redis_client(redis_server.url) as client:
        lookup.own_all(client)
        client.config_resetstat()
        ratio, cached = lookup.figures(client)
        calls = client.info("commandstats")["cmdstat_hget"]["calls"]

    assert ratio.raw.keys() == {"lookups/s", "HGET/s"}
    assert cached.value > ratio.raw["lookups/s"][0]
    # Once to see that owners are found, once for the cache, twice on each side; the cache asks once
    # a bundle. Now and then a lookup also reads the mark of an open store.
    assert 0 <= calls - (5 * lookup.TOPICS + lookup.BUNDLES) < lookup.BUNDLES


def test_a_lookup_that_does_not_find_the_owner_is_not_measured(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redis_client(redis_server.url) as client:
        lookup.own_all(client)
        monkeypatch.setattr(lookup, "BROKER", "another:8080")
        with pytest.raises(RuntimeError, match="did not find the owner"):
            lookup.figures(client)
