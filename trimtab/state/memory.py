"""Everything operator ② remembers of a cluster besides its snapshots and records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from trimtab.controls import NO_CONTROLS, Controls
from trimtab.doubt import Doubt
from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.migration.kept import NO_MIGRATIONS, Migrations
from trimtab.policies import NO_POLICIES, Policies
from trimtab.state.in_flight import Flight
from trimtab.state.liveness import Liveness
from trimtab.state.pace import Pace
from trimtab.state.pending import Pending
from trimtab.state.round_state import Histories, RoundState
from trimtab.state.shadow_state import Shadow
from trimtab.state.watcher import NO_WATCHER, Watcher

SCHEMA: Final = 1
"""Version of Memory and of the packed values; a reader migrates from earlier ones. A new field
needs a default but no new version."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A cluster's memory; replaced, never changed."""

    overrides: dict[str, str | int | float | bool] = field(default_factory=dict)
    settings_version: int = 0
    paused: bool = False
    round: RoundState = field(default_factory=RoundState)
    due_ms: int = 0
    """When the timer fires (batch timestamp); 0 while none is set."""
    round_ms: int = 0
    """When the next round is due (batch timestamp); 0 before the first, and without an interval."""
    repair_ms: int = 0
    """When to look for needed repairs (batch timestamp); 0: none."""
    in_flight: dict[str, Flight] = field(default_factory=dict)
    appended: dict[str, int] = field(default_factory=dict)
    """Broker to the LogAppendTime of its newest report; silence is judged by it."""
    paces: dict[str, Pace] = field(default_factory=dict)
    """Broker to how often it reports; none until its second report."""
    flawed: dict[str, list[str]] = field(default_factory=dict)
    """Namespaces whose records do not tile the ring, each with its holes and overlaps."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How many bundles each namespace has, by the records."""
    problems: list[str] = field(default_factory=list)
    """Intents refused since the last round."""
    policies: Policies = NO_POLICIES
    controls: Controls = NO_CONTROLS
    plans: tuple[KeptPlan, ...] = ()
    """The last kept plans, oldest first."""
    migrations: Migrations = NO_MIGRATIONS
    liveness: Liveness = field(default_factory=Liveness)
    watcher: Watcher = NO_WATCHER
    doubts: dict[str, Doubt] = field(default_factory=dict)
    """Cause to level, from intents; causes at STABLE are left out."""
    unsettled: dict[str, int] = field(default_factory=dict)
    """Bundles that are not served or about to change, to when that was learnt (batch
    timestamp)."""
    readmitted: tuple[str, ...] = ()
    """Bundles that are to leave quarantine."""
    created: tuple[str, ...] = ()
    """Bundles of new namespaces that have no record yet."""
    pending: dict[str, Pending] = field(default_factory=dict)
    """Intents that were accepted and whose effect is still to come, by id."""
    intents: dict[str, int] = field(default_factory=dict)
    """The ids of operators' last intents, oldest first, to a fingerprint of what each asked for."""
    exported_ms: int = 0
    """When the cluster's whole state was last exported (batch timestamp); 0: never."""
    shadow: Shadow | None = None
    """The shadow's state; None without a shadow."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """The part of a memory that grows with the bundles; only rounds and exports read it."""

    histories: Histories = field(default_factory=Histories)
    shadow: Shadow | None = None


def set_apart(memory: Memory) -> tuple[Memory, Learnt]:
    """The memory without what its rounds have learnt, and that."""
    learnt = Learnt(memory.round.histories, memory.shadow)
    bare = replace(memory.round, histories=Histories())
    return replace(memory, round=bare, shadow=None), learnt


def put_together(memory: Memory, learnt: Learnt) -> Memory:
    """The memory with what its rounds have learnt."""
    whole = replace(memory.round, histories=learnt.histories)
    return replace(memory, round=whole, shadow=learnt.shadow)
