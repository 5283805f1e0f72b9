"""A lease lives until it runs out, and tells who held it before."""

from __future__ import annotations

import pytest
import redis

from sinks.leases import Leases

LONG_MS = 60_000


def test_renewing_tells_whose_lease_it_was(client: redis.Redis, cluster: str) -> None:
    leases = Leases(client)

    assert leases.renew(cluster, "a:8080", "1", LONG_MS) is None
    assert leases.renew(cluster, "a:8080", "1", LONG_MS) == "1"
    assert leases.renew(cluster, "a:8080", "2", LONG_MS) == "1"


def test_a_broker_is_alive_until_its_lease_runs_out(client: redis.Redis, cluster: str) -> None:
    leases = Leases(client)
    leases.renew(cluster, "lasting:8080", "1", LONG_MS)
    leases.renew(cluster, "passing:8080", "1", 1)

    while "passing:8080" in leases.alive(cluster):
        pass

    assert leases.alive(cluster) == {"lasting:8080"}
    assert leases.renew(cluster, "passing:8080", "1", LONG_MS) is None


@pytest.mark.parametrize("name", ["a*", "a?", "a[bc]", "a^", "a\\"])
def test_clusters_whose_names_look_like_patterns_are_kept_apart(
    client: redis.Redis, name: str
) -> None:
    leases = Leases(client)
    leases.renew(name, "mine:8080", "1", LONG_MS)
    leases.renew("ab", "other:8080", "1", LONG_MS)

    assert leases.alive(name) == {"mine:8080"}
