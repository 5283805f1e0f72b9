"""`trimtab outcome`: what came of an intent, and the wait for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from admin.commands.options import Cluster, Config, Json, Wait
from admin.ending import FAILED, USAGE, end, end_unserved
from control.plane import ControlPlane
from control.rounds import NoSuchCluster
from simulation.replay.recorded import Missing
from sinks.errors import SinkError
from streaming.config import InvalidConfig, load_config
from trimtab.wire.intent_outcome import IntentOutcome, IntentState


def outcome(
    cluster: Cluster,
    intent: Annotated[str, typer.Argument(help="The id that the command printed.")],
    wait: Wait = 0.0,
    json: Json = False,
    config: Config = None,
) -> None:
    """Say what came of an intent of the last day: refused, accepted, done or expired."""
    try:
        with ControlPlane(load_config(config)) as plane:
            found = plane.outcome(cluster, intent, wait)
            if found is None:
                plane.cluster(cluster)
    except (NoSuchCluster, Missing) as error:
        raise end(str(error), USAGE) from None
    except InvalidConfig as error:
        raise end("\n".join(error.problems), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, config) from None
    if found is not None:
        print(msgspec.json.encode(found).decode() if json else found.state.value)
    # Without a wait an accepted one is an answer, and no failure.
    if found is None or found.final or wait:
        end_by(found, cluster, intent, config)


def end_by(
    found: IntentOutcome | None, cluster: str, intent: str, config: Path | None = None
) -> None:
    """Say what an outcome means, and end the program unless the intent is done."""
    given = f" --config {config}" if config else ""
    if found is None:
        raise end(
            f"nothing is known of {intent} in {cluster}: it is not read yet, or too old\n"
            f"Next: trimtab doctor{given}",
            FAILED,
        )
    problems = f": {'; '.join(found.problems)}" if found.problems else ""
    match found.state:
        case IntentState.REFUSED:
            raise end(f"refused by {found.rule}{problems}", USAGE)
        case IntentState.EXPIRED:
            raise end(f"expired{problems}", FAILED)
        case IntentState.ACCEPTED:
            again = f"trimtab outcome {cluster} {intent} --wait 60{given}"
            raise end(f"accepted, and not done yet\nNext: {again}", FAILED)
