"""Intents that were accepted and whose effect is still to come."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.model import NO_EPOCH, Epoch


@dataclass(frozen=True, slots=True)
class Pending:
    """One intent; ``kind`` is a `trimtab.wire.control.IntentKind`."""

    kind: str
    subject: str
    """The bundle concerned, or the broker."""
    source: str = ""
    """The bundle's owner when the intent came."""
    epoch: Epoch = NO_EPOCH
    """The bundle's when the intent came."""
    until_ms: int = 0
    """When it expires (batch timestamp); 0: never."""
    decided: bool = False
    """Whether a round has granted it."""
