"""Compiles the Java program, hands it a cluster, and asks it for one round after another."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec
import numpy as np

from benchmarks.agreement import Moves
from benchmarks.peer.class_path import class_path
from benchmarks.synthetic import Columns
from deploy.kafka_server import QUICK, java


class Loaded(msgspec.Struct, frozen=True, rename="camel"):
    """What Pulsar's classes hold; ``heap_bytes`` is by how much the heap in use grew, after GC."""

    digest: list[float]
    heap_bytes: int


class Round(msgspec.Struct, frozen=True):
    """One call of a strategy: CPU time of its thread, and what it decided."""

    nanoseconds: int
    moves: Moves


class Peer:
    """``with`` starts and stops it; ``loaded`` tells what it was given."""

    def __init__(self, made: Columns, conf: Mapping[str, object], folder: Path, heap: str) -> None:
        jars = os.pathsep.join(map(str, class_path()))
        sources = sorted(Path(__file__).parent.glob("*.java"))
        quick = (f"-J{option}" for option in QUICK)
        compiling = [javac(), *quick, "-nowarn", "-cp", jars, "-d", str(folder)]
        subprocess.run([*compiling, *map(str, sources)], check=True)
        command = [java(), f"-Xmx{heap}", "-cp", f"{folder}{os.pathsep}{jars}", "Peer"]
        given = [*hand_over(made, folder), len(made.brokers), json.dumps(conf)]
        self._process = subprocess.Popen(
            [*command, *map(str, given)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        self.loaded = msgspec.json.decode(self._line(), type=Loaded)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def round(self, strategy: str) -> Round:
        """One round of a shedder, named as Pulsar's class."""
        if self._process.stdin is not None:
            self._process.stdin.write(f"{strategy}\n".encode())
            self._process.stdin.flush()
        return msgspec.json.decode(self._line(), type=Round)

    def _line(self) -> bytes:
        line = self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            raise RuntimeError(f"Pulsar's side ended with status {self._process.wait()}")
        return line


def javac() -> str:
    """The compiler beside the JVM that everything else runs in."""
    return str(Path(java()).with_name("javac"))


def hand_over(made: Columns, folder: Path) -> tuple[Path, Path]:
    """Write the names, one a line, and the columns as Java reads doubles."""
    names, values = folder / "names", folder / "columns"
    names.write_text("\n".join((*made.brokers, *made.bundles)))
    with values.open("wb") as file:
        for column in (made.used, made.limit, made.owner, made.stats, made.long, made.counts):
            file.write(np.ascontiguousarray(column, ">f8").tobytes())
    return names, values
