"""`trimtab contexts`: names for clusters far and near, as kubectl has them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from admin.contexts import (
    Contexts,
    InvalidContexts,
    Target,
    locate_file,
    read_contexts,
    write_contexts,
)
from admin.ending import end
from admin.exit_codes import NOT_FOUND, USAGE
from admin.output import Output, Shown, show, text
from admin.verbs import OutputOption

context_commands = typer.Typer(help="Where commands go: an API, or Kafka and Redis.")

Name = Annotated[str, typer.Argument(help="The context's name.")]


@context_commands.command("list")
def list_contexts(output: OutputOption = Output.TABLE) -> None:
    """List the contexts; the current one has a star."""
    found = _read()
    rows = [
        {
            "name": name,
            "current": "*" if name == found.current else "",
            "at": each.api or str(each.config),
            "cluster": each.cluster,
        }
        for name, each in sorted(found.context.items())
    ]
    columns = {"name": text, "current": text, "at": text, "cluster": text}
    show(Shown(rows, rows, columns, notes=[f"in {locate_file()}"]), output)


@context_commands.command("use")
def use(name: Name) -> None:
    """Choose the context that commands use without --context."""
    found = _read()
    _require(found, name)
    write_contexts(locate_file(), found.model_copy(update={"current": name}))


@context_commands.command("set")
def set_context(  # noqa: PLR0913 - the options of a command line
    name: Name,
    api: Annotated[str, typer.Option(help="The API's URL.")] = "",
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token for the API.")
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(help="The API's CA, PEM; default: the system's.")
    ] = None,
    cert: Annotated[Path | None, typer.Option(help="Your certificate, PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its key, PEM.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Without an API: a TOML file of settings, for Kafka and Redis."),
    ] = None,
    cluster: Annotated[str, typer.Option(help="The cluster of commands that name none.")] = "",
) -> None:
    """Make or replace a context; the first one becomes the current one."""
    paths = {"token_file": token_file, "ca": ca, "cert": cert, "key": key, "config": config}
    whole = {member: each and each.absolute() for member, each in paths.items()}
    try:
        target = Target(api=api, cluster=cluster, **whole)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))} {e['msg']}".strip() for e in error.errors()]
        raise end("\n".join([*problems, "Next: trimtab contexts set --help"]), USAGE) from None
    found = _read()
    known = {**found.context, name: target}
    write_contexts(locate_file(), Contexts(current=found.current or name, context=known))


@context_commands.command("delete")
def delete(name: Name) -> None:
    """Forget a context."""
    found = _read()
    _require(found, name)
    left = {other: each for other, each in found.context.items() if other != name}
    current = "" if found.current == name else found.current
    write_contexts(locate_file(), Contexts(current=current, context=left))


def _read() -> Contexts:
    try:
        return read_contexts(locate_file())
    except InvalidContexts as error:
        raise end(f"{error}\nNext: edit {locate_file()}", USAGE) from None


def _require(found: Contexts, name: str) -> None:
    if name not in found.context:
        known = ", ".join(sorted(found.context)) or "none"
        message = f"there is no context {name}; there is {known}\nNext: trimtab contexts list"
        raise end(message, NOT_FOUND)
