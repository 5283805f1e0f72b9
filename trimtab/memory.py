"""All that operator ② remembers of a cluster beside its snapshots and records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from trimtab.policies import NO_POLICIES, Policies
from trimtab.round_state import RoundState

SCHEMA: Final = 1
"""Version of Memory and of the packed values; a reader migrates from the ones before. A new field
needs a default, and no new version."""


@dataclass(frozen=True, slots=True)
class Flight:
    """A change issued and not yet journalled; forgotten at ``until_ms`` (batch timestamp)."""

    destination: str
    """Who will own the bundle: its owner, where it is divided."""
    counter: int
    """The record's epoch counter it was decided on: any later change of the record ends it."""
    generation: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Replaced, never changed."""

    overrides: dict[str, str | int | float | bool] = field(default_factory=dict)
    settings_version: int = 0
    paused: bool = False
    round: RoundState = field(default_factory=RoundState)
    due_ms: int = 0
    """When the round's timer fires (batch timestamp); 0 while none is set."""
    in_flight: dict[str, Flight] = field(default_factory=dict)
    appended: dict[str, int] = field(default_factory=dict)
    """Broker to the LogAppendTime of its newest report, to judge silence by."""
    flawed: dict[str, list[str]] = field(default_factory=dict)
    """Namespaces whose records do not tile the ring, with every hole and overlap."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How many bundles each namespace has, by the records."""
    problems: list[str] = field(default_factory=list)
    """Intents refused since the last round."""
    policies: Policies = NO_POLICIES
