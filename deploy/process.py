"""A server as a child process: its own session, its own log, and never an orphan.

A child is ended by stop() or kill(), at the interpreter's exit, and on Linux by the kernel when
this process dies without a word (kill -9).
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self


class ServerError(RuntimeError):
    """A server did not start, or is not what is needed; the message says what to look at."""


class Process:
    """One command, started and ended any number of times."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        folder: Path,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment`: all of it; without one the child has this process's."""
        self.name = name
        self.log = log
        self.command = command
        self._folder = folder
        self.environment = environment
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        if self._child is None or not self.running:
            raise ServerError(f"{self.name} is not running; its log is {self.log}")
        return self._child.pid

    def start(self, ready: Callable[[], bool], patience: float) -> None:
        """Returns once `ready`; whatever goes wrong before that, nothing stays behind."""
        if self.running:
            return
        _started.add(self)
        self._spawn()
        try:
            self._wait(ready, patience)
        except BaseException:
            self.kill()
            raise

    def wait(self, patience: float) -> int:
        """Its exit code, once it has ended by itself; raises TimeoutExpired."""
        if self._child is None:
            raise ServerError(f"{self.name} was not started")
        return self._child.wait(patience)

    def stop(self, grace: float = 15.0) -> None:
        """SIGTERM, and SIGKILL where that is not heeded in `grace` seconds."""
        if self._child is None:
            return
        self._child.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(grace)
        self.kill()

    def kill(self) -> None:
        """SIGKILL, to the child alone or whatever is left of it."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None
        _started.discard(self)

    def _spawn(self) -> None:
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                [*_tied_to_parent(), *self.command],
                cwd=self._folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal is ours to handle: the children end in the order we choose.
                start_new_session=True,
            )

    def _wait(self, ready: Callable[[], bool], patience: float) -> None:
        deadline = time.monotonic() + patience
        while not ready():
            if not self.running:
                lines = self.log.read_text("utf-8", errors="replace").splitlines()
                end = "\n".join(lines[-12:])
                raise ServerError(f"{self.name} stopped; the end of {self.log}:\n{end}")
            if time.monotonic() > deadline:
                raise ServerError(f"{self.name} did not answer in {patience:.0f} s: see {self.log}")
            time.sleep(0.05)


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
        """Returns once it answers."""

    def stop(self) -> None:
        self._process.stop()

    def kill(self) -> None:
        """As a crash would: nothing is saved, nobody is told."""
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
    """A prefix that has the kernel end the child when this process is gone.

    The kernel watches the *thread* that forked, so from any other than the main one the child would
    end with it. setpriv replaces itself by the command: the pid is the command's.
    """
    setpriv = shutil.which("setpriv")
    if os.uname().sysname == "Linux" and setpriv and _in_main_thread():
        return [setpriv, "--pdeathsig", "KILL"]
    return []


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
