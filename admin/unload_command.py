"""`trimtab unload`: an operator takes one bundle off its broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from admin.intents import Unchecked, new_intent, send
from admin.outcome_command import Id, Wait
from trimtab.wire.control import IntentKind


def unload(  # noqa: PLR0913 - the options of a command line
    cluster: Annotated[str, typer.Argument(help="The cluster concerned.")],
    bundle: Annotated[str, typer.Argument(help="tenant/namespace/0x…_0x…")],
    to: Annotated[
        str, typer.Option(help="The broker that is to get it; without one placement finds one.")
    ] = "",
    wait: Wait = 0.0,
    name: Id = "",
    unchecked: Unchecked = False,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file of settings; TRIMTAB_... variables override it."),
    ] = None,
) -> None:
    """Move a bundle off its broker at once, as pulsar-admin namespaces unload does."""
    intent = new_intent(IntentKind.UNLOAD, cluster, name, bundle=bundle, broker=to)
    send(intent, config, unchecked=unchecked, wait_s=wait)
