"""`trimtab outcome`: what came of an intent, and the wait for it."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from admin.commands.connection import connect, end_by
from admin.commands.options import Cluster, Config, Json, Wait


def outcome(
    cluster: Cluster,
    intent: Annotated[str, typer.Argument(help="The id that the command printed.")],
    wait: Wait = 0.0,
    json: Json = False,
    config: Config = None,
) -> None:
    """Say what came of an intent of the last day: refused, accepted, done or expired."""
    with connect(config) as plane:
        found = plane.outcome(cluster, intent, wait)
        if found is None:
            plane.cluster(cluster)
    if found is not None:
        print(msgspec.json.encode(found).decode() if json else found.state.value)
    # Without a wait an accepted one is an answer, and no failure.
    if found is None or found.final or wait:
        end_by(found, cluster, intent, config)
