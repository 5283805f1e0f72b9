"""Where trimtab's answer to a recorded case differs from Pulsar's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

_WHOLE: Final = (".unload", ".dest", ".usage", ".hitHigh", ".hitLow")
"""Objects that must not have a member more than Pulsar's; elsewhere ours may say more."""


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
        # The recording prints the shortest text of a binary32 number.
        return ours, float(np.float32(theirs))
    return ours, theirs


def _members(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    for key in theirs.keys() - {"graceDropped"}:
        if key in ours:
            yield from differences(ours[key], theirs[key], f"{path}.{key}")
        else:
            yield f"{path}.{key} is missing"
    if path.endswith(_WHOLE) and ours.keys() != theirs.keys():
        yield f"{path}: {sorted(ours.keys() ^ theirs.keys())} on one side only"
