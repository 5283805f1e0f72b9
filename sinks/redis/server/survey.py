"""Surveys a Redis server: whether it is a single master, and its replicas."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import redis

from sinks.errors import Evicting, Misconfigured, StoreUnavailable
from sinks.redis.server.connections import address, translate_errors
from sinks.redis.server.replies import NO_CLUSTER
from trimtab.ownership import REPLICA_LAG_S

NO_EVICTION: Final = "noeviction"
"""The ``maxmemory-policy`` of a server that refuses writes when it is full."""


class Replica(NamedTuple):
    """A replica as its master sees it."""

    where: str
    online: bool
    """In sync or catching up; False while it loads its first copy of the data."""
    lag_s: int
    """Time since its last acknowledgement; it sends one a second. Negative before the first."""
    offset: int = 0
    """What it has acknowledged."""

    @property
    def counts(self) -> bool:
        """Whether the master can rely on it now."""
        return self.online and 0 <= self.lag_s <= REPLICA_LAG_S

    def __str__(self) -> str:
        if not self.online:
            return f"{self.where} is being filled"
        if self.lag_s < 0:
            return f"{self.where} has acknowledged nothing yet"
        return f"{self.where} is {self.lag_s} s behind"


class Survey(NamedTuple):
    """A server's state at one moment."""

    mode: str
    """standalone, sentinel or cluster."""
    role: str
    """master or slave."""
    version: str
    """Redis's version; for Valkey, the Redis version that it is compatible with."""
    replicas: tuple[Replica, ...] = ()
    master: str = ""
    """The replica's master; "" for a master."""

    def required(self, setting: int | None) -> int:
        """How many replicas must acknowledge, given how many are online."""
        return required_replicas(sum(replica.online for replica in self.replicas), setting)

    def rule(self, setting: int | None) -> str:
        """The replica rule in words."""
        have, need = len(self.replicas), self.required(setting)
        if not have and not need:
            return "no replicas, so none need acknowledge"
        words = f"{need} of {have} must have acknowledged within {REPLICA_LAG_S} s"
        if have == need:
            return f"{words}: the loss of one stops renewals; one more would be better"
        return words

    def shortage(self, setting: int | None) -> str:
        """Why leases are not renewed now, or soon will not be; "" if they are."""
        behind = [str(replica) for replica in self.replicas if not replica.counts]
        missing = self.required(setting) - (len(self.replicas) - len(behind))
        if missing > 0:
            behind.append(f"{missing} more must follow, or no lease is renewed")
        return "; ".join(behind)


def required_replicas(replicas: int, setting: int | None) -> int:
    """How many of the replicas must acknowledge to be, with the master, a majority of the servers.

    ``setting`` is the job's ``redis_replicas``, and overrides.
    """
    return (replicas + 1) // 2 if setting is None else setting


def survey(client: redis.Redis) -> Survey:
    """Survey the server; raises StoreUnavailable and Misconfigured."""
    server, found = _info(client, "server"), _info(client, "replication")
    if unfit(mode := _mode(server)):
        # A Sentinel's INFO has no replication section.
        return Survey(mode, "", str(server["redis_version"]))
    master = f"{found['master_host']}:{found['master_port']}" if "master_host" in found else ""
    return Survey(
        mode=mode,
        role=str(found["role"]),
        version=str(server["redis_version"]),
        replicas=replicas_of(found),
        master=master,
    )


def replicas_of(replication: Mapping[str, Any]) -> tuple[Replica, ...]:
    """The replicas in an INFO replication, except clients that only follow the stream: they have no
    port, and hold no data."""
    rows = (replication.get(f"slave{n}") for n in range(int(replication["connected_slaves"])))
    return tuple(_replica(row) for row in rows if row is not None and int(row["port"]))


def check_mode(client: redis.Redis) -> None:
    """Raise Misconfigured for a server that trimtab cannot use.

    A server that does not answer yet passes: later calls check its answers.
    """
    with suppress(StoreUnavailable):
        if refusal := unfit(_mode(_info(client, "server"))):
            raise Misconfigured(f"Redis at {address(client)}: {refusal}")


def check_survey(client: redis.Redis) -> Survey:
    """Survey a single master.

    Raises Misconfigured for other servers, Evicting for one that would delete keys, and
    StoreUnavailable for a replica: it may be promoted.
    """
    found = survey(client)
    if refusal := unfit(found.mode):
        raise Misconfigured(f"Redis at {address(client)}: {refusal}")
    if found.role != "master":
        raise StoreUnavailable(
            f"Redis at {address(client)} is a replica of {found.master}; name the master, or the "
            "Sentinels that know it: redis+sentinel://"
        )
    memory = _info(client, "memory")
    policy = str(memory["maxmemory_policy"])
    if int(memory["maxmemory"]) and policy != NO_EVICTION:
        raise Evicting(f"Redis at {address(client)} {evicting(policy)}")
    return found


def is_durable(client: redis.Redis) -> bool:
    """Whether the server writes what it acknowledges to a file, and the last write succeeded.
    Raises StoreUnavailable, and Misconfigured if this user may not ask."""
    found = _info(client, "persistence")
    return int(found["aof_enabled"]) == 1 and str(found["aof_last_write_status"]) == "ok"


def evicting(policy: str) -> str:
    """Why a server with a limit of its memory and this policy is refused."""
    return (
        f"deletes keys when it is full (maxmemory-policy {policy}), leases and the records of "
        f"ownership among them: CONFIG SET maxmemory-policy {NO_EVICTION}, and the same in its "
        "file; and give it memory enough"
    )


def unfit(mode: str) -> str:
    """Why trimtab cannot use a server of that mode; "" if it can."""
    if mode == "cluster":
        return NO_CLUSTER
    if mode == "sentinel":
        return "this is a Sentinel; say redis+sentinel://host:port/master-name/0"
    return ""


# Any: redis-py's answers are unions over protocols; ours is RESP2.
def _info(client: redis.Redis, section: str) -> dict[str, Any]:
    with translate_errors(client):
        info: Any = client.info(section)
    return dict(info)


def _mode(server: Mapping[str, Any]) -> str:
    # Valkey reports server_mode, and also redis_mode if configured to look like Redis.
    return str(server.get("redis_mode", server.get("server_mode", "standalone")))


def _replica(info: Mapping[str, Any]) -> Replica:
    return Replica(
        where=f"{info['ip']}:{info['port']}",
        online=info["state"] == "online",
        lag_s=int(info["lag"]),
        offset=int(info["offset"]),
    )


def history_of(replication: Mapping[str, Any]) -> bytes | None:
    """The history of a server's data, from its INFO replication; None for a replica."""
    if replication["role"] != "master":
        return None
    # redis-py turns a text that looks like a number into one.
    return str(replication["master_replid"]).zfill(40).encode()
