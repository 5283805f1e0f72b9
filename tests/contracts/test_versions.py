"""Agents and jobs of commit 8a0b0fc, whose scripts a server may still have, beside those of today.

`protocol_1` holds the two scripts by which they get leases and open stores, as they were.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from sinks.errors import Closed, Fenced
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from tests.contracts.asking import ABOVE, BUNDLE, GENERATION, ask, broker, command, commands, job
from tests.support.opening import close, keep_alive, let_in, let_lapse
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.command import CommandKind
from trimtab.wire.ownership import Neighbour, Refused

A, B = "a:8080", "b:8080"
LONG_MS = 8_000
SCRIPTS = Path(__file__).parent / "protocol_1"


class Old:
    """What the older versions ask of a server."""

    def __init__(self, client: redis.Redis, cluster: str) -> None:
        self._client, self._cluster = client, cluster

    def renew(self, name: str, session: int) -> list[bytes]:
        names = [
            keys.open_key(self._cluster),
            keys.lease_key(self._cluster, name),
            keys.assertions_prefix(self._cluster),
        ]
        return self._run("lease.lua", names, [str(session), str(LONG_MS), name])

    def say(self, name: str, run: bytes) -> None:
        self._client.set(keys.assertion_key(self._cluster, run.decode(), name), '{"records":{}}')

    def open(self, generation: int, rebuilt_on: str = "") -> list[bytes]:
        arguments = [str(generation), "", "10000", rebuilt_on, "0"]
        return self._run("open.lua", [keys.open_key(self._cluster)], arguments)

    def _run(self, script: str, names: list[str], arguments: list[str]) -> list[bytes]:
        text = "#!lua\n" + (SCRIPTS / script).read_text()
        # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
        answer: Any = self._client.eval(text, len(names), *names, *arguments)
        return list(answer)


@pytest.fixture
def old(client: redis.Redis, cluster: str) -> Old:
    return Old(client, cluster)


@pytest.fixture
def upgraded(client: redis.Redis, cluster: str, old: Old) -> OwnershipStore:
    """Opened by an older job, a broker of which holds a lease; then by one of today."""
    run = old.open(3)[1].decode()
    assert old.open(3, run)[0] == b"opened"
    assert old.renew(A, 7)[0] == b"held"
    let_in(client, cluster, 4)
    return OwnershipStore(client)


def test_an_older_agent_keeps_its_lease_after_the_job_was_upgraded(
    upgraded: OwnershipStore, client: redis.Redis, cluster: str, old: Old
) -> None:
    asks, run, _ = old.renew(A, 7)
    assert asks == b"assert"
    old.say(A, run)

    assert old.renew(A, 7)[:2] == [b"asserted", b"7"]

    assert Leases(client).holds(cluster, A)
    assert ClusterGate(client).outdated_agents(cluster) == {A}
    refused = upgraded.apply(cluster, broker(A, Event.CLAIM))
    assert refused.reason is Refused.NO_LEASE


@pytest.mark.parametrize(
    ("event", "more"),
    [
        pytest.param(Event.TRANSFER, {"broker": B}, id="transfer"),
        pytest.param(Event.UNLOAD, {}, id="unload"),
        pytest.param(Event.SPLIT, {}, id="split"),
        pytest.param(
            Event.MERGE, {"neighbour": Neighbour(ABOVE, Epoch(GENERATION, 2))}, id="merge"
        ),
    ],
)
def test_an_older_agent_is_asked_for_nothing(
    client: redis.Redis, cluster: str, event: Event, more: dict[str, Any]
) -> None:
    """It would stop serving a bundle that is to move before it learns that it cannot say so."""
    let_in(client, cluster, GENERATION)
    keep_alive(client, cluster, [A, B])
    store = OwnershipStore(client)
    for bundle in (BUNDLE, ABOVE):
        assert ask(store, cluster, job(Event.ASSIGN, NO_EPOCH, A, bundle=bundle)).accepted
        serves = broker(A, Event.SERVE, Epoch(GENERATION, 1), bundle=bundle)
        assert ask(store, cluster, serves).accepted
    client.set(keys.lease_key(cluster, A), "1700000000000")
    wish = command(A, CommandKind.TRANSFER)

    refused = ask(store, cluster, job(event, Epoch(GENERATION, 2), commands=(wish,), **more))

    assert refused.reason is Refused.OUTDATED
    assert not [told for told in commands(client, cluster, A) if told.kind is CommandKind.TRANSFER]


def test_what_an_older_agent_says_is_heard_in_a_rebuild(
    upgraded: OwnershipStore, client: redis.Redis, cluster: str, old: Old
) -> None:
    assert upgraded.records(cluster) == {}
    history = close(client, cluster)
    old.say(A, old.renew(A, 7)[1])

    assert ClusterGate(client).sources.heard(cluster, history).keys() == {A}


def test_an_agent_that_was_upgraded_waits_for_the_end_of_the_older_ones_lease(
    upgraded: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    leases = Leases(client)
    waits = leases.renew(cluster, A, 8, LONG_MS)
    assert (waits.renewal, waits.detail) == ("waiting", "7")
    let_lapse(client, cluster, A)

    assert leases.renew(cluster, A, 8, LONG_MS).renewal == "held"

    assert upgraded.apply(cluster, broker(A, Event.CLAIM)).accepted
    assert ClusterGate(client).outdated_agents(cluster) == set()


@pytest.mark.usefixtures("upgraded")
def test_an_older_agent_that_meets_a_lease_of_today_can_read_it(
    client: redis.Redis, cluster: str, old: Old
) -> None:
    Leases(client).renew(cluster, B, 9, LONG_MS)

    assert old.renew(B, 8)[:2] == [b"superseded", b"+9"]
    assert int(b"+9") > 8


@pytest.mark.usefixtures("upgraded")
def test_a_job_of_an_older_version_is_fenced(old: Old) -> None:
    assert old.open(3) == [b"fenced", b"4"]


def test_back_at_an_older_job_the_agents_of_today_change_nothing(
    upgraded: OwnershipStore, client: redis.Redis, cluster: str, old: Old
) -> None:
    run = old.open(5)[1].decode()
    assert old.open(5, run)[0] == b"opened"

    with pytest.raises(Closed, match="upgrade the job first"):
        upgraded.apply(cluster, broker(A, Event.CLAIM))
    with pytest.raises(Fenced):
        ClusterGate(client).open(cluster, 4)
    closure = ClusterGate(client).open(cluster, 6, closed_for_ms=1_000)
    assert closure is not None
    assert client.hget(keys.open_key(cluster), "run_id") is None
