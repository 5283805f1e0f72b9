"""The commands' connection to Kafka and Redis, and how they send an intent.

What goes wrong ends the program with a message and an exit code, alike for all commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from admin.ending import FAILED, USAGE, end, end_unserved
from control.intents import Objections
from control.plane import ControlPlane
from control.rounds import NoSuchCluster
from simulation.replay.recorded import Missing
from sinks.errors import SinkError
from streaming.config import InvalidConfig, load_config
from trimtab.settings.setting import InvalidSettings
from trimtab.wire.control import Intent
from trimtab.wire.intent_outcome import IntentOutcome, IntentState


@contextmanager
def connect(config: Path | None) -> Iterator[ControlPlane]:
    """The control plane that a settings file names; errors within end the program."""
    try:
        with ControlPlane(load_config(config)) as plane:
            yield plane
    except (InvalidConfig, InvalidSettings) as error:
        raise end("\n".join(error.problems), USAGE) from None
    except (NoSuchCluster, Missing) as error:
        raise end(str(error), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, config) from None


def send(intent: Intent, config: Path | None, *, unchecked: bool, wait_s: float = 0.0) -> None:
    """Publish an intent and print its id, or end the program with all that is wrong with it. With
    ``wait_s`` wait for its outcome, and end by that."""
    with connect(config) as plane:
        if not unchecked:
            for note in _check(plane, intent):
                typer.echo(note, err=True)
        plane.send(intent)
        print(intent.id, flush=True)
        if wait_s:
            found = plane.outcome(intent.cluster, intent.id, wait_s)
            end_by(found, intent.cluster, intent.id, config)
            typer.echo("done", err=True)


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


def _check(plane: ControlPlane, intent: Intent) -> list[str]:
    try:
        return plane.check(intent)
    except (Objections, InvalidSettings) as error:
        problems = error.problems
    except (NoSuchCluster, Missing) as error:
        problems = [str(error)]
    unsent = "nothing was sent; --unchecked sends it all the same"
    raise end("\n".join([*problems, unsent]), USAGE)
