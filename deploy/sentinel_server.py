"""A Redis Sentinel as a child process: redis-server, or the Valkey wheel's, in Sentinel mode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from deploy.ports import LOOPBACK, answers, free_port
from deploy.process import Process, Server
from deploy.redis_server import RedisServer, binary
from deploy.secret_file import write_secret

NAME: Final = "trimtab"
"""The master's name for Sentinels and in addresses."""

_START_SECONDS: Final = 20.0


class SentinelServer(Server):
    """Watches one master; restarts with its saved state."""

    def __init__(  # noqa: PLR0913 - the options of a Sentinel
        self,
        folder: Path,
        master: RedisServer,
        *,
        through: int | None = None,
        quorum: int = 2,
        down_after_ms: int = 2_000,
        program: Path | None = None,
        settings: Sequence[str] = (),
    ) -> None:
        """``master`` must have been started, as its password is needed.

        ``through``: a port that leads to the master, instead of its own. ``quorum``: how many
        Sentinels must miss it for a failover. ``settings``: more lines of sentinel.conf, before the
        master's.
        """
        self.folder = folder.resolve()
        self.port = free_port()
        self._lines = [
            f"bind {LOOPBACK}",
            f"port {self.port}",
            f'dir "{self.folder}"',
            "daemonize no",
            *settings,
            f"sentinel monitor {NAME} {LOOPBACK} {through or master.port} {quorum}",
            f"sentinel auth-pass {NAME} {master.password}",
            f"sentinel down-after-milliseconds {NAME} {down_after_ms}",
            # A failover that does not complete is retried after twice that.
            f"sentinel failover-timeout {NAME} 10000",
            "",
        ]
        self._process = Process(
            "Sentinel",
            [str(program or binary()), str(self._configuration), "--sentinel"],
            folder=self.folder,
            log=self.folder / "sentinel.log",
        )

    def start(self) -> None:
        """Start; returns once it answers."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._configuration.exists():
            # It saves its state there: its own id, and the last master.
            write_secret(self._configuration, "\n".join(self._lines))
        self._process.start(self._answers, _START_SECONDS)

    def configure(self, line: str) -> None:
        """Add a line to its configuration before it starts."""
        self._lines.insert(-1, line)

    @property
    def _configuration(self) -> Path:
        return self.folder / "sentinel.conf"

    def _answers(self) -> bool:
        if not answers(LOOPBACK, self.port):
            return False
        try:
            with redis.Redis(
                port=self.port, retry=Retry(NoBackoff(), 0), socket_timeout=2
            ) as client:
                return bool(client.ping())
        except redis.AuthenticationError:
            # It requires the password of its settings.
            return True
        except (redis.ConnectionError, redis.TimeoutError):
            return False
