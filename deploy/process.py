"""Runs a server as a child process: its own session, its own log, and never an orphan.

A child is ended by stop() or kill(), at the interpreter's exit, and on Linux by the kernel when
this process is killed (kill -9). What the child has started is its own affair, except where
`whole` says that the child may be a script around the server.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self


class ServerError(RuntimeError):
    """A server did not start, or is not suitable; the message says what to look at."""


class Process:
    """One command, started and ended any number of times."""

    def __init__(  # noqa: PLR0913 - what is started, where, and how it is ended
        self,
        name: str,
        command: Sequence[str],
        *,
        folder: Path,
        log: Path,
        environment: Mapping[str, str] | None = None,
        whole: bool = False,
    ) -> None:
        """`environment`: the whole environment; by default the child has this process's.

        `whole`: what ends the child also ends all that it has started in its session.
        """
        self.name = name
        self.log = log
        self.command = command
        self._folder = folder
        self.environment = environment
        self._whole = whole
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        if self._child is None or not self.running:
            raise ServerError(f"{self.name} is not running; its log is {self.log}")
        return self._child.pid

    def start(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Start; returns once `ready`; on any error before that the child is killed."""
        if self.running:
            return
        _started.add(self)
        self._spawn()
        try:
            self._wait(ready, timeout_s)
        except BaseException:
            self.kill()
            raise

    def wait(self, timeout_s: float) -> int:
        """Return its exit code once it has ended by itself; raises TimeoutExpired."""
        if self._child is None:
            raise ServerError(f"{self.name} was not started")
        return self._child.wait(timeout_s)

    def stop(self, grace: float = 15.0) -> None:
        """Send SIGTERM, and SIGKILL if it has not ended after `grace` seconds."""
        if self._child is None:
            return
        deadline = time.monotonic() + grace
        self._send(self._child, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(grace)
        while self._whole and _exists(self._child.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL, if it still exists: to the child alone, or to the `whole` of it."""
        if self._child is not None:
            self._send(self._child, signal.SIGKILL)
            self._child.wait()
            self._child = None
        _started.discard(self)

    def _send(self, child: subprocess.Popen[bytes], number: signal.Signals) -> None:
        if not self._whole:
            child.send_signal(number)
            return
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)

    def _spawn(self) -> None:
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                [*_tied_to_parent(), *self.command],
                cwd=self._folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # We handle Ctrl-C in the terminal, so that the children end in our order.
                start_new_session=True,
            )

    def _wait(self, ready: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not ready():
            if not self.running:
                raise ServerError(f"{self.name} stopped; {self._end_of_log()}")
            if time.monotonic() > deadline:
                raise ServerError(
                    f"{self.name} did not answer in {timeout_s:.0f} s; {self._end_of_log()}"
                )
            time.sleep(0.05)

    def _end_of_log(self) -> str:
        lines = self.log.read_text("utf-8", errors="replace").splitlines()
        return "\n".join([f"the end of {self.log}:", *lines[-12:]])


class Server(ABC):
    """A server that is one process; a context manager starts and stops it."""

    _process: Process

    @property
    def log(self) -> Path:
        return self._process.log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.running

    @abstractmethod
    def start(self) -> None:
        """Start; returns once it answers."""

    def stop(self) -> None:
        self._process.stop()

    def kill(self) -> None:
        """End it like a crash: nothing is saved and no process is notified."""
        self._process.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


_started: set[Process] = set()


@atexit.register
def _stop_all() -> None:
    for process in list(_started):
        process.stop(grace=5.0)


def _tied_to_parent() -> list[str]:
    """A prefix that makes the kernel end the child when this process is gone.

    The kernel watches the *thread* that forked, so a child of any but the main thread would end
    with that thread. setpriv replaces itself by the command: the pid is the command's.
    """
    setpriv = shutil.which("setpriv")
    if os.uname().sysname == "Linux" and setpriv and _in_main_thread():
        return [setpriv, "--pdeathsig", "KILL"]
    return []


def _exists(group: int) -> bool:
    """Whether any process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
