"""All that operator ② remembers of a cluster beside its snapshots and records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from trimtab.doubt import Doubt
from trimtab.policies import NO_POLICIES, Policies
from trimtab.state.in_flight import Flight
from trimtab.state.liveness import Liveness
from trimtab.state.round_state import RoundState
from trimtab.state.shadow_state import Shadow

SCHEMA: Final = 1
"""Version of Memory and of the packed values; a reader migrates from the ones before. A new field
needs a default, and no new version."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Replaced, never changed."""

    overrides: dict[str, str | int | float | bool] = field(default_factory=dict)
    settings_version: int = 0
    paused: bool = False
    round: RoundState = field(default_factory=RoundState)
    due_ms: int = 0
    """When the timer fires (batch timestamp); 0 while none is set."""
    round_ms: int = 0
    """When the next round is due (batch timestamp); 0 before the first, and without an interval."""
    repair_ms: int = 0
    """When to look for what is to be mended (batch timestamp); 0: nothing is."""
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
    liveness: Liveness = field(default_factory=Liveness)
    doubts: dict[str, Doubt] = field(default_factory=dict)
    """Cause to level, as intents say; what says STABLE is left out."""
    unsettled: dict[str, int] = field(default_factory=dict)
    """Bundles that are not served or about to change, and since when that is known (batch
    timestamp)."""
    readmitted: tuple[str, ...] = ()
    """Bundles that are to leave their quarantine."""
    exported_ms: int = 0
    """When all that is held of the cluster was last exported (batch timestamp); 0: never."""
    shadow: Shadow | None = None
    """Of the challenger; None without one."""
