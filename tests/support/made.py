"""Compares what is committed with what the code makes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def assert_made(file: Path | str, text: str) -> None:
    """Fail, and say by which command it is made again, unless the file has this text."""
    path = ROOT / file
    committed = path.read_text("utf-8") if path.exists() else ""
    if committed != text:
        pairs = zip(committed.splitlines(), text.splitlines(), strict=False)
        line = next((number for number, (a, b) in enumerate(pairs, 1) if a != b), 0)
        where = f"line {line}" if line else "its end"
        raise AssertionError(
            f"{path.relative_to(ROOT)} is not what the code makes, from {where} on: "
            "`make documents` makes it again"
        )
