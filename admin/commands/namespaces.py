"""`trimtab namespaces`: list the namespaces of a cluster, and create one."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from admin.commands.connection import connect, send
from admin.commands.options import Cluster, Config, Id, Json, Unchecked, Wait
from control.intents import new_intent
from trimtab.cluster.flaws import MOST_BUNDLES
from trimtab.store.ring import equal_edges
from trimtab.wire.control import IntentKind

namespace_commands = typer.Typer(help="The namespaces of a cluster.", no_args_is_help=True)


@namespace_commands.command("list")
def list_namespaces(cluster: Cluster, json: Json = False, config: Config = None) -> None:
    """List the namespaces that have a bundle, by name."""
    with connect(config) as plane:
        found = plane.index.namespaces(cluster)
        if not found:
            plane.cluster(cluster)
    if json:
        print(msgspec.json.encode({"v": 1, "namespaces": found}).decode())
        return
    for name in found:
        print(name)
    if not found:
        typer.echo("none", err=True)


@namespace_commands.command("create")
def create(  # noqa: PLR0913 - the options of a command line
    cluster: Cluster,
    namespace: Annotated[str, typer.Argument(help="tenant/namespace.")],
    bundles: Annotated[
        int, typer.Option(min=1, max=MOST_BUNDLES, help="How many, of equal ranges.")
    ] = 4,
    wait: Wait = 0.0,
    name: Id = "",
    unchecked: Unchecked = False,
    config: Config = None,
) -> None:
    """Create a namespace, and give each of its bundles to a broker."""
    cuts = tuple(equal_edges(bundles)[1:-1])
    intent = new_intent(IntentKind.NAMESPACE, cluster, name, name=namespace, positions=cuts)
    send(intent, config, unchecked=unchecked, wait_s=wait)
