"""`trimtab-job` as a child process, and the settings file it is started with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil

from deploy import jars
from deploy.kafka_server import QUICK as QUICK_JAVA
from deploy.process import Process
from tests.support.class_archive import quick_options
from tests.support.waiting import eventually

T = TypeVar("T")

QUICK: Mapping[str, object] = {
    "round.shedding": "avg",
    "round.placement": "avg",
    "round.interval": 1.0,
    "round.grace_period": 2.0,
    "round.silence": 20.0,
    "round.move_deadline": 10.0,
    "avg.low_hits": 1,
    "avg.high_hits": 1,
    "unload.min_rate": 10.0,
    # Hand-overs fail, or are slow, where tests see to it: that is no reason to wait ten minutes.
    "breaker.freeze": 5.0,
}
"""A round a second that acts on what it sees first."""


def write_settings(
    folder: Path,
    kafka: str,
    redis: str,
    settings: Mapping[str, object] = QUICK,
    spark: Mapping[str, str] | None = None,
) -> Path:
    """A job's TOML file in ``folder``, where its checkpoint will be too."""
    java = {"driver": quick_options(), "executor": " ".join(QUICK_JAVA)}
    lines = [
        f"redis_url = {json.dumps(redis)}",
        f"checkpoint = {json.dumps(str(folder / 'checkpoint'))}",
        "trigger_seconds = 0.2",
        "metrics_port = 0",
        "[kafka]",
        f"bootstrap = {json.dumps(kafka)}",
        "[spark]",
        f"jars = {json.dumps([str(jar) for jar in jars.connector_jars()])}",
        *(f"{name} = {json.dumps(value)}" for name, value in (spark or {}).items()),
        "[spark.conf]",
        *(f'"spark.{each}.extraJavaOptions" = {json.dumps(java[each])}' for each in java),
        "[intake]",
        "sample_interval = 1.0",
        "[settings]",
        *(f"{name} = {json.dumps(value)}" for name, value in settings.items()),
    ]
    file = folder / "trimtab.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def run_to_its_end(*arguments: str, seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
    """Start the job where it is not expected to stay."""
    command = [_job(), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, cwd="/"
    )


class Driver:
    """A job with a checkpoint; it can be killed in the middle of a batch and started again."""

    def __init__(
        self, folder: Path, settings: Path, *options: str, name: str = "job", **environment: str
    ) -> None:
        """``environment``: settings over those of the file, TRIMTAB_…"""
        self.checkpoint = folder / "checkpoint"
        self._process = Process(
            "trimtab-job",
            [_job(), "--config", str(settings), *options],
            folder=folder,
            log=folder / f"{name}.log",
            environment={**os.environ, **environment},
        )

    def start(self) -> None:
        self._process.start(lambda: self._process.running, 10.0)

    def ended(self, seconds: float) -> int:
        """Its exit code, once it has ended by itself."""
        return self._process.wait(seconds)

    def stop(self) -> None:
        """SIGTERM, as an operator would."""
        self._process.stop(30.0)

    def kill(self) -> None:
        """SIGKILL for the driver, its JVM and its Python workers, all at once."""
        if self.running:
            self._each(psutil.Process.kill)
        self._process.kill()

    def freeze(self) -> None:
        """SIGSTOP for all of it; `thaw` lets it go on."""
        self._each(psutil.Process.suspend)

    def thaw(self) -> None:
        self._each(psutil.Process.resume)

    def command_lines(self) -> list[list[str]]:
        """What each process of its family was started with."""
        return self._each(psutil.Process.cmdline)

    def family(self) -> list[psutil.Process]:
        """The driver, its JVM, and the Python workers of that."""
        driver = psutil.Process(self._process.pid)
        return [driver, *driver.children(recursive=True)]

    def _each(self, do: Callable[[psutil.Process], T]) -> list[T]:
        """Spark's Python workers come and go: one that has just ended is left out."""
        answers = []
        for process in self.family():
            with suppress(psutil.NoSuchProcess):
                answers.append(do(process))
        return answers

    @property
    def running(self) -> bool:
        return self._process.running

    def said(self) -> str:
        """Its log so far."""
        return self._process.log.read_text("utf-8", errors="replace")

    def under_way(self) -> int | None:
        """The batch that has begun and is not committed."""
        begun = _newest(self.checkpoint / "offsets")
        return begun if begun > _newest(self.checkpoint / "commits") else None

    def committed(self) -> int:
        """The newest batch that is done, -1 before the first."""
        return _newest(self.checkpoint / "commits")

    def await_batches(self, number: int, seconds: float = 300.0) -> None:
        """Until so many more batches are committed."""
        goal = self.committed() + number
        eventually(lambda: not self.running or self.committed() >= goal, f"batch {goal}", seconds)
        assert self.running, self.said()[-3000:]


def _newest(folder: Path) -> int:
    if not folder.exists():
        return -1
    return max((int(file.name) for file in folder.iterdir() if file.name.isdecimal()), default=-1)


def _job() -> str:
    return str(Path(sys.executable).parent / "trimtab-job")
