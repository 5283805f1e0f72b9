"""Pulsar's own pulsar-admin, run many times in one JVM.

A JVM's start costs seconds, and a script has hundreds of commands.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

from deploy import jars
from deploy.kafka_server import QUICK, java
from tests.support.admin_script import Answer

HERE: Final = Path(__file__).parents[1] / "e2e" / "pulsar_admin"
LOCK: Final = HERE / "jars.lock"

_MAIN = "org.apache.pulsar.admin.cli.Batch"
_OPTIONS = (
    *QUICK,
    "-Xmx256m",
    # There is no log, on purpose; slf4j must not say so on each run's stderr.
    "-Dslf4j.internal.verbosity=ERROR",
)
_STOP_SECONDS = 30.0


class PulsarAdmin:
    """Runs commands one after another; see `pulsar_admin`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._commands = cast(IO[bytes], process.stdin)
        self._answers = cast(IO[bytes], process.stdout)

    def run(self, arguments: Sequence[str]) -> Answer:
        """What the command said. ValueError if an argument has a tab or a line break."""
        line = "\t".join(arguments)
        if line.count("\t") >= len(arguments) or "\n" in line:
            raise ValueError(f"a tab or a line break is in {arguments}")
        self._commands.write(line.encode() + b"\n")
        self._commands.flush()
        head = self._answers.readline().split()
        if len(head) != 3:
            raise RuntimeError(f"the JVM of pulsar-admin ended during {arguments}")
        code, out, err = (int(figure) for figure in head)
        said = self._answers.read(out).decode(), self._answers.read(err).decode()
        return Answer(code, *said)


def build(folder: Path) -> str:
    """Compile into ``folder``; returns the class path. Raises CalledProcessError."""
    locked = jars.list_locked(lock=LOCK)
    jars.fetch(jars=locked)
    class_path = os.pathsep.join([str(folder), *(str(jar.path) for jar in locked)])
    javac = Path(java()).with_name("javac")
    quick = (f"-J{option}" for option in QUICK)
    compiling = [str(javac), *quick, "-cp", class_path, "-d", str(folder)]
    subprocess.run([*compiling, str(HERE / "Batch.java")], check=True)
    return class_path


@contextmanager
def pulsar_admin(class_path: str, web_service_url: str) -> Iterator[PulsarAdmin]:
    """pulsar-admin for the broker, or whatever stands for it, at the URL."""
    command = [java(), *_OPTIONS, "-cp", class_path, _MAIN, web_service_url]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        try:
            yield PulsarAdmin(process)
            cast(IO[bytes], process.stdin).close()
            process.wait(_STOP_SECONDS)
        finally:
            process.kill()
