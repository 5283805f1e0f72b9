"""`trimtab rounds`, `trimtab pause` and `trimtab resume`: what rounds decided, and whether they
decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import typer

from admin.output import Shown, moment, share, text
from admin.session import Session
from admin.verbs import Change, acts, acts_at_once, reads
from control.next_command import command

round_commands = typer.Typer(help="The rounds of a cluster.", no_args_is_help=True)

_CHANGES: Final = {
    "repair": "repairs",
    "move": "moves",
    "split": "splits",
    "merge": "merges",
    "refused": "refusals",
}
"""What a round did, and the member of its record that has it."""


@round_commands.command("list")
@reads
def list_rounds(
    session: Session,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many to list at most.")] = 20,
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
    """Show what a round decided; -o json and -o yaml have all that it recorded."""
    found = session.get(f"rounds/{number}")
    columns = {"what": text, "bundle": text, "from": text, "to": text, "because": text}
    notes = [
        f"round {found['round']} of {moment(found['at'])}: {found['skipped'] or 'changes'}, range "
        f"{share(found['summary'].get('usage_range'))}, by {found['strategy']}",
        *found["problems"],
    ]
    rows = [*list_changes(found)]
    if rows:
        notes += [f"Next: {command('why', rows[0]['bundle'], '--cluster', session.cluster)}"]
    return Shown(found, rows, columns, {"why": text}, notes=notes)


def list_changes(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a round changed, and what it refused."""
    for what, member in _CHANGES.items():
        for each in found[member]:
            yield {
                "what": what,
                "bundle": each["bundle"],
                "from": each.get("source", each.get("broker")),
                "to": each.get("destination", each.get("neighbour")),
                "because": each.get("reason", each.get("rule")),
                "why": each.get("why"),
            }


@acts_at_once
def pause(_: Session) -> Change:
    """Stop all decisions, even repairs, until resume; takes effect without --execute."""
    return Change("POST", "pause")


@acts
def resume(_: Session) -> Change:
    """Decide again, also if the breaker is open because a plan made things worse."""
    return Change("POST", "resume")
