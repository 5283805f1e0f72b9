"""`trimtab namespaces`: namespaces that have bundles, new ones, and their unload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from admin.output import Shown, describe, moment, text
from admin.session import Session
from admin.verbs import After, Change, Limit, acts, note_more, reads
from control.next_command import command
from trimtab.cluster.intents.flaws import MOST_BUNDLES

namespace_commands = typer.Typer(help="The namespaces of a cluster.", no_args_is_help=True)

Namespace = Annotated[str, typer.Argument(help="tenant/namespace")]


@namespace_commands.command("list")
@reads
def list_namespaces(session: Session, limit: Limit = 100, after: After = "") -> Shown:
    """List the namespaces that have a bundle, by name."""
    found = session.get("namespaces", limit=limit, after=after)
    rows = [{"namespace": name} for name in found["namespaces"]]
    return Shown(found, rows, {"namespace": text}, notes=note_more(found))


@namespace_commands.command("describe")
@reads
def describe_namespace(session: Session, namespace: Namespace) -> Shown:
    """Show how many bundles a namespace has, at which brokers, and what keeps them there."""
    found = session.get(f"namespaces/{namespace}")
    shown = describe(found, {"brokers": _counts, "isolation": _policy, "pin": _pin})
    bundles = command("bundles", "list", "--namespace", namespace, "--cluster", session.cluster)
    return shown._replace(notes=[f"Next: {bundles}"])


def _counts(found: Mapping[str, int]) -> str:
    return "\n".join(f"{broker}  {count}" for broker, count in found.items())


def _policy(found: Mapping[str, Any] | None) -> str:
    return "" if found is None else ", ".join(found["primary"])


def _pin(found: Mapping[str, Any] | None) -> str:
    return "" if found is None else f"until {moment(found['until'])}, by {found['by']}"


@namespace_commands.command("create")
@acts
def create(
    _: Session,
    namespace: Namespace,
    bundles: Annotated[
        int, typer.Option(min=1, max=MOST_BUNDLES, help="How many, of equal ranges.")
    ] = 4,
) -> Change:
    """Create a namespace, and give each of its bundles to a broker."""
    return Change("PUT", f"namespaces/{namespace}", {"bundles": bundles})


@namespace_commands.command("unload")
@acts
def unload(
    _: Session,
    namespace: Namespace,
    to: Annotated[str, typer.Option(help="The broker to have it; default: the best one.")] = "",
) -> Change:
    """Take all bundles of a namespace off their brokers, as pulsar-admin namespaces unload does."""
    return Change("POST", f"namespaces/{namespace}/unload", query={"to": to})
