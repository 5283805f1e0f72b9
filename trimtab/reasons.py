"""Why a bundle moves, is split, merged or gets an owner, and which rule left it as it is.

Why an intent is refused is in `trimtab.intent_rules`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a bundle is moved, split, merged or repaired."""

    OVER_AVERAGE = "over-average"
    UNDER_AVERAGE_PEER = "under-average-peer"
    """Another broker idles far below the average (ThresholdShedder's lower boundary)."""
    OVERLOADED = "overloaded"
    """Its broker's usage is at the limit that it should not reach."""
    UNDERLOADED = "underloaded"
    """Its destination carries almost no load (TransferShedder)."""
    RATE_GAP = "rate-gap"
    """Its broker has far more messages than the one with the fewest (UniformLoadShedder)."""
    THROUGHPUT_GAP = "throughput-gap"
    HIGH_PAIR = "high-pair"
    """The pair's gap was above AvgShedder's high threshold for enough rounds."""
    LOW_PAIR = "low-pair"
    OUT_OF_RANGE = "out-of-range"
    """The range of the brokers' predicted usage is wider than trimtab's planner accepts."""
    SPREAD_GROUP = "spread-group"
    """Its broker has more of its anti-affinity group than an even spread needs."""
    UNDONE = "undone"
    """The plan that moved it did harm."""

    DIVIDED = "divided"
    """It is a child of a bundle that was too large for its broker."""
    TOO_MANY_TOPICS = "too-many-topics"
    TOO_MANY_SESSIONS = "too-many-sessions"
    TOO_MANY_MESSAGES = "too-many-messages"
    TOO_MUCH_TRAFFIC = "too-much-traffic"
    """Bytes in and out together."""
    ASKED = "asked"
    """An operator asked for this split, merge or move."""
    APPROVED = "approved"
    """A person approved the plan that has this change."""
    GIANT = "giant"
    """So large that even alone on any broker it leaves the others too far below."""

    COLD_NEIGHBOURS = "cold-neighbours"
    """The two together are far below any split limit, and their namespace has few bundles left."""

    DRAINED = "drained"
    """Its broker is being drained."""
    UNOWNED = "unowned"
    """Its owner released it, and it has no owner."""
    OWNER_LOST = "owner-lost"
    STUCK = "stuck"
    """A transition of its ownership takes longer than ``round.move_deadline``."""
    READMITTED = "readmitted"
    """An operator ends its quarantine."""
    CREATED = "created"
    """An operator creates its namespace."""


ORDERED: Final = frozenset({Reason.DRAINED, Reason.ASKED, Reason.APPROVED})
"""Reasons of changes that people want; no strategy is asked about them."""

EMPTYING: Final = frozenset({Reason.DRAINED, Reason.ASKED})
"""Reasons of moves that may leave their broker without a bundle."""


class Rule(StrEnum):
    """Why a round was skipped or a wish refused."""

    PAUSED = "paused"
    DISABLED = "disabled"
    DOUBT = "doubt"
    UNCOMPUTABLE = "uncomputable-view"
    TOO_FEW_BROKERS = "too-few-brokers"
    FROZEN = "frozen"
    """An earlier plan did harm (`trimtab.review.breaker`)."""
    AWAITING_OUTCOME = "awaiting-outcome"
    """A plan missed its forecast, and the outcome of the next one is not known yet
    (`trimtab.review.forecast_miss`)."""
    REPAIR_ONLY = "repair-only"
    """A round between two regular ones, only to repair and to drain."""
    BALANCED = "balanced"
    """The strategy was asked and proposed nothing, and brokers are close together."""
    CHANGING = "brokers-changing"
    """The strategy was asked, and waits: brokers come and go one after another."""
    LEARNING = "learning"
    """The strategy was asked, and knows too little yet to tell load from noise."""
    NO_PROPOSAL = "no-proposal"
    """The strategy was asked and proposed nothing, though brokers are further apart: within its
    thresholds or what chance explains, hits still count, or no permitted move helps."""

    UNOWNED = "unowned"
    """No record says the source owns it."""
    OWNER_LOST = "owner-lost"
    UNREPORTED = "not-reported"
    """Its owner, which serves, has not reported it since it got it."""
    IN_FLIGHT = "in-flight"
    COOLING_DOWN = "cooling-down"
    CONFLICT = "conflict"
    BROKEN_NAMESPACE = "broken-namespace"
    NOT_MOVABLE = "not-movable"
    """The view marks it as fixed: heartbeat or SLA namespace, or not in its broker's ``bundles``.
    """
    LAST_BUNDLE = "last-bundle"
    TWICE = "already-in-plan"
    SAME_BROKER = "same-broker"
    ISOLATED = "isolated"
    """Its isolation policy allows no other broker that is available."""
    ANTI_AFFINITY = "anti-affinity"
    """All brokers it may go to have as much of its anti-affinity group as its own."""
    UNDIVIDABLE = "undividable"
    """A single topic, or another unit that cannot be split, carries more than the target allows."""
    FULL_NAMESPACE = "full-namespace"
    """It should be split, but its namespace already has the maximum number of bundles."""
    NO_CANDIDATE = "no-candidate"
    UNFIT_DESTINATION = "unfit-destination"
    """The broker that an operator named is away, or may not have the bundle."""
    BUDGET = "budget"
    MINUTE_BUDGET = "minute-budget"
    """The last minute's rounds have moved as much as ``plans.minute_moves`` allows."""
    BROKER_BUDGET = "broker-budget"
    """The round has moved as much off or to a broker as ``plans.broker_moves`` allows."""
    TENANT_BUDGET = "tenant-budget"
    """The tenant's bundles have moved as often as its budget allows."""
    PINNED = "pinned"
    """A person pinned it, or its namespace."""
    HELD = "held"
    """It waits for a person's word: the mode of its namespace is not automatic."""
    OUTSIDE_WINDOW = "outside-window"
    """It waits for a maintenance window: ``plans.windows``."""
    LATE = "late"
    """It was begun and not finished in time."""
    CANCELLED = "cancelled"
    """A person cancelled its plan before it began."""


SPENT: Final = frozenset({Rule.BUDGET, Rule.MINUTE_BUDGET, Rule.BROKER_BUDGET, Rule.TENANT_BUDGET})
"""Rules that refuse for this round only: what people want moved is asked for again."""

IDLE: Final = frozenset({Rule.BALANCED, Rule.CHANGING, Rule.LEARNING, Rule.NO_PROPOSAL})
"""Rules of a round that asked its strategy and changed nothing."""


class Rest(StrEnum):
    """Why a strategy that was asked left a bundle, or a broker, as it is."""

    IN_RANGE = "in-range"
    """The compared figures are within what the settings accept."""
    WITHIN_NOISE = "within-noise"
    """The range is above the target, but not by more than chance explains."""
    SWINGING = "planned-lately"
    """The range is above the target, but below the level that several recent plans require."""
    CHANGING = "brokers-changing"
    """The range is above the target, but brokers come and go one after another, and the next one to
    be emptied may fill the one that came."""
    ONE_BUNDLE = "one-bundle"
    """The largest bundle alone forces the range, wherever it is."""
    LEARNING = "learning"
    """Too little is known yet to tell load from noise."""
    RESERVED = "reserved"
    """Policies leave fewer than two brokers for bundles without a policy."""
    AWAITED = "awaiting-division"
    """A bundle that forces the range must be split first."""
    NO_GAIN = "no-gain"
    """The strategy acted, but no permitted move helps enough."""
    NOT_CHOSEN = "not-chosen"
    """Other bundles were moved instead."""
    UNDER_POLICY = "under-policy"
    """The strategy leaves bundles under a policy where they are."""
    NO_LOAD = "no-load"
    BELOW_LINE = "below-line"
    """Its broker is not far enough above the figure it is compared with."""
    NOT_BUSIEST = "not-busiest"
    """The strategy takes nothing off its broker, whatever its usage."""
    HITS = "too-few-hits"
    """Out of balance, but not yet for enough rounds in a row."""
    TOO_LITTLE = "too-little"
    """The load that would move is below the minimum that is worth a move."""
    TOO_LARGE = "too-large"
    """It carries more than the load that should leave its broker."""
    ENOUGH = "enough-taken"
    """Larger bundles of its broker cover the load that should leave."""
    WAITING = "waiting"
    """The strategy waits for newer reports."""

    AWAY = "broker-away"
    """Its broker is lost, held back or being drained, and takes no part in balancing."""
    SILENT = "broker-silent"
    """Its broker has not reported for too long."""
    UNREPORTED = "not-reported"
    """No broker that owns it reports it."""
    UNNEEDED = "nothing-to-do"
    """The broker neither gives nor gets a bundle."""
