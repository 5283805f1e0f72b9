"""Pulsar's jars, named in jars.lock and fetched as those of `deploy`, but only for a benchmark."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

from deploy.jars import Jar, fetch


def locked() -> list[Jar]:
    """Every jar on the class path."""
    lock = tomllib.loads(files("benchmarks.peer").joinpath("jars.lock").read_text("utf-8"))
    return [Jar(name, **entry) for name, entry in lock.items()]


def class_path() -> list[Path]:
    """The jars in the cache; fetches those that are missing or damaged."""
    jars = locked()
    fetch(jars=jars)
    return [jar.path for jar in jars]
