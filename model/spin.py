"""Compiles a model with SPIN and a C compiler to a search, runs it, and reads its result."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TOOLS: Final = ("spin", "gcc")
INSTALL: Final = "sudo apt-get install spin gcc"

# Every step reads or writes what others do: a reduction of their order would save nothing, and is
# not valid for what SUPPOSE looks at.
_COMPILE: Final = ("-w", "-DSAFETY", "-DNOREDUCE")
_MEGABYTES: Final = 16_000
_DEEPEST: Final = 2_000_000
_SECONDS: Final = 3600

_STATES: Final = re.compile(r"^\s*([\d.e+]+) states, stored", re.MULTILINE)
_MEMORY: Final = re.compile(r"^\s*([\d.]+)\s+total actual memory usage", re.MULTILINE)
_ELAPSED: Final = re.compile(r"elapsed time ([\d.e+]+) seconds")
_VIOLATED: Final = re.compile(r"^pan:\d+: (.*?) \(at depth (\d+)\)", re.MULTILINE)


class CannotSearch(Exception):
    """SPIN, the compiler or the search itself failed; says what they said."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of one search."""

    states: int
    seconds: float
    megabytes: float
    violated: str = ""
    """The assertion that failed, as C; empty where none did."""
    complete: bool = False
    """Every state within the bound was looked at."""


def lacking() -> list[str]:
    """The tools that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


@dataclass(frozen=True, slots=True)
class Search:
    """A model with its flags, made into a program in a folder of its own."""

    model: Path
    folder: Path

    @classmethod
    def built(cls, model: Path, flags: Sequence[str], folder: Path, fast: bool = False) -> Search:
        """Make the program; raises CannotSearch. ``fast``: slower to make, faster to run."""
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        _run(["spin", "-a", *(f"-D{flag}" for flag in flags), str(model.resolve())], folder)
        level = "-O2" if fast else "-O0"
        _run(["gcc", level, *_COMPILE, f"-DMEMLIM={_MEGABYTES}", "-o", "pan", "pan.c"], folder)
        return cls(model, folder)

    def run(self, depth: int = _DEEPEST) -> Found:
        """Look at every state that takes no more than ``depth`` steps, to the first violation."""
        # -n: no list of what was never reached. -w: the hash table grows by itself from there.
        said = _run(["./pan", "-n", "-w22", f"-m{depth}"], self.folder)
        states, memory, elapsed = (p.search(said) for p in (_STATES, _MEMORY, _ELAPSED))
        if not states or not memory or not elapsed:
            raise CannotSearch(said)
        violated = _VIOLATED.search(said)
        unfinished = "Search not completed" in said or "max search depth too small" in said
        return Found(
            int(float(states[1])),
            float(elapsed[1]),
            float(memory[1]),
            violated[1] if violated else "",
            complete=not unfinished,
        )

    def replayed(self) -> str:
        """The program's account of the schedule that it found."""
        trail = next(self.folder.glob("*.trail"))
        return _run(["./pan", "-r", trail.name, "-n", "-v"], self.folder)


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0 and command[0] != "./pan":
        raise CannotSearch(f"{' '.join(command)}: {done.stdout}")
    return done.stdout
