"""Pulsar's jars, named in jars.lock and fetched as those of `deploy`, but only for a benchmark."""

from __future__ import annotations

import hashlib
import tempfile
import tomllib
from importlib.resources import files
from pathlib import Path

from deploy import maven
from deploy.jars import Jar, JarError, cache_dir


def locked() -> list[Jar]:
    """Every jar on the class path."""
    lock = tomllib.loads(files("benchmarks.peer").joinpath("jars.lock").read_text("utf-8"))
    return [Jar(name, **entry) for name, entry in lock.items()]


def class_path() -> list[Path]:
    """The jars in the cache, after whichever was missing or damaged has been fetched."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    # The scratch folder shares the cache's file system, so that the rename at the end is atomic.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache_dir()) as scratch:
        for jar in locked():
            if not is_locked(jar, jar.path):
                file = maven.download(jar.coordinate, Path(scratch))
                if not is_locked(jar, file):
                    raise JarError(f"{jar.coordinate} as downloaded is not the locked file")
                file.replace(jar.path)
    return [jar.path for jar in locked()]


def is_locked(jar: Jar, file: Path) -> bool:
    """Whether ``file`` is there and is the very jar that was locked."""
    return file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == jar.sha256
