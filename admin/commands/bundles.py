"""`trimtab bundles`: who owns what, and what an operator does with one bundle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from admin.commands.controls import pin
from admin.ending import end
from admin.exit_codes import USAGE
from admin.output import Shown, describe, moment, text
from admin.session import Session
from admin.verbs import After, Change, Limit, acts, note_more, reads
from control.next_command import command
from trimtab.model import is_bundle
from trimtab.ownership import State

bundle_commands = typer.Typer(help="The bundles of a cluster.", no_args_is_help=True)

Bundle = Annotated[str, typer.Argument(help="tenant/namespace/0x…_0x…")]


@bundle_commands.command("list")
@reads
def list_bundles(  # noqa: PLR0913 - the options of a command line
    session: Session,
    broker: Annotated[str, typer.Option(help="Only bundles of this broker.")] = "",
    namespace: Annotated[str, typer.Option(help="tenant/namespace.")] = "",
    state: Annotated[
        State | None, typer.Option(help="Only bundles whose record is in this state.")
    ] = None,
    unserved: Annotated[
        bool, typer.Option("--unserved", help="Only bundles without a serving broker.")
    ] = False,
    limit: Limit = 100,
    after: After = "",
) -> Shown:
    """List bundles with their owners, by name, as the store has them now."""
    found = session.get(
        "bundles",
        broker=broker,
        namespace=namespace,
        state=state and state.value,
        unserved=unserved or "",
        limit=limit,
        after=after,
    )
    columns = {"bundle": text, "state": text, "owner": text, "destination": text}
    wide = {"epoch": text, "since": moment}
    notes = note_more(found)
    if found["bundles"] and (unserved or state is State.QUARANTINED):
        notes.append(f"Next: {_cure(found['bundles'][0], session.cluster)}")
    return Shown(found, found["bundles"], columns, wide, notes=notes)


def _cure(row: Mapping[str, Any], cluster: str) -> str:
    """The command that helps a bundle without a serving broker."""
    if row["state"] == State.QUARANTINED:
        return command("bundles", "readmit", row["bundle"], "--cluster", cluster, "--execute")
    return command("bundles", "describe", row["bundle"], "--cluster", cluster)


@bundle_commands.command("describe")
@reads
def describe_bundle(session: Session, bundle: Bundle) -> Shown:
    """Show a bundle's record."""
    shown = describe(session.get(f"bundles/{_checked(bundle)}"), {"since": moment})
    why = f"Next: {command('why', bundle, '--cluster', session.cluster)}"
    return shown._replace(notes=[why])


@bundle_commands.command("history")
@reads
def history(
    session: Session,
    bundle: Bundle,
    limit: Annotated[
        int, typer.Option(min=1, max=100, help="How many rounds to list at most.")
    ] = 20,
) -> Shown:
    """Show what the last hundred rounds did with a bundle, the newest first."""
    found = session.get("history", subject=_checked(bundle), limit=limit)
    columns = {"round": text, "at": moment, "verdict": text, "rule": text, "source": text}
    return Shown(found, found, {**columns, "destination": text}, {"why": text})


@bundle_commands.command("unload")
@acts
def unload(
    _: Session,
    bundle: Bundle,
    to: Annotated[str, typer.Option(help="The broker to have it; default: the best one.")] = "",
) -> Change:
    """Take a bundle off its broker at once, as pulsar-admin namespaces unload -b does."""
    return Change("POST", f"bundles/{_checked(bundle)}/unload", query={"to": to})


@bundle_commands.command("transfer")
@acts
def transfer(
    _: Session,
    bundle: Bundle,
    broker: Annotated[str, typer.Argument(help="host:port, the broker to have it.")],
) -> Change:
    """Move a bundle to a broker at once, as pulsar-admin namespaces unload -b -d does."""
    return Change("POST", f"bundles/{_checked(bundle)}/unload", query={"to": broker})


@bundle_commands.command("split")
@acts
def split(
    _: Session,
    bundle: Bundle,
    algorithm: Annotated[
        str, typer.Option(help="One of split.supported; default: split.algorithm.")
    ] = "",
    at: Annotated[
        list[str] | None,
        typer.Option(help="A position on the ring, as 0x33000000; repeatable."),
    ] = None,
) -> Change:
    """Split a bundle in the next round, as pulsar-admin namespaces split-bundle does."""
    body = {"algorithm": algorithm, "positions": [_position(text) for text in at or ()]}
    return Change("POST", f"bundles/{_checked(bundle)}/split", body)


@bundle_commands.command("merge")
@acts
def merge(_: Session, bundle: Bundle) -> Change:
    """Merge a bundle with its neighbour above in the next round; one broker must have both."""
    return Change("POST", f"bundles/{_checked(bundle)}/merge")


bundle_commands.command("pin")(pin)


@bundle_commands.command("readmit")
@acts
def readmit(_: Session, bundle: Bundle) -> Change:
    """End the quarantine of a bundle whose owners died one after another."""
    return Change("POST", f"bundles/{_checked(bundle)}/readmit")


def _checked(bundle: str) -> str:
    """The name, which becomes part of a path."""
    if not is_bundle(bundle):
        raise end(
            f"{bundle}: must be a bundle, tenant/namespace/0x…_0x…\n"
            f"Next: {command('bundles', 'list', '--namespace', bundle)}",
            USAGE,
        )
    return bundle


def _position(given: str) -> int:
    try:
        return int(given, 0)
    except ValueError:
        raise end(f"--at {given}: must be a number, as 0x33000000", USAGE) from None
