"""The job's services for a demo or a test: Kafka and Redis, embedded or the user's own."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Self

from deploy.kafka_server import KafkaServer
from deploy.ports import is_free
from deploy.process import ServerError
from deploy.redis_server import RedisServer


class Stack:
    """Starts the services whose address was not given, and stops only those.

    With a run directory the data stay there for a later start; without one they are in a temporary
    folder. `report` is called with each slow step as it begins.
    """

    kafka_bootstrap: str
    redis_url: str
    """Includes the password: never log it."""

    def __init__(
        self,
        run_dir: Path | None = None,
        *,
        kafka: str | int | None = None,
        redis: str | int | None = None,
        report: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`kafka` and `redis`: an address to use, a port to start at, or None for any free port."""
        self._run_dir = run_dir
        self._kafka = kafka
        self._redis = redis
        self._report = report
        self._started = ExitStack()

    def start(self) -> None:
        with ExitStack() as started:
            started.enter_context(_exit_on_termination())
            run_dir = self._run_dir or Path(started.enter_context(_scratch()))
            self.redis_url = (
                self._redis
                if isinstance(self._redis, str)
                else self._start_redis(started, run_dir / "redis", self._redis)
            )
            self.kafka_bootstrap = (
                self._kafka
                if isinstance(self._kafka, str)
                else self._start_kafka(started, run_dir / "kafka", self._kafka)
            )
            self._started = started.pop_all()

    def stop(self) -> None:
        self._started.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_redis(self, started: ExitStack, folder: Path, port: int | None) -> str:
        self._report("starting Redis")
        server = RedisServer(folder, port=_unused("Redis", port))
        started.callback(self._report, "Redis is stopped")
        return started.enter_context(server).url

    def _start_kafka(self, started: ExitStack, folder: Path, port: int | None) -> str:
        self._report("starting Kafka")
        server = KafkaServer(folder, port=_unused("Kafka", port))
        started.callback(self._report, "Kafka is stopped")
        return started.enter_context(server).bootstrap


def _unused(name: str, port: int | None) -> int | None:
    if port is not None and not is_free(port):
        raise ServerError(
            f"port {port} for {name} is taken. See who has it: ss -ltnp 'sport = {port}'"
        )
    return port


@contextmanager
def _scratch() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="trimtab-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _exit_on_termination() -> Iterator[None]:
    """Make SIGTERM and a closed terminal unwind the stack as Ctrl-C does.

    Only if no other handler is set, and only in the main thread, as Python requires.
    """
    mine = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            try:
                signal.signal(number, _exit)
            except ValueError:
                break
            mine.append(number)
    try:
        yield
    finally:
        for number in mine:
            if signal.getsignal(number) is _exit:
                signal.signal(number, signal.SIG_DFL)


def _exit(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
