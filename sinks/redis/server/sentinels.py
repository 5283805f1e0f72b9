"""The present master, as Redis Sentinels tell it, and connections that go there.

connect:
  ask Sentinels, those first that answered last, until most have answered; the newest failover wins
  connect to the server they name; it must say that it is a master
use a connection: on an answer that only a former master gives, close it
give it back: close it unless it goes to the master that was named last

redis-py's own SentinelConnectionPool believes the first Sentinel that answers, takes a wrong name
or password for an absent master, and reconnects a closed connection to the server it had before.
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
"""How a reply begins, beside READONLY and MASTERDOWN, of a master that may have been replaced: cut
off from its replicas it would refuse us for ever, and no connection would break."""


class _View(NamedTuple):
    """What one Sentinel says: ordered by how new its failover is."""

    failover: int
    master: Host


class Sentinels:
    """Those that watch one master; for any number of threads."""

    def __init__(self, address: SentinelAddress) -> None:
        self._given = address
        self._order = address.hosts
        self._lock = threading.Lock()

    def __str__(self) -> str:
        """Their addresses and the master's name, without any password."""
        return f"{','.join(map(str, self._given.hosts))}/{self._given.master}"

    def master(self) -> Host:
        """Where the master is.

        Raises StoreUnavailable, and Misconfigured where most Sentinels refuse us.
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
        """What every one of them says: where the master is, or why it names none."""
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
        """What the Sentinel says; raises SinkError."""
        given = self._given
        pool = redis.ConnectionPool(
            SSLConnection if given.tls else Connection,
            host=host.name,
            port=host.port,
            **connection_options(),
            **given.to_sentinel,
        )
        # A connection for each question: it is asked once a failover, and may be gone by then.
        with redis.Redis.from_pool(pool) as sentinel:
            try:
                # Any: redis-py's answer is a union over protocols.
                told: Any = sentinel.sentinel_master(given.master)
            except redis.RedisError as error:
                raise self._translated(host, error) from error
        return _View(int(told["config-epoch"]), Host(str(told["ip"]), int(told["port"])))

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
                # Of this class, so that redis-py closes the connection and a pipeline ends with it.
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
        """Named last; None: Sentinels are asked before the next command."""
        super().__init__(_ToMasterByTls if tls else _ToMaster, find=self._found, **options)

    def __repr__(self) -> str:
        return f"<MasterPool {self.sentinels}>"

    def owns_connection(self, connection: Connection) -> bool:
        """False for a connection to a former master: it is closed when it is given back."""
        ours = bool(super().owns_connection(connection))
        return ours and (connection.host, connection.port) == self.master

    def look_again(self) -> None:
        """Ask Sentinels before the next command; what is under way is not disturbed."""
        self.master = None
        self.disconnect(inuse_connections=False)

    def _found(self) -> Host:
        master = self.sentinels.master()
        if master != self.master:
            # The others that wait in the pool go to a server that others have left.
            self.look_again()
            self.master = master
        return master


def master_client(address: SentinelAddress) -> redis.Redis:
    """A client of the master that the Sentinels of an address watch."""
    pool = MasterPool(
        Sentinels(address), tls=address.tls, **connection_options(), **address.to_master
    )
    return redis.Redis.from_pool(pool)


def _of_former_master(error: ResponseError) -> bool:
    former = isinstance(error, ReadOnlyError | MasterDownError)
    return former or reply(error).startswith(_FORMER)
