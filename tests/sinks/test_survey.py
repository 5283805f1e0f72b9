"""Redis Cluster, a Sentinel and a replica are refused in words; replicas are counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from redis import Redis

from agent.main import IdleBroker
from agent.reports.host import HostSampler
from agent.running import running
from agent.settings import AgentSettings
from deploy.ports import free_port
from deploy.redis_server import RedisServer, find_installed, wheel
from deploy.sentinel_server import SentinelServer
from sinks.errors import Evicting, Misconfigured, StoreUnavailable
from sinks.redis.server.connections import redis_client
from sinks.redis.server.survey import (
    Replica,
    Survey,
    check_mode,
    check_survey,
    replicas_of,
    required_replicas,
    survey,
)
from tests.support.opening import evicting
from tests.support.redis_cluster import clustered
from tests.support.waiting import eventually


@pytest.fixture(params=[find_installed, wheel], ids=["redis", "valkey"])
def program(request: pytest.FixtureRequest) -> Path:
    found: Path | None = request.param()
    if found is None:
        pytest.skip("this machine has no such server")
    return found


@pytest.fixture
def node(tmp_path: Path, program: Path) -> Iterator[RedisServer]:
    """Of a Redis Cluster."""
    with RedisServer(tmp_path, program=program, settings=clustered()) as server:
        yield server


def test_a_redis_cluster_is_refused_in_words(node: RedisServer) -> None:
    with redis_client(node.url) as client:
        for check in (check_survey, check_mode):
            with pytest.raises(Misconfigured, match="Redis Cluster is not supported; use a single"):
                check(client)


def test_an_agent_does_not_start_on_a_redis_cluster(node: RedisServer) -> None:
    idle = IdleBroker("a:1", 1, HostSampler())
    never = running(idle, AgentSettings("c", "a", 1), f"127.0.0.1:{free_port()}", node.url)
    with pytest.raises(Misconfigured, match="Redis Cluster is not supported"), never:
        pass


def test_a_server_that_is_not_there_yet_is_not_refused() -> None:
    with redis_client(f"redis://127.0.0.1:{free_port()}/0") as client:
        check_mode(client)


def test_a_sentinel_is_told_from_its_servers(tmp_path: Path, program: Path) -> None:
    with (
        RedisServer(tmp_path / "redis", program=program) as server,
        SentinelServer(tmp_path / "sentinel", server, program=program) as sentinel,
        redis_client(f"redis://127.0.0.1:{sentinel.port}/0") as client,
        pytest.raises(Misconfigured, match=r"say redis\+sentinel://"),
    ):
        check_survey(client)


def test_a_master_tells_of_its_replicas_and_a_replica_of_its_master(
    tmp_path: Path, program: Path
) -> None:
    with ExitStack() as stack:
        master = stack.enter_context(RedisServer(tmp_path / "master", program=program))
        admin = stack.enter_context(redis_client(master.url))
        assert check_survey(admin).replicas == ()
        copy = RedisServer(tmp_path / "copy", program=program, like=master, replica_of=master.port)
        copy.start()
        # One that still writes its first append-only file ignores SIGTERM.
        stack.callback(copy.kill)
        eventually(lambda: survey(admin).shortage(None) == "" and survey(admin).replicas, "a copy")
        (replica,) = check_survey(admin).replicas
        assert (replica.where, replica.online) == (f"127.0.0.1:{copy.port}", True)
        client = stack.enter_context(redis_client(copy.url))
        # It may be promoted in a moment: a standby waits for that.
        with pytest.raises(StoreUnavailable, match=f"is a replica of 127.0.0.1:{master.port}"):
            check_survey(client)


@pytest.mark.parametrize(
    ("maxmemory", "policy", "refused"),
    [
        ("100mb", "allkeys-lru", True),
        ("100mb", "volatile-ttl", True),
        ("100mb", "noeviction", False),
        ("0", "allkeys-lru", False),
    ],
)
def test_a_server_that_would_delete_keys_is_refused_in_words(
    client: Redis, maxmemory: str, policy: str, refused: bool
) -> None:
    with evicting(client, maxmemory, policy):
        if refused:
            with pytest.raises(Evicting, match=f"{policy}.*CONFIG SET maxmemory-policy noevict"):
                check_survey(client)
        else:
            check_survey(client)


@pytest.mark.parametrize(("replicas", "required"), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_with_the_master_a_majority_of_the_servers_must_have_it(
    replicas: int, required: int
) -> None:
    assert required_replicas(replicas, None) == required
    assert 2 * (1 + required) > 1 + replicas
    assert required_replicas(replicas, 7) == 7


def master_with(*lags: int | None) -> Survey:
    """Replicas by their lags; None: it takes its first copy."""
    return Survey(
        "standalone",
        "master",
        "7.0.15",
        tuple(Replica(f"r{i}:1", lag is not None, lag or 0) for i, lag in enumerate(lags)),
    )


@pytest.mark.parametrize(
    ("replicas", "setting", "rule", "shortage"),
    [
        ((), None, "no replicas, so none need acknowledge", ""),
        (
            (1,),
            None,
            "1 of 1 must have acknowledged within 3 s: the loss of one stops renewals",
            "",
        ),
        ((0, 1), None, "1 of 2 must have acknowledged within 3 s", ""),
        ((0, 9), None, "1 of 2 must have acknowledged within 3 s", "r1:1 is 9 s behind"),
        ((3,), None, "1 of 1", ""),
        ((4,), None, "1 of 1", "r0:1 is 4 s behind; 1 more must follow, or no lease is renewed"),
        ((0, None), None, "1 of 2", "r1:1 is being filled"),
        ((0, None, None), None, "1 of 3", "r2:1 is being filled"),
        ((0, -1), None, "1 of 2", "r1:1 has acknowledged nothing yet"),
        ((9,), None, "1 of 1", "1 more must follow, or no lease is renewed"),
        ((), 1, "1 of 0", "1 more must follow, or no lease is renewed"),
        ((0,), 0, "0 of 1", ""),
    ],
)
def test_the_rule_and_what_it_lacks_are_reported(
    replicas: tuple[int | None, ...], setting: int | None, rule: str, shortage: str
) -> None:
    found = master_with(*replicas)
    assert rule in found.rule(setting)
    assert found.shortage(setting).endswith(shortage) if shortage else not found.shortage(setting)


def test_a_client_that_only_monitors_does_not_count_as_a_replica() -> None:
    row = {"ip": "10.0.0.2", "port": 6379, "state": "online", "offset": 7, "lag": 0}
    info = {"connected_slaves": 2, "slave0": row, "slave1": row | {"port": 0}}

    assert replicas_of(info) == (Replica("10.0.0.2:6379", online=True, lag_s=0, offset=7),)


@pytest.mark.parametrize("state", ["wait_bgsave", "send_bulk"])
def test_a_replica_that_takes_its_first_copy_is_not_online(state: str) -> None:
    row = {"ip": "10.0.0.2", "port": 6379, "state": state, "offset": 0, "lag": 0}
    [replica] = replicas_of({"connected_slaves": 1, "slave0": row})
    assert not replica.online


def test_an_online_replica_that_has_acknowledged_nothing_yet_does_not_count() -> None:
    row = {"ip": "10.0.0.2", "port": 6379, "state": "online", "offset": 0, "lag": -1}
    [replica] = replicas_of({"connected_slaves": 1, "slave0": row})
    assert not replica.counts


def test_a_replica_whose_address_the_master_does_not_know_yet_is_passed_over() -> None:
    """Redis counts it, and lists no row for it."""
    row = {"ip": "10.0.0.2", "port": 6379, "state": "online", "offset": 7, "lag": 0}
    assert len(replicas_of({"connected_slaves": 2, "slave0": row})) == 1
