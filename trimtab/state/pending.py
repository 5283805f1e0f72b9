"""Intents that were accepted and whose effect is still to come."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Awaited:
    """A bundle as it was when an intent came."""

    source: str
    """Its owner; empty for none."""
    decided: bool = False
    """Whether a round has granted what is asked."""


@dataclass(frozen=True, slots=True)
class Pending:
    """One intent; ``kind`` is a `trimtab.wire.intent.IntentKind`."""

    kind: str
    subject: str
    """The bundle, the namespace or the broker concerned."""
    awaited: dict[str, Awaited] = field(default_factory=dict)
    """The bundles that are still to change."""
    changed: int = 0
    """How many have changed."""
    rule: str = ""
    """The rule by which the first bundle was refused."""
    problems: tuple[str, ...] = ()
    """What happened to bundles that do not change, or of the first of them."""
    until_ms: int = 0
    """When it expires (batch timestamp); 0: never."""
