"""Where trimtab's answer to a recorded case differs from Pulsar's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """One line for each value that Pulsar gave and trimtab did not, or gave otherwise."""
    if path.endswith((".hitHigh", ".hitLow")):
        # Pulsar also keeps zeros and brokers that are gone; neither can decide anything.
        theirs = {broker: hits for broker, hits in theirs.items() if hits and broker in ours}
    elif ".percent." in path:
        theirs = float(np.float32(theirs))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key, value in theirs.items():
            if key != "graceDropped":
                missing = key not in ours
                yield from [f"{path}.{key} is missing"] if missing else ()
                yield from () if missing else differences(ours[key], value, f"{path}.{key}")
        if path.endswith((".unload", ".dest", ".usage")) and ours.keys() - theirs.keys():
            yield f"{path}: {sorted(ours.keys() - theirs.keys())} only here"
    elif isinstance(theirs, list) and path.endswith((".rounds", ".samples", ".history")):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} rounds, not {len(theirs)}"
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from differences(mine, other, f"{path}[{number}]")
    elif ours != theirs:
        yield f"{path}: {ours!r}, not {theirs!r}"
