"""Several servers with the same data, one after another or at once: one of them at most is open."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.redis_server import RedisServer
from sinks.errors import Closed, GenerationSpent, Isolated, StoreUnavailable
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.lease import Renewal
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from tests.contracts.asking import broker
from tests.support.opening import let_in
from tests.support.waiting import eventually
from trimtab.ownership import REPLICA_WAIT_MS, Event
from trimtab.wire.assertion import Assertion
from trimtab.wire.keys import replicas_key

A, B = "a:8080", "b:8080"
C = "histories"
LONG_MS = 8_000


class Server:
    """A Redis, and what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self.redis = RedisServer(folder)
        self.redis.start()
        self.client = redis_client(self.redis.url)
        self.leases, self.store = Leases(self.client), OwnershipStore(self.client)

    def follow(self, master: Server) -> None:
        """Be a replica, with all that the master has."""
        password = master.client.connection_pool.connection_kwargs["password"]
        self.client.config_set("masterauth", password)
        self.client.replicaof("127.0.0.1", str(master.redis.port))
        # A master takes a replica for one in step before that has loaded what it was sent.
        eventually(self.is_linked, "the replica has loaded what it was sent")
        eventually(lambda: master.lag_of_replicas() is not None, "the replica is in step")

    def is_linked(self) -> bool:
        """Whether it is a replica that gets what its master does."""
        return bool(self.client.info("replication")["master_link_status"] == "up")

    def rule(self) -> None:
        """Be a master."""
        self.client.replicaof("NO", "ONE")

    def lag_of_replicas(self) -> int | None:
        """The greatest; None where one is not in step, or there is none."""
        found = self.client.info("replication")
        replicas = [found[f"slave{row}"] for row in range(found["connected_slaves"])]
        in_step = [each for each in replicas if each["state"] == "online"]
        behind = any(each["offset"] < found["master_repl_offset"] for each in in_step)
        if behind or not in_step or len(in_step) < len(replicas):
            return None
        return max(int(each["lag"]) for each in in_step)

    def close(self) -> None:
        self.client.close()
        # A replica that still writes its first append-only file ignores SIGTERM.
        self.redis.kill()

    def claim(self) -> None:
        assert self.store.apply(C, broker(A, Event.CLAIM)).accepted

    def renew(self, name: str = A, session: int = 1) -> Renewal:
        return self.leases.renew(C, name, session, LONG_MS).renewal


def refused(server: Server) -> bool:
    try:
        server.renew()
    except StoreUnavailable:
        return True
    return False


@contextmanager
def reading_along(server: Server) -> Iterator[None]:
    """With a client that takes part in replication, as redis-cli can, and says nothing."""
    password = server.client.connection_pool.connection_kwargs["password"]
    with socket.create_connection(("127.0.0.1", server.redis.port)) as connection:
        connection.sendall(f"AUTH {password}\r\n".encode())
        assert connection.recv(5) == b"+OK\r\n"
        connection.sendall(b"SYNC\r\n")
        eventually(lambda: "online" in states_of_replicas(server), "it is taken for a replica")
        yield


def states_of_replicas(server: Server) -> set[str]:
    found = server.client.info("replication")
    return {found[f"slave{row}"]["state"] for row in range(found["connected_slaves"])}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[SimpleNamespace]:
    found = SimpleNamespace(first=Server(tmp_path / "first"), second=Server(tmp_path / "second"))
    yield found
    for server in (found.first, found.second):
        server.close()


def test_a_first_replica_gives_a_master_another_history(servers: SimpleNamespace) -> None:
    """So does Redis: it costs a rebuild, and no bundle."""
    let_in(servers.first.client, C, 5)
    servers.second.follow(servers.first)

    assert not ClusterGate(servers.first.client).is_open(C)


def test_a_first_master_that_comes_back_is_closed(servers: SimpleNamespace) -> None:
    """Failover and failback before any job has seen the second one."""
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    assert ClusterGate(first.client, replicas=0).open(C, 6) is None
    assert first.renew() is Renewal.HELD
    second.rule()
    first.claim()

    first.follow(second)
    first.rule()

    assert first.store.records(C) == {}
    assert not ClusterGate(first.client).is_open(C)
    with pytest.raises(Closed):
        first.claim()
    assert first.renew() is Renewal.ASSERT


def test_a_job_closes_what_it_finds_lost_before_it_claims_again(servers: SimpleNamespace) -> None:
    first, second = servers.first, servers.second
    gate = let_in(first.client, C, 5)
    second.follow(first)
    second.rule()
    elsewhere = ClusterGate(second.client)
    elsewhere._opened_on.update(gate._opened_on)

    with pytest.raises(GenerationSpent):
        elsewhere.open(C, 5)

    assert second.client.hget("trimtab:{histories}:open", "replid") is None


def test_a_replica_is_not_open(servers: SimpleNamespace) -> None:
    """It has the history of its master, and what that one was opened on."""
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    assert ClusterGate(first.client, replicas=0).open(C, 6) is None
    eventually(lambda: first.lag_of_replicas() is not None, "the replica has it")
    second.client.config_set("replica-read-only", "no")
    ClusterGate(second.client)._load_scripts()

    assert not ClusterGate(second.client).is_open(C)
    with pytest.raises(Closed, match="not the master"):
        second.claim()
    with pytest.raises(StoreUnavailable):
        second.renew()
    with pytest.raises(StoreUnavailable):
        ClusterGate(second.client).open(C, 6)


@pytest.mark.parametrize("everything", [True, False], ids=["all is deleted", "the open key is"])
def test_what_is_deleted_on_a_living_server_costs_the_generation(
    servers: SimpleNamespace, everything: bool
) -> None:
    client = servers.first.client
    gate = let_in(client, C, 5)
    servers.first.renew()
    servers.first.claim()
    client.flushall() if everything else client.delete("trimtab:{histories}:open")

    with pytest.raises(GenerationSpent):
        gate.open(C, 5)

    closure = gate.open(C, 6, closed_for_ms=60_000)
    assert closure is not None
    assert closure.wait_ms > 60_000
    assert closure.wait_ms <= 60_000 + REPLICA_WAIT_MS


def test_a_generation_is_spent_where_another_one_is_open(servers: SimpleNamespace) -> None:
    """Not so after a successor; but a store that went back to before this one opened it."""
    gate = let_in(servers.first.client, C, 5)
    servers.first.client.hset("trimtab:{histories}:open", "generation", "4")

    with pytest.raises(GenerationSpent):
        gate.open(C, 5)


def test_a_master_without_its_replicas_grants_nothing(servers: SimpleNamespace) -> None:
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    assert first.renew() is Renewal.HELD
    second.rule()

    eventually(lambda: refused(first), "the master has noticed")
    assert int(first.client.hget("trimtab:{histories}:replicas", "alone")) > 0
    with pytest.raises(StoreUnavailable):
        first.claim()
    first.client.config_set("min-replicas-to-write", "0")
    with pytest.raises(StoreUnavailable):
        first.renew(B)

    second.follow(first)
    eventually(lambda: not refused(first), "the replica acknowledges again")
    first.claim()


def test_replicas_that_come_later_must_acknowledge_too(servers: SimpleNamespace) -> None:
    first, second = servers.first, servers.second
    second.follow(first)
    second.rule()
    eventually(lambda: first.lag_of_replicas() is None, "the replica is gone")
    gate = let_in(first.client, C, 5)
    assert first.client.hget("trimtab:{histories}:open", "replicas") == b"0"
    second.follow(first)
    assert gate.open(C, 5) is None
    assert first.client.hget("trimtab:{histories}:open", "replicas") == b"1"

    second.rule()
    assert gate.open(C, 5) is None

    assert first.client.hget("trimtab:{histories}:open", "replicas") == b"1"


def test_a_replica_that_joins_counts_before_the_job_looks_again(servers: SimpleNamespace) -> None:
    """An operator adds one, and fails over to it at once."""
    first, second = servers.first, servers.second
    second.follow(first)
    second.rule()
    eventually(lambda: first.lag_of_replicas() is None, "the replica is gone")
    let_in(first.client, C, 5)
    assert first.renew() is Renewal.HELD
    second.follow(first)
    assert first.renew() is Renewal.HELD
    second.rule()
    eventually(lambda: first.lag_of_replicas() is None, "the replica is gone")

    with pytest.raises(StoreUnavailable, match="0 of 1"):
        first.renew()
    with pytest.raises(StoreUnavailable):
        first.claim()


def test_a_new_master_needs_the_replicas_that_the_old_one_cannot_do_without(
    servers: SimpleNamespace, tmp_path: Path
) -> None:
    """Those who made it the master may not have reached the third server, which follows the old
    one: that one has its majority, and grants leases until the third leaves it."""
    first, second, third = servers.first, servers.second, Server(tmp_path / "third")
    second.follow(first)
    third.follow(first)
    eventually(lambda: first.client.info("replication")["connected_slaves"] == 2, "both follow")
    eventually(lambda: first.lag_of_replicas() is not None, "both are in step")
    let_in(first.client, C, 5)
    eventually(lambda: first.lag_of_replicas() is not None, "both have it")
    second.rule()
    gate = ClusterGate(second.client)

    with pytest.raises(Isolated, match="0 of 1"):
        gate.open(C, 6, closed_for_ms=20_000)

    assert first.renew() is Renewal.HELD
    with pytest.raises(Isolated, match="0 of 1"):
        second.renew()
    third.follow(second)
    closure = gate.open(C, 6, closed_for_ms=20_000)
    assert closure is not None
    assert closure.wait_ms == 20_000 + REPLICA_WAIT_MS
    told = second.leases.renew(C, A, 1, LONG_MS, Assertion(records={}))
    assert told.renewal is Renewal.ASSERTED
    eventually(lambda: refused(first), "the old master has noticed")
    third.close()


def test_a_client_that_monitors_does_not_count_as_a_replica(servers: SimpleNamespace) -> None:
    """As ``redis-cli --replica``: it acknowledges nothing, and cannot become the master."""
    first = servers.first
    with reading_along(first):
        let_in(first.client, C, 5)
        assert first.renew() is Renewal.HELD
        assert first.client.hget("trimtab:{histories}:open", "replicas") == b"0"


def test_what_was_acknowledged_before_it_was_alone_proves_nothing(
    servers: SimpleNamespace,
) -> None:
    """A clock that goes back would make the seconds since then few again."""
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    eventually(lambda: first.lag_of_replicas() == 0, "the replica is near")
    server = first.client.info("replication")
    alone = {"on": server["master_replid"], "online": 1, "alone": 1 << 40}
    first.client.hset("trimtab:{histories}:replicas", mapping=alone)

    with pytest.raises(StoreUnavailable, match="0 of 1"):
        first.renew()

    first.client.hset("trimtab:{histories}:replicas", "alone", server["master_repl_offset"])
    eventually(lambda: not refused(first), "the replica acknowledges what was written since")
    assert first.client.hget("trimtab:{histories}:replicas", "alone") == b""


def test_what_waited_in_the_sockets_of_a_master_that_hung_proves_nothing(
    servers: SimpleNamespace,
) -> None:
    """It read them only now, so they look new. Another may be the master since."""
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    assert first.renew() is Renewal.HELD
    history = first.client.info("replication")["master_replid"]
    before_it_hung = round(1000 * first.leases.server_time()) - REPLICA_WAIT_MS - 1
    asked = f"{history} {before_it_hung} 1 {before_it_hung}"
    first.client.hset("trimtab:{histories}:replicas", "asked", asked)
    eventually(lambda: first.lag_of_replicas() == 0, "the replica is near")
    written = first.client.info("replication")["master_repl_offset"]

    with pytest.raises(StoreUnavailable, match="0 of 1"):
        first.renew()

    # A replica that had got everything does not count again for that.
    assert int(first.client.hget("trimtab:{histories}:replicas", "alone")) > written
    eventually(lambda: not refused(first), "the replica acknowledges what was written since")
    first.claim()


def test_a_hung_master_grants_nothing_where_it_has_lost_its_scripts(
    servers: SimpleNamespace,
) -> None:
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    assert first.renew() is Renewal.HELD
    first.client.script_flush()
    history = first.client.info("replication")["master_replid"]
    before_it_hung = round(1000 * first.leases.server_time()) - REPLICA_WAIT_MS - 1
    asked = f"{history} {before_it_hung} 1 {before_it_hung}"
    first.client.hset("trimtab:{histories}:replicas", "asked", asked)
    eventually(lambda: first.lag_of_replicas() == 0, "the replica is near")

    with pytest.raises(StoreUnavailable, match="0 of 1"):
        first.renew()

    eventually(lambda: not refused(first), "the replica acknowledges what was written since")
    said = Assertion(records={})
    assert first.leases.renew(C, A, 1, LONG_MS, said).renewal is Renewal.ASSERTED


def test_a_note_of_another_history_or_of_a_time_to_come_proves_nothing(
    servers: SimpleNamespace,
) -> None:
    """It came with the data of the master before, or the clock went back since."""
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    assert first.renew() is Renewal.HELD
    history = first.client.info("replication")["master_replid"]

    first.client.hset(replicas_key(C), "asked", f"{'0' * 40} 1 1 1")
    assert first.renew() is Renewal.HELD
    noted = first.client.hget(replicas_key(C), "asked").decode()
    assert noted.startswith(f"{history} ")

    _, at_ms, offset, _ = noted.split()
    ahead = int(at_ms) + 600_000
    first.client.hset(replicas_key(C), "asked", f"{history} {ahead} {offset} {ahead}")
    assert refused(first)
    eventually(lambda: not refused(first), "the replica has acknowledged a new note")


def test_a_master_that_hung_before_its_first_request_grants_nothing(
    servers: SimpleNamespace,
) -> None:
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)

    asked = first.client.hget("trimtab:{histories}:replicas", "asked")

    history, at, _, heard = asked.decode().split()
    assert history == first.client.info("replication")["master_replid"]
    assert at == heard


def test_an_operator_says_how_many_replicas_must_acknowledge(servers: SimpleNamespace) -> None:
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    assert ClusterGate(first.client, replicas=0).open(C, 6) is None
    second.rule()

    assert first.client.hget("trimtab:{histories}:open", "replicas") == b"0"
    eventually(lambda: first.lag_of_replicas() is None, "the replica is gone")
    assert first.renew() is Renewal.HELD


def test_a_new_master_waits_until_the_old_ones_leases_have_ended(
    servers: SimpleNamespace,
) -> None:
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    eventually(lambda: first.lag_of_replicas() is not None, "the replica has it")
    second.rule()

    closure = ClusterGate(second.client).open(C, 6, closed_for_ms=20_000)

    assert closure is not None
    assert closure.wait_ms == 20_000 + REPLICA_WAIT_MS


def test_at_a_new_master_without_a_replica_brokers_go_on_once_a_job_has_looked(
    servers: SimpleNamespace,
) -> None:
    """Until then it may itself have been left behind."""
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    eventually(lambda: first.lag_of_replicas() is not None, "the replica has it")
    eventually(lambda: not refused(first), "brokers' requests have seen it too")
    eventually(
        lambda: second.client.hget(replicas_key(C), "online") == b"1", "the replica has their note"
    )
    first.redis.kill()
    second.rule()
    with pytest.raises(StoreUnavailable):
        second.renew()

    ClusterGate(second.client).open(C, 6, closed_for_ms=20_000)

    told = second.leases.renew(C, A, 1, LONG_MS, Assertion(records={}))
    assert told.renewal is Renewal.ASSERTED
    assert told.must_have_left_ms == REPLICA_WAIT_MS


def test_a_master_that_restarts_waits_for_its_only_replica(servers: SimpleNamespace) -> None:
    """It may have been cut off meanwhile, and the replica may be the master by now."""
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    eventually(lambda: first.lag_of_replicas() is not None, "the replica has it")
    second.client.config_set("masterauth", "another")
    first.redis.kill()
    first.redis.start()

    with pytest.raises(Isolated, match="0 of 1"):
        ClusterGate(first.client).open(C, 6, closed_for_ms=20_000)
    second.rule()
    ClusterGate(second.client).open(C, 6, closed_for_ms=20_000)

    assert first.client.hget("trimtab:{histories}:open", "replicas") == b"1"
    assert second.client.hget("trimtab:{histories}:open", "replicas") == b"0"


def test_a_master_that_was_alone_for_long_still_waits_for_its_replica(
    servers: SimpleNamespace,
) -> None:
    """After ``repl-backlog-ttl`` it begins another history, as a promoted replica does."""
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    first.client.config_set("repl-backlog-ttl", "1")
    before = first.client.info("replication")["master_replid"]
    second.rule()
    eventually(
        lambda: first.client.info("replication")["master_replid"] != before, "another history"
    )

    with pytest.raises(Isolated, match="0 of 1"):
        ClusterGate(first.client).open(C, 6, closed_for_ms=20_000)

    assert first.client.hget("trimtab:{histories}:open", "replicas") == b"1"


def test_what_was_replicated_once_waits_for_longer_ever_after(servers: SimpleNamespace) -> None:
    """The number of replicas is counted again, and a restart before the opening forgets it."""
    first, second = servers.first, servers.second
    second.follow(first)
    let_in(first.client, C, 5)
    eventually(lambda: first.lag_of_replicas() is not None, "the replica has it")
    first.redis.kill()
    second.rule()
    gate = ClusterGate(second.client)
    gate.open(C, 6, closed_for_ms=20_000)
    second.client.hset("trimtab:{histories}:open", "rebuild_on", "0" * 40)

    closure = gate.open(C, 6, closed_for_ms=20_000)

    assert second.client.hget("trimtab:{histories}:open", "replicas") == b"0"
    assert closure is not None
    assert closure.wait_ms > 20_000


def test_a_replica_counts_from_the_first_change_after_it_joined(servers: SimpleNamespace) -> None:
    """Before any renewal, and also where an operator says that none must acknowledge."""
    first, second = servers.first, servers.second
    second.follow(first)
    gate = ClusterGate(first.client, replicas=0)
    closure = gate.open(C, 5)
    assert closure is not None
    assert gate.open(C, 5, closure.history) is None
    first.renew()
    first.client.delete(replicas_key(C))

    first.claim()

    assert first.client.hget(replicas_key(C), "online") == b"1"
