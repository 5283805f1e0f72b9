"""Ends a command that cannot answer: a message on stderr, the next command, an exit code."""

from __future__ import annotations

from pathlib import Path

import typer

from admin.exit_codes import FAILED, UNREACHABLE
from sinks.errors import SinkError, Unavailable
from streaming.config import load_config


def end(message: str, code: int) -> typer.Exit:
    """Print why; returns the exit to raise."""
    typer.echo(message, err=True)
    return typer.Exit(code)


def end_unserved(
    error: SinkError,
    config: Path | None = None,
    kafka: str | None = None,
    redis: str | None = None,
) -> typer.Exit:
    """Say what Kafka or Redis refuses or does not answer, what to type next, and the exit to raise.

    ``kafka`` and ``redis`` are addresses that a command was given instead of settings.
    """
    code = UNREACHABLE if isinstance(error, Unavailable) else FAILED
    return end(f"{error}\nNext: {next_doctor(config, kafka, redis)}", code)


def next_doctor(
    config: Path | None = None, kafka: str | None = None, redis: str | None = None
) -> str:
    """The command that says what is wrong with Kafka, Redis or the settings; without arguments,
    with those that the environment names."""
    if not (config or kafka or redis):
        settings = load_config(None)
        kafka, redis = settings.kafka.bootstrap, settings.redis_url.get_secret_value()
    given = {"config": config, "kafka": kafka, "redis": redis and _without_password(redis)}
    return "trimtab doctor" + "".join(
        f" --{name} {value}" for name, value in given.items() if value
    )


def _without_password(url: str) -> str:
    """A URL that may be shown; the user types the rest."""
    scheme, _, rest = url.rpartition("://")
    return f"{scheme}://...@{rest.rpartition('@')[2]}" if "@" in rest else url
