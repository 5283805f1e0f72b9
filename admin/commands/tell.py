"""`trimtab tell`: sends the intents that need only a word and a subject."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from admin.commands.connection import send
from admin.commands.options import Cluster, Config, Id, Unchecked, Wait
from admin.ending import USAGE, end
from control.intents import new_intent
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
