"""What trimtab.rounds holds: the record of a round, and of a batch as a replay reads it."""

from __future__ import annotations

import msgspec

from trimtab.controls import Controls
from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.migration.migration import Migration, Target
from trimtab.policies import Policies
from trimtab.wire.command import Division
from trimtab.wire.hints import Hints
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.planned import (
    HeldChanges,
    PlannedMerge,
    PlannedMove,
    PlannedRepair,
    PlannedSplit,
    RefusedMove,
    SettledMove,
)


class ShadowSide(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One side of a comparison. Ranges are ranges of usage (fractions); None: there is none."""

    strategy: str
    placement: str
    range: float | None
    """At the start of this round, before its moves."""
    moves: int
    """Moves of this round."""
    bounces: int
    """Moves of this round to a broker that the bundle left within the last day."""
    mean_range: float | None
    """Over all compared rounds."""
    total_moves: int
    total_bounces: int


class ShadowRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Compares the active strategy with its shadow, whose moves are only counted."""

    since: int
    """When the comparison began (batch timestamp)."""
    rounds: int
    """How many rounds were compared so far."""
    champion: ShadowSide
    challenger: ShadowSide
    """The shadow strategy; its ranges are predicted."""


class BusyTopicRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle with one topic that carries almost all its load
    (`trimtab.splitting.busy_topics`)."""

    bundle: str
    broker: str
    topics: int
    rate: float
    throughput: float


class RoundRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One round as stored on trimtab.rounds; ``at`` is the batch timestamp (epoch ms)."""

    cluster: str
    round: int
    at: int
    strategy: str
    placement: str
    observe_only: bool
    skipped: str
    """Empty, or the rule because of which the shedder was not asked, or that it proposed nothing.
    The round may still have repairs and drains; if the shedder is disabled or the breaker is open,
    also splits, merges and moves of children."""
    moves: tuple[PlannedMove, ...]
    refusals: tuple[RefusedMove, ...]
    """The refusals; if there are very many, only the first ones."""
    refused: dict[str, int]
    """Number of all refusals, by rule."""
    obstacles: dict[str, int]
    """By rule: how many bundles it kept out of the round."""
    summary: dict[str, float]
    usage: dict[str, float]
    """Each broker's usage as the strategies see it (fraction)."""
    problems: tuple[str, ...]
    """Problems for an operator: namespaces whose bundles do not tile, intents that were refused,
    topics that need more partitions, policies and drains that leave too few brokers."""
    move_deadline_ms: int
    settings_version: int
    state_hash: str
    assignment: str = "ahead"
    """When the bundles in ``moves`` get their next owner (`RoundSettings.assignment`)."""
    splits: tuple[PlannedSplit, ...] = ()
    division: Division | None = None
    """How the owners must split the bundles in ``splits``."""
    merges: tuple[PlannedMerge, ...] = ()
    repairs: tuple[PlannedRepair, ...] = ()
    doubt: str = "stable"
    causes: dict[str, str] = {}
    """By cause of doubt: its level, if that is not stable."""
    gone: tuple[str, ...] = ()
    """Brokers that are lost."""
    draining: tuple[str, ...] = ()
    """Brokers that are being drained."""
    held_back: tuple[str, ...] = ()
    """Brokers that came back and get no bundles yet."""
    unserved: int = 0
    """Bundles that no broker serves, by the records."""
    unserved_since: int = 0
    """Since when the longest unserved bundle has had no broker (epoch ms); 0: all are served."""
    quarantined: int = 0
    """How many of the unserved bundles get no broker until an operator readmits them, because
    several owners in a row died soon after they got the bundle."""
    hits: dict[str, tuple[int, int]] = {}
    """The active strategy's hit counters: the highest count, and the one at which it acts."""
    hints: Hints | None = None
    """Where lookups may place bundles from now on; none while observing only."""
    shadow: ShadowRecord | None = None
    """None if there is no shadow strategy."""
    settled: tuple[SettledMove, ...] = ()
    """Earlier moves whose result is now known; if there are very many, only the first ones."""
    closed: dict[str, int] = {}
    """By outcome: how many earlier moves the job no longer waits for."""
    bias: float = 0.0
    """Mean of realised minus predicted usage (fraction), over the last forecasts of settled
    moves."""
    tripped: dict[str, str] = {}
    """Why the breaker tripped in this round: by cause, what was found."""
    smoothed_usage: dict[str, float] = {}
    """Each broker's average usage (fraction), from operator ①'s averages of its resources."""
    frozen_until: int = 0
    """The batch timestamp before which no strategy is asked; 0 while the breaker is closed."""
    busy_topics: tuple[BusyTopicRecord, ...] = ()
    """Bundles whose load no split lowers, busiest first."""
    undo: tuple[PlannedMove, ...] = ()
    """The moves that would undo the plans which tripped the breaker. Those that the round makes are
    also in ``moves``."""
    overrides: dict[str, str | int | float | bool] = {}
    """The settings that intents changed, by dotted name. All others are as at the job's start."""
    policies: Policies | None = None
    """The policies in force; None in a record of an earlier version."""
    controls: Controls | None = None
    """The modes of namespaces, pins and budgets in force; None in a record of an earlier version.
    """
    green: Target | None = None
    """The cluster to which topics go that are migrated by Pulsar's flags; None if it is not set."""
    held: HeldChanges | None = None
    """What the round holds back; None if nothing."""
    v: int = 1


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings at a job's start on which decisions depend, by dotted name."""

    intake: dict[str, float]
    """Settings of operator ①."""
    defaults: dict[str, str | int | float | bool]
    """Settings of every cluster's rounds, before intents change them."""


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything that a replay of a batch needs. On trimtab.rounds, with the Kafka key
    ``query/batch``, in pieces if it is large (`trimtab.wire.pieces`)."""

    query: str
    batch: int
    generation: int
    at: int
    """The batch timestamp (epoch ms), which timers and rounds take as the current time."""
    offsets: dict[str, dict[str, tuple[int, int]]]
    """By topic and partition of which the batch has read any: the first offset, and the one after
    the last."""
    rounds: tuple[RoundRecord, ...]
    outcomes: tuple[IntentOutcome, ...] = ()
    """The outcomes of operators' intents."""
    plans: tuple[KeptPlan, ...] = ()
    """The kept plans that this batch has made or changed."""
    migrations: tuple[Migration, ...] = ()
    """The migrations to other clusters that this batch has begun or changed."""
    exported: tuple[str, ...] = ()
    """Clusters whose state after this batch is on trimtab.state."""
    settings: JobSettings | None = None
    """The settings from this batch on. A driver's first batch has them, and every batch with an
    export."""
    v: int = 1
