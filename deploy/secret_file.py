"""Files that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path


def write_secret(file: Path, content: str) -> None:
    """Write the file so that others can never read it."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(content)
