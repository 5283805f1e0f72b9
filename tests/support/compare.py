"""Where trimtab's answer to a recorded case differs from Pulsar's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """One line for each value that Pulsar gave and trimtab did not, or gave otherwise."""
    ours, theirs = _comparable(ours, theirs, path)
    if isinstance(theirs, dict) and isinstance(ours, dict):
        yield from _members(ours, theirs, path)
    elif path.endswith((".rounds", ".samples", ".history")) and len(ours) == len(theirs):
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(mine, other, f"{path}[{number}]")
    elif ours != theirs:
        yield f"{path}: {ours!r}, not {theirs!r}"


def _comparable(ours: Any, theirs: Any, path: str) -> tuple[Any, Any]:
    if path.endswith((".hitHigh", ".hitLow")):
        # Pulsar also keeps zeros, which decide nothing.
        return ours, {broker: hits for broker, hits in theirs.items() if hits}
    if ".percent." in path:
        # Java does not always print the shortest text of a binary32 number.
        return float(np.float32(ours)), float(np.float32(theirs))
    return ours, theirs


def _members(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    for key in theirs.keys() & ours.keys():
        yield from differences(ours[key], theirs[key], f"{path}.{key}")
    if ours.keys() != theirs.keys():
        yield f"{path}: {sorted(ours.keys() ^ theirs.keys())} on one side only"
