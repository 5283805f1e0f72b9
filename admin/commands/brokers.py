"""`trimtab brokers`: who is there, and which of them are emptied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from admin.output import Shown, describe, share, text
from admin.session import Session
from admin.verbs import After, Change, Limit, acts, note_more, reads
from control.next_command import command
from trimtab.reasons import Rule

broker_commands = typer.Typer(help="The brokers of a cluster.", no_args_is_help=True)

Broker = Annotated[str, typer.Argument(help="host:port")]


@broker_commands.command("list")
@reads
def list_brokers(session: Session, limit: Limit = 100, after: After = "") -> Shown:
    """List the brokers of the newest round, the busiest first."""
    found = session.get("brokers", limit=limit, after=after)
    columns = {"broker": text, "state": text, "usage": share, "average": share, "bundles": text}
    return Shown(found, found["brokers"], columns, notes=note_more(found))


@broker_commands.command("describe")
@reads
def describe_broker(session: Session, broker: Broker) -> Shown:
    """Show a broker's state, usage and busiest bundles, and what the last round did with it."""
    found = session.get(f"brokers/{broker}")
    shown = describe(found, {"usage": share, "average": share, "busiest": _busiest})
    cluster = "--cluster", session.cluster
    asks = ["plans", "list"] if found["rule"] == Rule.HELD else ["why", broker]
    notes = [f"Next: {command(*asks, *cluster)}"]
    if found["busiest"]:
        bundle = found["busiest"][0]["bundle"]
        notes += [f"  or: {command('bundles', 'unload', bundle, *cluster, '--execute')}"]
    return shown._replace(notes=notes)


def _busiest(found: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{each['bundle']}  {share(each['share'])}" for each in found)


@broker_commands.command("drain")
@acts
def drain(_: Session, broker: Broker) -> Change:
    """Take every bundle off a broker and give it none, for a shutdown or maintenance."""
    return Change("POST", f"brokers/{broker}/drain")


@broker_commands.command("undrain")
@acts
def undrain(_: Session, broker: Broker) -> Change:
    """Use a broker again."""
    return Change("POST", f"brokers/{broker}/undrain")
