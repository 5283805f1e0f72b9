"""`trimtab split`: an operator's split of one bundle, at chosen positions or by an algorithm."""

from __future__ import annotations

from typing import Annotated

import typer

from admin.commands.connection import send
from admin.commands.options import Cluster, Config, Id, Unchecked, Wait
from admin.ending import USAGE, end
from control.intents import new_intent
from trimtab.wire.control import IntentKind


def split(  # noqa: PLR0913 - the options of a command line
    cluster: Cluster,
    bundle: Annotated[str, typer.Argument(help="tenant/namespace/0x…_0x…")],
    algorithm: Annotated[
        str | None, typer.Option(help="One of split.supported; default: split.algorithm.")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(help="A position on the ring, as 0x33000000; repeatable."),
    ] = None,
    wait: Wait = 0.0,
    name: Id = "",
    unchecked: Unchecked = False,
    config: Config = None,
) -> None:
    """Split a bundle in the next round, as pulsar-admin namespaces split-bundle does."""
    intent = new_intent(
        IntentKind.SPLIT,
        cluster,
        name,
        bundle=bundle,
        algorithm=algorithm or "",
        positions=tuple(_position(text) for text in at or ()),
    )
    send(intent, config, unchecked=unchecked, wait_s=wait)


def _position(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise end(f"--at {text}: must be a number, as 0x33000000", USAGE) from None
