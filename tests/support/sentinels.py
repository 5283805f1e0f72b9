"""A master, its replicas and three Sentinels on the loopback interface, to kill and to part.

Replicas, Sentinels, and clients that ask those, reach the master through a proxy: held or cut, the
master lives on, and clients that know its own address still reach it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import redis
import stamina

from deploy.ports import LOOPBACK, free_port
from deploy.redis_server import RedisServer
from deploy.sentinel_server import NAME, SentinelServer
from sinks.redis.server.connections import redis_client
from tests.faults.proxy import Proxy
from tests.support.waiting import eventually

PATIENCE_S: Final = 120.0
"""For a failover: Sentinels that find that time jumped, on a busy machine, do nothing for 30 s."""


@dataclass
class Watched:
    """Put together by `watched`."""

    master: RedisServer
    """The one of the beginning, whatever it is by now."""
    replicas: list[RedisServer]
    sentinels: list[SentinelServer]
    link: Proxy
    """Between the master and all others."""

    @property
    def hosts(self) -> str:
        return ",".join(f"{LOOPBACK}:{sentinel.port}" for sentinel in self.sentinels)

    @property
    def url(self) -> str:
        """Of the master, whichever it is. Carries the password."""
        return f"redis+sentinel://:{self.master.password}@{self.hosts}/{NAME}/0"

    def await_failover(self) -> RedisServer:
        """Until most Sentinels name another master than that of the beginning; that one."""
        servers = {server.port: server for server in self.replicas}

        def named() -> RedisServer | None:
            ports = [port_of_master(sentinel) for sentinel in self.sentinels]
            most = max(set(ports), key=ports.count)
            agreed = ports.count(most) > len(ports) // 2
            found = servers.get(most or 0)
            return found if agreed and found is not None and is_master(found) else None

        return eventually(named, "a new master", PATIENCE_S)


@contextmanager
def watched(
    folder: Path,
    *,
    replicas: int = 2,
    program: Path | None = None,
    settings: Sequence[str] = (),
) -> Iterator[Watched]:
    """All of them started, in step, and known to one another.

    ``settings``: more lines of each server's redis.conf.
    """
    with ExitStack() as stack:
        port = free_port()
        link = stack.enter_context(Proxy(port))
        # As a replica, later, it is to be known by the same address.
        announced = [f"replica-announce-port {link.port}"]
        master = RedisServer(
            folder / "master", port=port, program=program, settings=[*settings, *announced]
        )
        stack.enter_context(master)
        copies = [
            stack.enter_context(
                RedisServer(
                    folder / f"replica-{number}",
                    program=program,
                    settings=settings,
                    like=master,
                    replica_of=link.port,
                )
            )
            for number in range(replicas)
        ]
        sentinels = [
            stack.enter_context(
                SentinelServer(
                    folder / f"sentinel-{number}", master, through=link.port, program=program
                )
            )
            for number in range(3)
        ]
        it = Watched(master, copies, sentinels, link)
        eventually(lambda: acquainted(it), "Sentinels that know all", PATIENCE_S)
        yield it


def acquainted(it: Watched) -> bool:
    """Whether replicas are in step and every Sentinel knows them and the others."""
    for sentinel in it.sentinels:
        told = asked(sentinel)
        known = told["num-slaves"], told["num-other-sentinels"]
        if known != (len(it.replicas), len(it.sentinels) - 1):
            return False
    return all(in_step(replica) for replica in it.replicas)


def in_step(server: RedisServer) -> bool:
    return bool(replication(server).get("master_link_status") == "up")


def is_master(server: RedisServer) -> bool:
    return bool(replication(server)["role"] == "master")


# A master that becomes a replica ends its clients' connections, also in the middle of an answer.
@stamina.retry(on=redis.ConnectionError, attempts=3)
def replication(server: RedisServer) -> dict[str, Any]:
    with redis_client(server.url) as client:
        # Any: redis-py's answers are unions over protocols.
        told: Any = client.info("replication")
        return dict(told)


def port_of_master(sentinel: SentinelServer) -> int | None:
    """Where this Sentinel says that the master is; None while it does not answer."""
    try:
        return int(asked(sentinel)["port"])
    except redis.RedisError:
        return None


def asked(sentinel: SentinelServer) -> dict[str, Any]:
    with redis_client(f"redis://{LOOPBACK}:{sentinel.port}") as client:
        # Any: redis-py's answers are unions over protocols.
        told: Any = client.sentinel_master(NAME)
        return dict(told)
