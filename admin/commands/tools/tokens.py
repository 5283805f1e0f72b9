"""`trimtab tokens`: makes the tokens of callers of the API."""

from __future__ import annotations

import hashlib
import secrets
from typing import Annotated

import typer

from admin.ending import end
from admin.exit_codes import USAGE
from api.tokens import LONGEST_NAME, Role

token_commands = typer.Typer(help="Who may ask the API.", no_args_is_help=True)


@token_commands.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="The name of its owner.")],
    role: Annotated[str, typer.Option(help="viewer, operator or admin.")] = "viewer",
    tenant: Annotated[list[str] | None, typer.Option(help="Only this tenant; repeatable.")] = None,
) -> None:
    """Make a token: it goes to stderr, once; the entry for the file of --tokens to stdout."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise end(f"NAME: must have 1 to {LONGEST_NAME} characters", USAGE)
    if role.upper() not in Role.__members__:
        named = ", ".join(each.name.lower() for each in Role)
        raise end(f"--role {role}: must be one of {named}", USAGE)
    token = secrets.token_urlsafe(32)
    typer.echo(f"the token of {name}, shown this once: {token}", err=True)
    quoted = [_quote(each) for each in tenant or ()]
    print(f"[[token]]\nname = {_quote(name)}\nrole = {_quote(role.lower())}")
    print(f'sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"')
    if quoted:
        print(f"tenants = [{', '.join(quoted)}]")


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
