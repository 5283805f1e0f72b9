"""Kafka's classes as its JVM has read them: with this archive a server starts in half the time."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from deploy import jars
from deploy.kafka_server import QUICK, KafkaServer, java
from sinks.kafka.generation import claim
from sinks.kafka.topics import ensure_topics
from tests.support.waiting import eventually

_BUILD: Final = Path(__file__).parents[2] / "build"
END_S: Final = 600.0
"""The JVM writes 100 MB; on a machine that others use too that takes minutes."""


def quick_kafka() -> Sequence[str]:
    """Options of a server's JVM that runs for minutes."""
    return quick(_archive())


def make() -> None:
    """Write the archive, unless it is there."""
    write_once(_archive(), _claim_once)


def archive(name: str, files: Sequence[Path]) -> Path:
    """Named after what it is made of: a JVM refuses one of another Java, or of other jars."""
    runtime = Path(os.path.realpath(shutil.which(java()) or ""))
    parts = [(str(each), each.stat().st_mtime_ns) for each in (runtime, *files) if each.exists()]
    return _BUILD / f"{name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.jsa"


def quick(archive: Path) -> list[str]:
    """Options of a JVM that reads the archive, if it is there."""
    return [*QUICK, *([f"-XX:SharedArchiveFile={archive}"] if archive.exists() else [])]


def writing(archive: Path) -> list[str]:
    """Options of a JVM that writes the archive when it ends."""
    # The JVM names each of the thousands of classes that it leaves out.
    return [*QUICK, "-Xlog:disable", f"-XX:ArchiveClassesAtExit={archive}"]


def write_once(archive: Path, write: Callable[[Path, Path], None]) -> None:
    """Call ``write`` with a folder and a file in it, unless the archive is there."""
    if archive.exists():
        return
    _BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=_BUILD) as folder:
        made = Path(folder) / archive.name
        write(Path(folder), made)
        made.replace(archive)


def _archive() -> Path:
    return archive("kafka", [jar.path for jar in jars.list_locked("kafka")])


def _claim_once(folder: Path, file: Path) -> None:
    """Make the topics, and write a transaction."""

    class Writing(KafkaServer):
        java_options = writing(file)

    with Writing(folder / "kafka") as server:
        ensure_topics(server.bootstrap)
        claim(server.bootstrap, "class archive").close()
        os.kill(server.pid, signal.SIGTERM)
        eventually(lambda: not server.running, "Kafka's end", END_S)
