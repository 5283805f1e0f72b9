"""Why a bundle moves, is divided or gets an owner, and which rule kept one where it is."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a bundle shall be elsewhere, divided, or mended."""

    OVER_AVERAGE = "over-average"
    UNDER_AVERAGE_PEER = "under-average-peer"
    """Another broker idles far below the average (ThresholdShedder's lower boundary)."""
    OVERLOADED = "overloaded"
    """Usage at the limit that a broker should not reach."""
    UNDERLOADED = "underloaded"
    """The broker it goes to carries next to nothing (TransferShedder)."""
    RATE_GAP = "rate-gap"
    """Far more messages than the broker with the least (UniformLoadShedder)."""
    THROUGHPUT_GAP = "throughput-gap"
    HIGH_PAIR = "high-pair"
    """The pair's gap stood above AvgShedder's high threshold often enough."""
    LOW_PAIR = "low-pair"

    DIVIDED = "divided"
    """It is half of a bundle that was too large where it stands."""
    TOO_MANY_TOPICS = "too-many-topics"
    TOO_MANY_SESSIONS = "too-many-sessions"
    TOO_MANY_MESSAGES = "too-many-messages"
    TOO_MUCH_TRAFFIC = "too-much-traffic"
    """Bytes in and out together."""

    DRAINED = "drained"
    """Its broker is to be emptied."""
    UNOWNED = "unowned"
    """It was given up, and nobody has it."""
    OWNER_LOST = "owner-lost"
    STUCK = "stuck"
    """A step of its ownership takes longer than ``round.move_deadline``."""
    READMITTED = "readmitted"
    """An operator lets it out of its quarantine."""


class Rule(StrEnum):
    """Why a round was skipped or a wish refused."""

    PAUSED = "paused"
    DISABLED = "disabled"
    DOUBT = "doubt"
    UNCOMPUTABLE = "uncomputable-view"
    TOO_FEW_BROKERS = "too-few-brokers"
    REPAIR_ONLY = "repair-only"
    """It was held between two rounds, to mend and to drain."""
    BALANCED = "balanced"
    """The strategy was asked and wants nothing moved (AvgShedder: hits may still be counting)."""

    UNOWNED = "unowned"
    """No record says the source owns it."""
    OWNER_LOST = "owner-lost"
    IN_FLIGHT = "in-flight"
    COOLING_DOWN = "cooling-down"
    CONFLICT = "conflict"
    BROKEN_NAMESPACE = "broken-namespace"
    NOT_MOVABLE = "not-movable"
    """The view says it stays: heartbeat or SLA namespace, or not in its broker's ``bundles``."""
    LAST_BUNDLE = "last-bundle"
    TWICE = "already-in-plan"
    SAME_BROKER = "same-broker"
    ISOLATED = "isolated"
    """Its isolation policy allows no other broker that is there."""
    ANTI_AFFINITY = "anti-affinity"
    """All brokers it may go to have as much of its anti-affinity group as its own."""
    NO_CANDIDATE = "no-candidate"
    BUDGET = "budget"
