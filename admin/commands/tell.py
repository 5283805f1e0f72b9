"""Sends an operator's intent to the job; `trimtab tell` does so for those that need only a word."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from admin.commands.options import Cluster, Config, Id, Unchecked, Wait
from admin.commands.outcome import end_by
from admin.ending import USAGE, end, end_unserved
from control.intents import Objections, new_intent
from control.plane import ControlPlane
from control.rounds import NoSuchCluster
from simulation.replay.recorded import Missing
from sinks.errors import SinkError
from streaming.config import InvalidConfig, load_config
from trimtab.settings.setting import InvalidSettings
from trimtab.wire.control import Intent, IntentKind


class Word(StrEnum):
    """The intents that need only a word and a subject."""

    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    READMIT = "readmit"


_SUBJECTS = {Word.DRAIN: "broker", Word.UNDRAIN: "broker", Word.READMIT: "bundle"}


def intent_of(word: Word, cluster: str, subject: str | None, name: str = "") -> Intent:
    """Make an intent; raises ValueError if the subject is missing, or not expected."""
    member = _SUBJECTS.get(word)
    if member is not None and subject is None:
        raise ValueError(f"{word}: say which {member}")
    if member is None and subject is not None:
        raise ValueError(f"{word} is about the whole cluster, not about {subject}")
    members = {} if member is None else {member: subject}
    return new_intent(IntentKind(word.value), cluster, name, **members)


def tell(  # noqa: PLR0913 - the options of a command line
    word: Annotated[Word, typer.Argument(help="What the job is to do.")],
    cluster: Cluster,
    subject: Annotated[
        str | None, typer.Argument(help="The broker (drain, undrain) or bundle (readmit).")
    ] = None,
    wait: Wait = 0.0,
    name: Id = "",
    unchecked: Unchecked = False,
    config: Config = None,
) -> None:
    """Tell the job to pause or resume, to empty a broker or use it again, to readmit a bundle."""
    try:
        intent = intent_of(word, cluster, subject, name)
    except ValueError as error:
        raise end(str(error), USAGE) from None
    send(intent, config, unchecked=unchecked, wait_s=wait)


def send(intent: Intent, config: Path | None, *, unchecked: bool, wait_s: float = 0.0) -> None:
    """Publish an intent and print its id, or end the program with all that is wrong with it; with
    ``wait_s`` wait for its outcome, and end by that."""
    try:
        with ControlPlane(load_config(config)) as plane:
            if not unchecked:
                for note in plane.check(intent):
                    typer.echo(note, err=True)
            plane.send(intent)
            print(intent.id, flush=True)
            if wait_s:
                found = plane.outcome(intent.cluster, intent.id, wait_s)
                end_by(found, intent.cluster, intent.id, config)
                typer.echo("done", err=True)
    except (Objections, InvalidSettings) as error:
        unsent = "nothing was sent; --unchecked sends it all the same"
        raise end("\n".join([*error.problems, unsent]), USAGE) from None
    except (NoSuchCluster, Missing) as error:
        raise end(f"{error}\nnothing was sent; --unchecked sends it all the same", USAGE) from None
    except InvalidConfig as error:
        raise end("\n".join(error.problems), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, config) from None
