"""`trimtab unload`: an operator takes a bundle, or a namespace, off its brokers."""

from __future__ import annotations

from typing import Annotated

import typer

from admin.commands.connection import send
from admin.commands.options import Cluster, Config, Id, Unchecked, Wait
from control.intents import new_intent
from trimtab.model import is_bundle
from trimtab.wire.control import IntentKind


def unload(  # noqa: PLR0913 - the options of a command line
    cluster: Cluster,
    subject: Annotated[
        str, typer.Argument(help="A bundle, tenant/namespace/0x…_0x…, or a whole namespace.")
    ],
    to: Annotated[
        str, typer.Option(help="The broker that is to have it; without one placement finds one.")
    ] = "",
    wait: Wait = 0.0,
    name: Id = "",
    unchecked: Unchecked = False,
    config: Config = None,
) -> None:
    """Move bundles off their brokers at once, as pulsar-admin namespaces unload does."""
    member = "bundle" if is_bundle(subject) else "name"
    intent = new_intent(IntentKind.UNLOAD, cluster, name, broker=to, **{member: subject})
    send(intent, config, unchecked=unchecked, wait_s=wait)
