"""How a command ends that cannot answer: a message on stderr, the next command, an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import typer

from sinks.errors import SinkError, Unavailable

FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 5


def end(message: str, code: int) -> typer.Exit:
    """Say why, and the exit to raise."""
    typer.echo(message, err=True)
    return typer.Exit(code)


def end_unserved(
    error: SinkError, config: Path | None = None, kafka: str | None = None
) -> typer.Exit:
    """Say what Kafka or Redis refuses or does not answer, what to type next, and the exit to raise.

    ``kafka``: its address, where no settings are at fault.
    """
    asked = f" --config {config}" if config else f" --kafka {kafka}" if kafka else ""
    code = UNREACHABLE if isinstance(error, Unavailable) else FAILED
    return end(f"{error}\nNext: trimtab doctor{asked}", code)
