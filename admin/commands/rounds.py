"""`trimtab rounds`, `trimtab pause` and `trimtab resume`: what rounds decided, and whether they
decide."""

from __future__ import annotations

from typing import Annotated

import typer

from admin.output import Shown, describe, moment, share, text
from admin.session import Session
from admin.verbs import Change, acts, acts_at_once, reads

round_commands = typer.Typer(help="The rounds of a cluster.", no_args_is_help=True)


@round_commands.command("list")
@reads
def list_rounds(
    session: Session,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="At most so many.")] = 20,
) -> Shown:
    """List the last rounds, the newest first."""
    found = session.get("rounds", limit=limit)
    columns = {"round": text, "at": moment, "range": share, "moves": text, "splits": text}
    more = {"merges": text, "repairs": text, "skipped": text}
    return Shown(found, found, {**columns, **more}, {"strategy": text, "problems": text})


@round_commands.command("show")
@reads
def show_round(
    session: Session, number: Annotated[str, typer.Argument(help="Its number, or newest.")]
) -> Shown:
    """Show all that a round recorded; -o json and -o yaml have every member whole."""
    return describe(session.get(f"rounds/{number}"), {"at": moment})


@acts_at_once
def pause(_: Session) -> Change:
    """Decide nothing until it is resumed, not even repairs; at once, without --execute."""
    return Change("POST", "pause")


@acts
def resume(_: Session) -> Change:
    """Decide again, even if a harmful plan has frozen the strategies."""
    return Change("POST", "resume")
