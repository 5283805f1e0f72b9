"""`trimtab unload`: an operator takes a bundle, or a namespace, off its brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from admin.intents import Unchecked, new_intent, send
from admin.outcome_command import Id, Wait
from trimtab.model import is_bundle
from trimtab.wire.control import IntentKind


def unload(  # noqa: PLR0913 - the options of a command line
    cluster: Annotated[str, typer.Argument(help="The cluster concerned.")],
    subject: Annotated[
        str, typer.Argument(help="A bundle, tenant/namespace/0x…_0x…, or a whole namespace.")
    ],
    to: Annotated[
        str, typer.Option(help="The broker that is to have it; without one placement finds one.")
    ] = "",
    wait: Wait = 0.0,
    name: Id = "",
    unchecked: Unchecked = False,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file of settings; TRIMTAB_... variables override it."),
    ] = None,
) -> None:
    """Move bundles off their brokers at once, as pulsar-admin namespaces unload does."""
    member = "bundle" if is_bundle(subject) else "name"
    intent = new_intent(IntentKind.UNLOAD, cluster, name, broker=to, **{member: subject})
    send(intent, config, unchecked=unchecked, wait_s=wait)
