"""``trimtab conformance``: says which of the protocol's rules a broker keeps."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from admin.conformance.program import WORDS, InvalidCommand, unfilled
from admin.conformance.rules import RULES
from admin.conformance.run import Verdict, play, started, try_start
from admin.ending import end
from admin.exit_codes import FAILED, FINDINGS, USAGE
from deploy.process import ServerError
from deploy.redis_server import RedisServer


def conformance(
    command: Annotated[
        str,
        typer.Argument(
            help="Starts the broker; {redis}, {cluster}, {broker} and {served} are filled in."
        ),
    ],
    redis: Annotated[
        str | None, typer.Option(help="URL of a Redis for tests, instead of one started here.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="A rule; may be repeated.")] = None,
    logs: Annotated[Path | None, typer.Option(help="Folder for what the broker prints.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one line for each rule.")
    ] = False,
) -> None:
    """Test a broker in any language (docs/wire.md); exit code 6 if it breaks a rule."""
    names = only or list(RULES)
    unknown = [name for name in names if name not in RULES]
    if unknown:
        there = ", ".join(RULES)
        message = f"no such rules: {', '.join(unknown)}; there are {there}"
        raise end(f"{message}\nNext: trimtab conformance --help", USAGE)
    for word in unfilled(command):
        there = ", ".join(f"{{{name}}}" for name in WORDS)
        typer.echo(f"note: {word} stays as it is; filled in are {there}", err=True)
    if redis is not None and not redis.startswith("redis://"):
        message = f"--redis {redis}: the kit reads what a broker asks, so redis:// alone"
        raise end(f"{message}\nNext: leave --redis out, and the kit starts one", USAGE)
    try:
        verdicts = _played(command, redis, names, logs)
    except InvalidCommand as error:
        raise end(f"{error}\nNext: trimtab conformance --help", USAGE) from None
    except (OSError, ServerError) as error:
        message = f"no rule was played: {error}"
        raise end(f"{message}\nNext: --logs FOLDER keeps what the broker prints", FAILED) from None
    if json:
        for verdict in verdicts:
            print(msgspec.json.encode({"v": 1, **verdict._asdict()}).decode())
    else:
        Console().print(_table(verdicts))
    raise typer.Exit(FINDINGS if any(verdict.reason for verdict in verdicts) else 0)


def _played(command: str, url: str | None, names: list[str], logs: Path | None) -> list[Verdict]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trimtab-")))
        if url is None:
            server = RedisServer(folder / "redis", settings=["appendfsync no"])
            url = stack.enter_context(server).url
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
        launch = started(command, logs or folder)
        try_start(url, launch)
        return list(play(url, launch, names))


def _table(verdicts: list[Verdict]) -> Table:
    table = Table("", "rule", "what it says", "seen instead", box=None, pad_edge=False)
    for verdict in verdicts:
        mark = "[red]no[/]" if verdict.reason else "[green]ok[/]"
        table.add_row(mark, verdict.rule, RULES[verdict.rule].text, verdict.reason)
    return table
