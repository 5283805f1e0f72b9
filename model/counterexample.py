"""A counterexample to read: its steps as the model has them, and what each changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_STEP: Final = re.compile(r"\s*\d+: proc +(\d+) \((\S+?)\) +\S+?:(\d+) .*?(?:D_STEP(\d+)\]|$)")
_VALUE: Final = re.compile(r"\s*(?:byte|bit|short|int)\s+(\S+):\s+(-?\d+)")


def tell_steps(replayed: str, model: Path) -> Iterator[str]:
    """A line for each step: who, what, and the variables that have another value since.

    Of two variables of one name, as the two stores have them, the second is marked with ~.
    """
    lines = model.read_text("utf-8").splitlines()
    known: dict[tuple[str, int], str] = {}
    changes: list[str] = []
    told, step = "", 0
    seen: Counter[str] = Counter()
    for line in replayed.splitlines():
        begins = _STEP.match(line)
        value = _VALUE.match(line)
        if begins:
            if told:
                yield f"{told}\n      {' '.join(changes)}"
            step += 1
            process, place = begins[2], int(begins[4] or begins[3])
            told = f"{step:3} {process} {begins[1]}: {lines[place - 1].strip()}"
            changes, seen = [], Counter()
        elif value:
            name = value[1], seen[value[1]]
            seen[value[1]] += 1
            if step > 1 and known.get(name) != value[2]:
                changes.append(f"{value[1]}{'~' * name[1]}={value[2]}")
            known[name] = value[2]
        elif "assertion violated" in line:
            yield f"{told}\n      {' '.join(changes)}"
            yield f"    {line.strip()}"
            return
