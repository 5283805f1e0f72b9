"""Tables in Markdown."""

from __future__ import annotations


def row(*cells: str) -> str:
    """A row of a table; what is code in docstrings becomes code in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("``", "`") for cell in cells) + " |"
