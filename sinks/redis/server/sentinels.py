"""Finds the present master from Redis Sentinels, and connects to it.

connect:
  ask Sentinels, those that answered last time first, until most answered; the newest failover wins
  connect to the server they name; it must report the role of master
use a connection: on an answer that only a former master gives, close it
return it to the pool: close it unless it goes to the master that was named last

redis-py's own SentinelConnectionPool trusts the first Sentinel that answers, reports a wrong name
or password as an absent master, and reconnects a closed connection to its previous server.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import redis
from redis.connection import Connection, SSLConnection
from redis.exceptions import MasterDownError, ReadOnlyError, ResponseError

from sinks.errors import Misconfigured, SinkError, StoreUnavailable
from sinks.redis.server.address import Host, SentinelAddress, connection_options
from sinks.redis.server.replies import reply, sink_error

_RIGHTS: Final = (
    "check sentinel_username and sentinel_password of the address; "
    "what the user needs there is +sentinel|master"
)

_FORMER: Final = "NOREPLICAS "
"""Start of a reply, besides READONLY and MASTERDOWN, of a master that may have been replaced: cut
off from its replicas it would refuse us for ever, and no connection would break."""


class _View(NamedTuple):
    """One Sentinel's answer, with the number of its newest failover."""

    failover: int
    master: Host


class Sentinels:
    """The Sentinels of one master; any number of threads may use it."""

    def __init__(self, address: SentinelAddress) -> None:
        self._given = address
        self._order = address.hosts
        self._lock = threading.Lock()

    def __str__(self) -> str:
        """Their addresses and the master's name, without any password."""
        return f"{','.join(map(str, self._given.hosts))}/{self._given.master}"

    def master(self) -> Host:
        """The master's address.

        Raises StoreUnavailable, and Misconfigured if most Sentinels refuse us.
        """
        views: list[_View] = []
        failures: list[SinkError] = []
        answering: list[Host] = []
        for host in self._order:
            try:
                views.append(self._ask(host))
                answering.append(host)
            except SinkError as error:
                failures.append(error)
            if self._most(views):
                break
        if not views:
            raise self._failure(failures)
        with self._lock:
            rest = [host for host in self._given.hosts if host not in answering]
            self._order = (*answering, *rest)
        return max(views, key=lambda view: view.failover).master

    def each(self) -> dict[Host, Host | SinkError]:
        """Each Sentinel's answer: the master's address, or why it names none."""
        return {host: self._tried(host) for host in self._given.hosts}

    def _tried(self, host: Host) -> Host | SinkError:
        try:
            return self._ask(host).master
        except SinkError as error:
            return error

    def _most(self, some: Sequence[object]) -> bool:
        return len(some) > len(self._given.hosts) // 2

    def _failure(self, failures: list[SinkError]) -> SinkError:
        refusals = [error for error in failures if isinstance(error, Misconfigured)]
        if self._most(refusals):
            return refusals[0]
        causes = "; ".join(map(str, failures))
        return StoreUnavailable(f"no Sentinel of {self} names a master: {causes}")

    def _ask(self, host: Host) -> _View:
        """Ask one Sentinel; raises SinkError."""
        given = self._given
        pool = redis.ConnectionPool(
            SSLConnection if given.tls else Connection,
            host=host.name,
            port=host.port,
            **connection_options(),
            **given.to_sentinel,
        )
        # A new connection each time: we ask once per failover, and an old one may be gone by then.
        with redis.Redis.from_pool(pool) as sentinel:
            try:
                # Any: redis-py's answer is a union over protocols.
                answer: Any = sentinel.sentinel_master(given.master)
            except redis.RedisError as error:
                raise self._translated(host, error) from error
        return _View(int(answer["config-epoch"]), Host(str(answer["ip"]), int(answer["port"])))

    def _translated(self, host: Host, error: redis.RedisError) -> SinkError:
        where, said = f"Sentinel at {host}", str(error)
        if said.startswith("No such master"):
            return Misconfigured(
                f"{where} watches no master {self._given.master!r}; "
                f"type: redis-cli -h {host.name} -p {host.port} SENTINEL MASTERS"
            )
        if said.startswith("unknown command"):
            return Misconfigured(
                f"{host} is no Sentinel; say redis:// for a server, or name the Sentinels' ports"
            )
        return sink_error(where, error, _RIGHTS) or StoreUnavailable(f"{where}: {error}")


# Any: redis-py leaves most of these methods without annotations.
class _ToMaster(Connection):
    """A connection to the server that ``find`` names each time it connects."""

    def __init__(self, *, find: Callable[[], Host], **options: Any) -> None:
        self._find = find
        made: Any = super().__init__
        made(**options)

    def _connect(self) -> socket.socket:
        self.host, self.port = self._find()
        base: Any = super()
        connected: socket.socket = base._connect()
        return connected

    def on_connect_check_health(self, check_health: bool = True) -> None:
        base: Any = super()
        base.on_connect_check_health(check_health)
        base.send_command("INFO", "replication", check_health=False)
        if b"role:master" not in self.read_response():
            raise redis.ConnectionError(f"{self.host}:{self.port} is a replica, named as master")

    def read_response(self, *how: Any, **more: Any) -> Any:
        base: Any = super()
        try:
            return base.read_response(*how, **more)
        except ResponseError as error:
            if _of_former_master(error):
                # This class makes redis-py close the connection and end its pipeline.
                raise redis.ConnectionError(f"{self.host}:{self.port}: {error}") from error
            raise


class _ToMasterByTls(_ToMaster, SSLConnection):
    pass


class MasterPool(redis.ConnectionPool):
    """Connections to the present master of some Sentinels."""

    # Any: redis-py's keyword arguments are of many types.
    def __init__(self, sentinels: Sentinels, *, tls: bool, **options: Any) -> None:
        self.sentinels = sentinels
        self.master: Host | None = None
        """The master named last; None: ask the Sentinels before the next command."""
        super().__init__(_ToMasterByTls if tls else _ToMaster, find=self._found, **options)

    def __repr__(self) -> str:
        return f"<MasterPool {self.sentinels}>"

    def owns_connection(self, connection: Connection) -> bool:
        """False for a connection to a former master: it is closed when it is returned."""
        ours = bool(super().owns_connection(connection))
        return ours and (connection.host, connection.port) == self.master

    def look_again(self) -> None:
        """Ask Sentinels before the next command; does not disturb commands in progress."""
        self.master = None
        self.disconnect(inuse_connections=False)

    def _found(self) -> Host:
        master = self.sentinels.master()
        if master != self.master:
            # The idle connections in the pool go to the former master.
            self.look_again()
            self.master = master
        return master


def master_client(address: SentinelAddress) -> redis.Redis:
    """A client of the master that an address's Sentinels watch."""
    pool = MasterPool(
        Sentinels(address), tls=address.tls, **connection_options(), **address.to_master
    )
    return redis.Redis.from_pool(pool)


def _of_former_master(error: ResponseError) -> bool:
    former = isinstance(error, ReadOnlyError | MasterDownError)
    return former or reply(error).startswith(_FORMER)
