"""The jars that Spark and the embedded Kafka need: locked by hash, fetched once, always checked.

jars.lock names every file, so a fetch resolves nothing. A file gets its name in the cache only
after its hash is verified: an interrupted fetch leaves nothing that looks like a jar.

    python -m deploy.jars              fetch missing or damaged jars
    python -m deploy.jars connector    those that the job needs
    python -m deploy.relock            resolve the requirements again and rewrite jars.lock
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from deploy import maven

LOCK: Final = files("deploy").joinpath("jars.lock")
FETCH = f"{sys.executable} -m deploy.jars"


class JarError(RuntimeError):
    """A jar is missing or not the locked one; the message says what to type."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock."""

    coordinate: str
    sha256: str
    size: int

    @property
    def path(self) -> Path:
        _, artifact, version = self.coordinate.split(":")
        return cache_dir() / f"{artifact}-{version}.jar"


@dataclass(frozen=True, slots=True)
class Problem:
    jar: Jar
    what: str


def cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "trimtab" / "jars"


def list_locked(*parts: str, lock: Traversable = LOCK) -> list[Jar]:
    """The jars of the named parts ("connector", "kafka"), or of all; of another lock, if given."""
    locked = tomllib.loads(lock.read_text("utf-8"))
    return [Jar(name, **entry) for part in parts or locked for name, entry in locked[part].items()]


def connector_jars() -> list[Path]:
    """The jars for `spark.jars`: the Kafka connector, and a local file system that forks less."""
    return _present("connector")


def kafka_jars() -> list[Path]:
    """The class path of the embedded Kafka."""
    return _present("kafka")


def verify(jars: Sequence[Jar] | None = None) -> list[Problem]:
    """The jars (default: all of the lock) that are missing or not the locked ones."""
    jars = list_locked() if jars is None else jars
    return [Problem(jar, what) for jar in jars if (what := _damage(jar.path, jar.sha256))]


def fetch(progress: Progress | None = None, jars: Sequence[Jar] | None = None) -> list[Jar]:
    """Make the cache match ``jars`` (default: the lock); returns the fetched ones."""
    wanted = [problem.jar for problem in verify(jars)]
    if not wanted:
        return wanted
    cache_dir().mkdir(parents=True, exist_ok=True)
    progress = progress or Progress(disable=True)
    task = progress.add_task("fetching jars", total=sum(jar.size for jar in wanted))
    # The scratch folder shares the cache's file system, so that the rename at the end is atomic.
    with (
        tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache_dir()) as scratch,
        ThreadPoolExecutor(max_workers=6) as pool,
    ):
        for jar in pool.map(lambda jar: _fetch(jar, Path(scratch)), wanted):
            progress.advance(task, jar.size)
    return wanted


def progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )


def _present(part: str) -> list[Path]:
    paths = [jar.path for jar in list_locked(part)]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        raise JarError(f"{len(missing)} of the {part} jars are missing. Type: {FETCH}")
    return paths


def _fetch(jar: Jar, scratch: Path) -> Jar:
    file = maven.download(jar.coordinate, scratch)
    damage = _damage(file, jar.sha256)
    if damage:
        raise JarError(f"{jar.coordinate} as downloaded is {damage}: distrust the network between")
    file.replace(jar.path)
    return jar


def _damage(file: Path, sha256: str) -> str | None:
    try:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except FileNotFoundError:
        return "missing"
    return None if digest == sha256 else "not the locked file"


def main(*parts: str) -> None:
    """Fetch the jars of these parts of the lock, or of all."""
    wanted = list_locked(*parts)
    try:
        with progress_bar() as progress:
            fetched = fetch(progress, wanted)
    except (JarError, maven.MavenError) as error:
        sys.exit(f"trimtab: {error}")
    print(
        f"trimtab: {len(wanted)} jars in {cache_dir()}, {len(fetched)} fetched",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
